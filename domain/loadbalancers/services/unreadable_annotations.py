"""An unreadable annotation leaves the load balancer unchanged: it keeps the last readable value.

yawol treats it as absent, so `replicas: "three"` reduces three machines to one, and a misspelt port list enables PROXY
protocol for all backends.
"""

from __future__ import annotations

from collections.abc import Callable

from domain.loadbalancers.resources import LoadBalancerSpec
from domain.loadbalancers.services.service_annotations import ServiceAnnotations

_OPTIONS = {
    "internalLB": "internal_lb",
    "tcpProxyProtocol": "tcp_proxy_protocol",
    "tcpProxyProtocolPortsFilter": "tcp_proxy_protocol_port_filter",
    "tcpIdleTimeout": "tcp_idle_timeout",
    "udpIdleTimeout": "udp_idle_timeout",
    "serverGroupPolicy": "server_group_policy",
}


def keeping(wishes: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    for name in sorted(wishes.unreadable):
        if name in _OPTIONS:
            wishes = _with_stored_option(wishes, stored, _OPTIONS[name])
        elif name in _PARTS:
            wishes = _PARTS[name](wishes, stored)
    return wishes


def _with_stored_option(wishes: ServiceAnnotations, stored: LoadBalancerSpec, field: str) -> ServiceAnnotations:
    options = wishes.options.model_copy(update={field: getattr(stored.options, field)})
    return wishes.model_copy(update={"options": options})


def _replicas(wishes: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    return wishes.model_copy(update={"replicas": stored.replicas})


def _debug(wishes: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    return wishes.model_copy(update={"debug_settings": stored.debug_settings})


def _networks(wishes: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    networks = stored.infrastructure.additional_networks
    infrastructure = wishes.infrastructure.model_copy(update={"additional_networks": networks})
    return wishes.model_copy(update={"infrastructure": infrastructure})


def _log_forward(wishes: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    options = wishes.options.model_copy(update={"log_forward": stored.options.log_forward})
    return wishes.model_copy(update={"options": options})


_PARTS: dict[str, Callable[[ServiceAnnotations, LoadBalancerSpec], ServiceAnnotations]] = {
    "replicas": _replicas,
    "debug": _debug,
    "skipCloudControllerDefaultNetworkID": _networks,
    "logForward": _log_forward,
}
