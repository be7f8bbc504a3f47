"""Encodes documents (Envoy's resources in JSON form) as protobuf messages, and decodes Envoy's requests.

Only the used fields are described, by number. The descriptor pool is our own, because packages with Envoy's descriptors
overwrite modules that OpenTelemetry needs. Other fields of a request are skipped; in a document they are an error, so
that none is lost.

The numbers are those of Envoy's v3 API (https://github.com/envoyproxy/envoy/tree/main/api), which never change within
that version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from google.protobuf import any_pb2, descriptor_pool, duration_pb2, json_format, message_factory, wrappers_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from domain.loadbalancers.envoy import CLUSTER_TYPE, LISTENER_TYPE
from domain.schema import Document

# A field's number and type: a scalar, an enum or a message. After `list` or `map`, it is the type of the items or
# values.
Field: TypeAlias = tuple[int, str]

_ANY, _DURATION = "google.protobuf.Any", "google.protobuf.Duration"
_UINT32, _BOOL = "google.protobuf.UInt32Value", "google.protobuf.BoolValue"
_PACKAGE = "perdure.envoy"

# Protobuf's enum values belong to the scope that encloses the enum, so no two enums may have a value of the same name.
_ENUMS: dict[str, dict[str, int]] = {
    "DiscoveryType": {"STATIC": 0},
    "LbPolicy": {"ROUND_ROBIN": 0},
    "DnsLookupFamily": {"AUTO": 0},
    "RoutingPriority": {"DEFAULT": 0},
    "Protocol": {"TCP": 0, "UDP": 1},
    "ProxyProtocolVersion": {"V1": 0, "V2": 1},
    "Action": {"ALLOW": 0},
}

_PARTS: dict[str, dict[str, Field]] = {
    # The requests of Envoy and the responses of the agent.
    "Status": {"code": (1, "int32"), "message": (2, "string")},
    "DiscoveryRequest": {
        "version_info": (1, "string"),
        "resource_names": (3, "list string"),
        "type_url": (4, "string"),
        "response_nonce": (5, "string"),
        "error_detail": (6, "Status"),
    },
    "DiscoveryResponse": {
        "version_info": (1, "string"),
        "resources": (2, f"list {_ANY}"),
        "type_url": (4, "string"),
        "nonce": (5, "string"),
    },
    # Addresses, and parts that are named and typed.
    "SocketAddress": {"protocol": (1, "Protocol"), "address": (2, "string"), "port_value": (3, "uint32")},
    "Address": {"socket_address": (1, "SocketAddress")},
    "CidrRange": {"address_prefix": (1, "string"), "prefix_len": (2, _UINT32)},
    "TransportSocket": {"name": (1, "string"), "typed_config": (3, _ANY)},
    "Extension": {"name": (1, "string"), "typed_config": (2, _ANY)},
    "ProxyProtocolConfig": {"version": (1, "ProxyProtocolVersion")},
    # Clusters.
    "Percent": {"value": (1, "double")},
    "CommonLbConfig": {"healthy_panic_threshold": (1, "Percent")},
    "Thresholds": {
        "priority": (1, "RoutingPriority"),
        "max_connections": (2, _UINT32),
        "max_pending_requests": (3, _UINT32),
        "max_requests": (4, _UINT32),
    },
    "CircuitBreakers": {"thresholds": (1, "list Thresholds")},
    "Endpoint": {"address": (1, "Address")},
    "LbEndpoint": {"endpoint": (1, "Endpoint")},
    "LocalityLbEndpoints": {"lb_endpoints": (2, "list LbEndpoint")},
    "ClusterLoadAssignment": {"cluster_name": (1, "string"), "endpoints": (2, "list LocalityLbEndpoints")},
    "TcpHealthCheck": {},
    "HealthCheck": {
        "timeout": (1, _DURATION),
        "interval": (2, _DURATION),
        "unhealthy_threshold": (4, _UINT32),
        "healthy_threshold": (5, _UINT32),
        "tcp_health_check": (9, "TcpHealthCheck"),
        "no_traffic_interval": (12, _DURATION),
        "no_traffic_healthy_interval": (24, _DURATION),
    },
    # Listeners.
    "Filter": {"name": (1, "string"), "typed_config": (4, _ANY)},
    "FilterChain": {"filters": (3, "list Filter")},
    "ListenerFilter": {"name": (1, "string"), "typed_config": (3, _ANY)},
    "Permission": {"any": (3, "bool")},
    "Principal": {"direct_remote_ip": (10, "CidrRange")},
    "Policy": {"permissions": (1, "list Permission"), "principals": (2, "list Principal")},
    "Rules": {"action": (1, "Action"), "policies": (2, "map Policy")},
    "OnMatch": {"action": (2, "Extension")},
    "Matcher": {"on_no_match": (3, "OnMatch")},
}

# The messages in an `Any`, by Envoy's own names.
_EXTENSIONS = "envoy.extensions"
_TYPED: dict[str, dict[str, Field]] = {
    "envoy.config.cluster.v3.Cluster": {
        "name": (1, "string"),
        "type": (2, "DiscoveryType"),
        "connect_timeout": (4, _DURATION),
        "per_connection_buffer_limit_bytes": (5, _UINT32),
        "lb_policy": (6, "LbPolicy"),
        "health_checks": (8, "list HealthCheck"),
        "circuit_breakers": (10, "CircuitBreakers"),
        "dns_lookup_family": (17, "DnsLookupFamily"),
        "transport_socket": (24, "TransportSocket"),
        "common_lb_config": (27, "CommonLbConfig"),
        "load_assignment": (33, "ClusterLoadAssignment"),
    },
    "envoy.config.listener.v3.Listener": {
        "name": (1, "string"),
        "address": (2, "Address"),
        "filter_chains": (3, "list FilterChain"),
        "per_connection_buffer_limit_bytes": (5, _UINT32),
        "listener_filters": (9, "list ListenerFilter"),
        "freebind": (11, _BOOL),
        "enable_reuse_port": (29, _BOOL),
    },
    f"{_EXTENSIONS}.filters.network.tcp_proxy.v3.TcpProxy": {
        "stat_prefix": (1, "string"),
        "cluster": (2, "string"),
        "idle_timeout": (8, _DURATION),
    },
    f"{_EXTENSIONS}.filters.network.rbac.v3.RBAC": {"rules": (1, "Rules"), "stat_prefix": (3, "string")},
    f"{_EXTENSIONS}.filters.udp.udp_proxy.v3.UdpProxyConfig": {
        "stat_prefix": (1, "string"),
        "idle_timeout": (3, _DURATION),
        "matcher": (9, "Matcher"),
    },
    f"{_EXTENSIONS}.filters.udp.udp_proxy.v3.Route": {"cluster": (1, "string")},
    f"{_EXTENSIONS}.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport": {
        "config": (1, "ProxyProtocolConfig"),
        "transport_socket": (2, "TransportSocket"),
    },
    f"{_EXTENSIONS}.transport_sockets.raw_buffer.v3.RawBuffer": {},
}

_SCALARS = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "uint32": FieldDescriptorProto.TYPE_UINT32,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "double": FieldDescriptorProto.TYPE_DOUBLE,
}


# Documents to bytes, and requests from bytes.


def resources(type_url: str, documents: Iterable[Document]) -> list[Message]:
    """Each document as an `Any` of this type; raises ValueError if a document does not match the type."""
    try:
        return [
            json_format.ParseDict({"@type": type_url, **each}, _ANY_CLASS(), descriptor_pool=POOL) for each in documents
        ]
    except json_format.ParseError as error:
        raise ValueError(str(error)) from error


def response(type_url: str, version: str, nonce: str, documents: Iterable[Document]) -> bytes:
    answer = RESPONSE(version_info=version, type_url=type_url, nonce=nonce, resources=resources(type_url, documents))
    return answer.SerializeToString()


class Request:
    """Envoy's request for resources, or its ACK or NACK of resources that it was sent."""

    def __init__(self, data: bytes) -> None:
        message = json_format.MessageToDict(REQUEST.FromString(data), descriptor_pool=POOL)
        self.type_url = str(message.get("typeUrl", ""))
        self.nonce = str(message.get("responseNonce", ""))  # of the accepted or refused answer; empty at first
        # Why that answer is refused, in Envoy's words; empty if it is accepted.
        detail = message.get("errorDetail")
        self.refusal = str(detail.get("message", "no reason given")) if detail is not None else ""


