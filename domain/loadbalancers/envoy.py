"""Envoy's configuration: one cluster and one listener for each of a LoadBalancer's ports, as plain data.

The documents are Envoy's v3 resources in JSON form (https://www.envoyproxy.io/docs/envoy/latest/api-v3/api), with
yawol's names: `TCP-80`, `UDP-53`.

    port 80/TCP ──► listener TCP-80: [source ranges] ──► tcp_proxy ──► cluster TCP-80 ──► nodes at the node port
    port 53/UDP ──► listener UDP-53: udp_proxy ─────────────────────► cluster UDP-53 ──► nodes at the node port

An invalid port or endpoint is left out and reported, whereas yawol refuses the whole configuration. If source ranges
are given but none is valid, an access rule without policies denies all sources; without the rule all would be allowed.
As in yawol, source ranges do not apply to UDP: only the security group filters UDP.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from domain.loadbalancers.go_formats import parse_duration
from domain.loadbalancers.ip_addresses import ip_version, source_range
from domain.loadbalancers.resources import Endpoint, LoadBalancer, LoadBalancerOptions, Port
from domain.model import Model
from domain.notices import Notice, warning
from domain.schema import Document

TCP, UDP = "TCP", "UDP"
_PROTOCOLS = (TCP, UDP)
_HIGHEST_PORT = 65535
_FAILED = "Failed"

_TYPES = "type.googleapis.com/envoy"
CLUSTER_TYPE = f"{_TYPES}.config.cluster.v3.Cluster"
LISTENER_TYPE = f"{_TYPES}.config.listener.v3.Listener"
_TCP_PROXY = f"{_TYPES}.extensions.filters.network.tcp_proxy.v3.TcpProxy"
_ACCESS = f"{_TYPES}.extensions.filters.network.rbac.v3.RBAC"
_UDP_PROXY = f"{_TYPES}.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig"
_UDP_ROUTE = f"{_TYPES}.extensions.filters.udp.udp_proxy.v3.Route"
_PROXY_PROTOCOL = f"{_TYPES}.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport"
_RAW_BUFFER = f"{_TYPES}.extensions.transport_sockets.raw_buffer.v3.RawBuffer"

# yawol's values.
_CONNECT_TIMEOUT = "5s"
_BUFFER_BYTES = 32 * 1024
_CONNECTIONS_PER_CPU = 10000
_REQUESTS_PER_CPU = 8000
_PENDING_PER_CPU = 2000
_HEALTH_CHECK: Document = {
    "timeout": "5s",
    "interval": "5s",
    "unhealthy_threshold": 3,
    "healthy_threshold": 2,
    "tcp_health_check": {},
    # Perdure's addition. By default Envoy checks an unused unhealthy backend only once a minute and needs two
    # successes, so a Service whose pods start after its load balancer would be unreachable for two minutes.
    "no_traffic_interval": "5s",
    "no_traffic_healthy_interval": "60s",  # Envoy's default for healthy unused backends
}
# "No timeout" is 0, which Envoy supports for TCP. For UDP, 0 would end sessions before the answer arrives.
_NEVER_IDLE = timedelta(days=365)
# Envoy refuses a listener with Go's longest durations.
_LONGEST_IDLE = 100 * _NEVER_IDLE
_RANGES_POLICY = "load-balancer-source-ranges"


class EnvoyConfiguration(Model):
    """Clusters and listeners by name, in the order of the ports."""

    clusters: dict[str, Document] = {}
    listeners: dict[str, Document] = {}
    notices: tuple[Notice, ...] = ()  # what was left out, and why


def envoy_configuration(balancer: LoadBalancer, *, listen_address: str, cpus: int) -> EnvoyConfiguration:
    """Envoy's configuration for a LoadBalancer. Envoy listens on `listen_address`. The limits of connections and
    requests are proportional to `cpus`.
    """
    options = balancer.spec.options
    ports, refused = _ports(balancer.spec.ports)
    endpoints, unreachable = _endpoints(balancer.spec.endpoints)
    ranges, unread = _ranges(options)
    timeouts, unclear = _idle_timeouts(options)
    return EnvoyConfiguration(
        clusters={name_of(port): _cluster(port, endpoints, options, cpus) for port in ports},
        listeners={name_of(port): _listener(port, listen_address, ranges, timeouts) for port in ports},
        notices=(*refused, *unreachable, *unread, *unclear),
    )


def name_of(port: Port) -> str:
    return f"{port.protocol}-{port.port}"


# The ports, endpoints and source ranges that are served, and notices about those that are left out.


def _ports(ports: Iterable[Port]) -> tuple[list[Port], list[Notice]]:
    served: dict[str, Port] = {}
    notices = []
    for port in ports:
        fault = _fault(port) or ("it is listed twice" if name_of(port) in served else "")
        if fault:
            notices.append(warning(_FAILED, f"Port {name_of(port)} is not served: {fault}"))
        else:
            served[name_of(port)] = port
    return list(served.values()), notices


def _fault(port: Port) -> str:
    if port.protocol not in _PROTOCOLS:
        return f"protocol {port.protocol!r} is neither TCP nor UDP"
    if not 1 <= port.port <= _HIGHEST_PORT:
        return f"port {port.port} is not between 1 and {_HIGHEST_PORT}"
    if not 1 <= port.node_port <= _HIGHEST_PORT:
        return f"nodePort {port.node_port} is not between 1 and {_HIGHEST_PORT}"
    return ""


def _endpoints(endpoints: Iterable[Endpoint]) -> tuple[list[tuple[str, ...]], list[Notice]]:
    found, notices = [], []
    for endpoint in endpoints:
        addresses = tuple(address for address in endpoint.addresses if ip_version(address))
        for other in endpoint.addresses:
            if other not in addresses:
                notices.append(
                    warning(_FAILED, f"Endpoint {endpoint.name}: {other!r} is not an IP address, so it is left out")
                )
        if addresses:
            found.append(addresses)
        elif not endpoint.addresses:
            notices.append(warning(_FAILED, f"Endpoint {endpoint.name} has no addresses, so it is left out"))
    return found, notices


def _ranges(options: LoadBalancerOptions) -> tuple[list[Document] | None, list[Notice]]:
    if not options.load_balancer_source_ranges:
        return None, []
    ranges, notices = [], []
    for text in options.load_balancer_source_ranges:
        network = source_range(text)
        if network is None:
            notices.append(warning(_FAILED, f"Source range {text!r} is not a network, so it is left out"))
        else:
            ranges.append({"address_prefix": str(network.network_address), "prefix_len": network.prefixlen})
    return ranges, notices


def _idle_timeouts(options: LoadBalancerOptions) -> tuple[dict[str, timedelta], list[Notice]]:
    timeouts, notices = {}, []
    for protocol, text in ((TCP, options.tcp_idle_timeout), (UDP, options.udp_idle_timeout)):
        if text is None:
            continue
        timeout = parse_duration(text)
        if timeout is None or timeout < timedelta(0):
            notices.append(
                warning(_FAILED, f"Idle timeout {text!r} of {protocol} is not a duration, so it is left out")
            )
        else:
            timeouts[protocol] = min(timeout, _LONGEST_IDLE)
    return timeouts, notices


def _cluster(port: Port, endpoints: list[tuple[str, ...]], options: LoadBalancerOptions, cpus: int) -> Document:
    tcp = port.protocol == TCP
    return {
        "name": name_of(port),
        "type": "STATIC",
        "lb_policy": "ROUND_ROBIN",
        "dns_lookup_family": "AUTO",
        "connect_timeout": _CONNECT_TIMEOUT,
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        "common_lb_config": {"healthy_panic_threshold": {"value": 0.0}},
        "circuit_breakers": {
            "thresholds": [
                {
                    "priority": "DEFAULT",
                    "max_connections": _CONNECTIONS_PER_CPU * cpus,
                    "max_requests": _REQUESTS_PER_CPU * cpus,
                    "max_pending_requests": _PENDING_PER_CPU * cpus,
                }
            ]
        },
        "load_assignment": {
            "cluster_name": name_of(port),
            "endpoints": [
                {"lb_endpoints": [_endpoint(port, address) for address in addresses]} for addresses in endpoints
            ],
        },
        **({"health_checks": [_HEALTH_CHECK]} if tcp else {}),
        **({"transport_socket": _proxy_protocol()} if tcp and _sends_client(port, options) else {}),
    }


def _endpoint(port: Port, address: str) -> Document:
    return {"endpoint": {"address": _socket(port.protocol, address, port.node_port)}}


def _socket(protocol: str, address: str, number: int) -> Document:
    return {"socket_address": {"protocol": protocol, "address": address, "port_value": number}}


def _sends_client(port: Port, options: LoadBalancerOptions) -> bool:
    chosen = options.tcp_proxy_protocol_port_filter
    return options.tcp_proxy_protocol and (not chosen or port.port in chosen)


def _proxy_protocol() -> Document:
    raw = {"name": "envoy.transport_sockets.raw_buffer", "typed_config": {"@type": _RAW_BUFFER}}
    return {
        "name": "envoy.transport_sockets.upstream_proxy_protocol",
        "typed_config": {"@type": _PROXY_PROTOCOL, "config": {"version": "V2"}, "transport_socket": raw},
    }


def _listener(port: Port, address: str, ranges: list[Document] | None, timeouts: dict[str, timedelta]) -> Document:
    timeout = timeouts.get(port.protocol)
    if port.protocol == UDP and timeout == timedelta(0):
        timeout = _NEVER_IDLE
    idle: Document = {} if timeout is None else {"idle_timeout": f"{timeout.total_seconds():.6f}s"}
    served = _tcp_filters(port, ranges, idle) if port.protocol == TCP else _udp_filters(port, idle)
    return {
        "name": name_of(port),
        "address": _socket(port.protocol, address, port.port),
        "freebind": True,
        "enable_reuse_port": True,
        "per_connection_buffer_limit_bytes": _BUFFER_BYTES,
        **served,
    }


def _tcp_filters(port: Port, ranges: list[Document] | None, idle: Document) -> Document:
    proxy = {"@type": _TCP_PROXY, "stat_prefix": "envoytcp", "cluster": name_of(port), **idle}
    filters = [] if ranges is None else [_access(ranges)]
    filters.append({"name": "envoy.filters.network.tcp_proxy", "typed_config": proxy})
    return {"filter_chains": [{"filters": filters}]}


def _access(ranges: list[Document]) -> Document:
    policy: Document = {
        "permissions": [{"any": True}],
        "principals": [{"direct_remote_ip": network} for network in ranges],
    }
    rules: Document = {"action": "ALLOW", "policies": {_RANGES_POLICY: policy} if ranges else {}}
    config = {"@type": _ACCESS, "stat_prefix": "envoyrbac", "rules": rules}
    return {"name": "envoy.filters.network.rbac", "typed_config": config}


def _udp_filters(port: Port, idle: Document) -> Document:
    route = {"name": "route", "typed_config": {"@type": _UDP_ROUTE, "cluster": name_of(port)}}
    proxy = {"@type": _UDP_PROXY, "stat_prefix": "envoyudp", "matcher": {"on_no_match": {"action": route}}, **idle}
    return {"listener_filters": [{"name": "envoy.filters.udp_listener.udp_proxy", "typed_config": proxy}]}
