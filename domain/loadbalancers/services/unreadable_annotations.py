"""An unreadable annotation changes nothing: the load balancer keeps the last readable value.

yawol treats an unreadable annotation as absent. So `replicas: "three"` reduces three machines to one, and a misspelt
port list enables PROXY protocol for all backends.
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


def keeping(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    for name in sorted(annotations.unreadable):
        if name in _OPTIONS:
            annotations = _with_stored_option(annotations, stored, _OPTIONS[name])
        elif name in _PARTS:
            annotations = _PARTS[name](annotations, stored)
    return annotations


def _with_stored_option(annotations: ServiceAnnotations, stored: LoadBalancerSpec, field: str) -> ServiceAnnotations:
    options = annotations.options.model_copy(update={field: getattr(stored.options, field)})
    return annotations.model_copy(update={"options": options})


def _replicas(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    return annotations.model_copy(update={"replicas": stored.replicas})


def _debug(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    return annotations.model_copy(update={"debug_settings": stored.debug_settings})


def _networks(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    networks = stored.infrastructure.additional_networks
    infrastructure = annotations.infrastructure.model_copy(update={"additional_networks": networks})
    return annotations.model_copy(update={"infrastructure": infrastructure})


def _log_forward(annotations: ServiceAnnotations, stored: LoadBalancerSpec) -> ServiceAnnotations:
    options = annotations.options.model_copy(update={"log_forward": stored.options.log_forward})
    return annotations.model_copy(update={"options": options})


_PARTS: dict[str, Callable[[ServiceAnnotations, LoadBalancerSpec], ServiceAnnotations]] = {
    "replicas": _replicas,
    "debug": _debug,
    "skipCloudControllerDefaultNetworkID": _networks,
    "logForward": _log_forward,
}