# The descriptors.


def _described(messages: Mapping[str, Mapping[str, Field]], file: FileDescriptorProto) -> None:
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, (number, type_) in fields.items():
            _add(message, field, number, type_, f".{file.package}.{name}")


def _add(message: DescriptorProto, name: str, number: int, type_: str, within: str) -> None:
    shape, _, item = type_.rpartition(" ")
    field = message.field.add(name=name, number=number)
    field.label = FieldDescriptorProto.LABEL_REPEATED if shape else FieldDescriptorProto.LABEL_OPTIONAL
    if shape == "map":
        entry = message.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        _add(entry, "key", 1, "string", "")
        _add(entry, "value", 2, item, "")
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f"{within}.{entry.name}"
    elif item in _SCALARS:
        field.type = _SCALARS[item]
    elif item in _ENUMS:
        field.type, field.type_name = FieldDescriptorProto.TYPE_ENUM, f".{_PACKAGE}.{item}"
    else:
        own = item in _PARTS
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{_PACKAGE}.{item}" if own else f".{item}"


def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    common = (any_pb2, duration_pb2, wrappers_pb2)
    for module in common:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    names = [module.DESCRIPTOR.name for module in common]
    parts = FileDescriptorProto(name="parts.proto", package=_PACKAGE, syntax="proto3", dependency=names)
    for enum, values in _ENUMS.items():
        described = parts.enum_type.add(name=enum)
        for value, number in values.items():
            described.value.add(name=value, number=number)
    _described(_PARTS, parts)
    pool.AddSerializedFile(parts.SerializeToString())
    for full_name, fields in _TYPED.items():
        package, _, name = full_name.rpartition(".")
        file = FileDescriptorProto(
            name=f"{full_name}.proto", package=package, syntax="proto3", dependency=[*names, parts.name]
        )
        _described({name: fields}, file)
        pool.AddSerializedFile(file.SerializeToString())
    return pool


POOL = _pool()


def _class(full_name: str) -> type[Message]:
    return message_factory.GetMessageClass(POOL.FindMessageTypeByName(full_name))


_ANY_CLASS = _class(_ANY)
REQUEST = _class(f"{_PACKAGE}.DiscoveryRequest")
RESPONSE = _class(f"{_PACKAGE}.DiscoveryResponse")
# Clusters come before the listeners that refer to them.
TYPES = (CLUSTER_TYPE, LISTENER_TYPE)
