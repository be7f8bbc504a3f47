"""An unreadable annotation changes nothing: the load balancer keeps the last readable value.

yawol treats an unreadable annotation as absent: `replicas: "three"` then reduces three machines to one, and a misspelt
port list enables PROXY protocol for all backends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from domain.loadbalancers.ip_addresses import source_range
from domain.loadbalancers.resources import LoadBalancerOptions, LoadBalancerSpec
from domain.loadbalancers.services.service_annotations import ServiceAnnotations
from domain.model import Model

M = TypeVar("M", bound=Model)

_NO_SOURCE = "255.255.255.255/32"  # a network that Neutron and Envoy accept, and from which no packet comes
_PORTS_FILTER = "tcpProxyProtocolPortsFilter"
# The path of the value that an annotation sets, which is the same in `ServiceAnnotations` and in the LoadBalancer's
# spec.
_PATHS = {
    "replicas": ("replicas",),
    "debug": ("debug_settings",),
    "skipCloudControllerDefaultNetworkID": ("infrastructure", "additional_networks"),
    "logForward": ("options", "log_forward"),
    "internalLB": ("options", "internal_lb"),
    "tcpProxyProtocol": ("options", "tcp_proxy_protocol"),
    _PORTS_FILTER: ("options", "tcp_proxy_protocol_port_filter"),
    "tcpIdleTimeout": ("options", "tcp_idle_timeout"),
    "udpIdleTimeout": ("options", "udp_idle_timeout"),
    "serverGroupPolicy": ("options", "server_group_policy"),
}


def keeping(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    for name in annotations.unreadable & _PATHS.keys():
        annotations = _with_stored(annotations, stored, *_PATHS[name])
    return limited(annotations, stored.options)


def limited(annotations: ServiceAnnotations, stored: LoadBalancerOptions) -> ServiceAnnotations:
    options = annotations.options
    update: dict[str, object] = {}
    if _PORTS_FILTER in annotations.unreadable and not options.tcp_proxy_protocol_port_filter:
        # An empty filter means all ports, for which PROXY protocol was not requested.
        update["tcp_proxy_protocol"] = options.tcp_proxy_protocol and stored.tcp_proxy_protocol
    ranges, known = options.load_balancer_source_ranges, stored.load_balancer_source_ranges
    if ranges and not _any_readable(ranges):
        # From such ranges yawol's agent makes a rule that Envoy rejects, so the machines would be replaced endlessly.
        update["load_balancer_source_ranges"] = known if _any_readable(known) else (_NO_SOURCE,)
    return annotations.model_copy(update={"options": options.model_copy(update=update)}) if update else annotations


def _any_readable(ranges: Iterable[str]) -> bool:
    return any(source_range(each) is not None for each in ranges)


def _with_stored(requested: M, stored: Model, field: str, *below: str) -> M:
    value = getattr(stored, field)
    kept = _with_stored(getattr(requested, field), value, *below) if below else value
    return requested.model_copy(update={field: kept})
