"""Envoy's bootstrap configuration on a machine. It has the agent's address, and no clusters or listeners for clients.

The machine image contains this configuration as a file. Envoy gets its clusters and listeners from the agent over one
aggregated discovery stream. While the agent is unavailable, Envoy keeps its last configuration and retries.
"""

from __future__ import annotations

from domain.schema import Document

NODE_ID = "lb-id"
_NODE_CLUSTER = "cluster-name"
_AGENT = "xds_cluster"
_HTTP = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
# Envoy's default backoff grows to 30 seconds, which would delay a machine whose agent starts slightly later than Envoy.
_ASKING_AGAIN: Document = {"retry_back_off": {"base_interval": "0.25s", "max_interval": "2s"}}
# Further client connections are refused, so that the machine does not run out of memory.
_MOST_CONNECTIONS = 60000


def envoy_bootstrap(*, agent: tuple[str, int], admin: tuple[str, int]) -> Document:
    discovery: Document = {"ads": {}, "resource_api_version": "V3"}
    http2: Document = {"@type": _HTTP, "explicit_http_config": {"http2_protocol_options": {}}}
    endpoint: Document = {"endpoint": {"address": _socket(agent)}}
    return {
        "node": {"id": NODE_ID, "cluster": _NODE_CLUSTER},
        "admin": {"address": _socket(admin), "ignore_global_conn_limit": True},
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [{"envoy_grpc": {"cluster_name": _AGENT, "retry_policy": _ASKING_AGAIN}}],
            },
            "cds_config": discovery,
            "lds_config": discovery,
        },
        "static_resources": {
            "clusters": [
                {
                    "name": _AGENT,
                    "type": "STATIC",
                    "connect_timeout": "1s",
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2
                    },
                    "load_assignment": {"cluster_name": _AGENT, "endpoints": [{"lb_endpoints": [endpoint]}]},
                }
            ]
        },
        "layered_runtime": {
            "layers": [
                {
                    "name": "limits",
                    "static_layer": {"overload": {"global_downstream_max_connections": _MOST_CONNECTIONS}},
                }
            ]
        },
    }


def _socket(address: tuple[str, int]) -> Document:
    host, port = address
    return {"socket_address": {"address": host, "port_value": port}}
