"""A real Envoy before a real Temporal: TLS with certificates of clients, and API keys, as in front of Temporal Cloud.

The development server speaks neither. Clients present a certificate of the gate's authority (or the handshake fails),
and where the gate has a key, each call brings it (or is answered 401, which gRPC calls Unauthenticated).
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporal_server import LOOPBACK, TemporalServer
from waiting import eventually

from localcloud.kubernetes.certificates import Certificates

FILTERS = "type.googleapis.com/envoy.extensions.filters"


def certificates(directory: Path) -> Certificates:
    """An authority of its own, with a certificate of the server's and one of a client's."""
    made = Certificates(directory)
    made.ensure()
    return made


def hand_out(made: Certificates, to: Path) -> dict[str, str]:
    """A client's files as a mounted Secret has them, and the variables that name them."""
    to.mkdir(exist_ok=True)
    shutil.copy(made.certificate("admin"), to / "tls.crt")
    shutil.copy(made.key("admin"), to / "tls.key")
    shutil.copy(made.authority, to / "ca.crt")
    return {
        "TEMPORAL_TLS_CLIENT_CERT_PATH": str(to / "tls.crt"),
        "TEMPORAL_TLS_CLIENT_KEY_PATH": str(to / "tls.key"),
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(to / "ca.crt"),
    }


@asynccontextmanager
async def gated(
    temporal: TemporalServer, directory: Path, port: int, made: Certificates, *, api_key: str = "", failing: str = ""
) -> AsyncIterator[str]:
    """Envoy on the port, ended with the block; answers its address. Calls of the method `failing` are unavailable."""
    directory.mkdir(exist_ok=True)
    file = directory / "envoy.json"
    file.write_text(json.dumps(_bootstrap(temporal.ports["grpc"], port, made, api_key, failing)))
    program = str(Path(sys.executable).with_name("envoy"))
    flags = ("--use-dynamic-base-id", "--concurrency", "1", "--log-level", "error", "-c", str(file))
    with (directory / "envoy.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(program, *flags, stdout=log, stderr=log)
    try:
        await eventually(lambda: _listens(port), "a gate that listens")
        yield f"{LOOPBACK}:{port}"
    finally:
        process.terminate()
        async with asyncio.timeout(60):
            await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    return True


def _bootstrap(upstream: int, port: int, made: Certificates, api_key: str, failing: str) -> dict[str, Any]:
    to_temporal = {"match": {"prefix": "/"}, "route": {"cluster": "temporal", "timeout": "0s"}}
    routes: list[dict[str, Any]] = [to_temporal]
    if api_key:
        brings_it = {"name": "authorization", "string_match": {"exact": f"Bearer {api_key}"}}
        refused = {"match": {"prefix": "/"}, "direct_response": {"status": 401}}
        routes = [{**to_temporal, "match": {"prefix": "/", "headers": [brings_it]}}, refused]
    if failing:
        unavailable = {"match": {"safe_regex": {"regex": f".*/{failing}"}}, "direct_response": {"status": 503}}
        routes = [unavailable, *routes]
    http = {
        "@type": f"{FILTERS}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "gate",
        "codec_type": "HTTP2",
        "stream_idle_timeout": "0s",
        "route_config": {"virtual_hosts": [{"name": "temporal", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {
                "name": "router",
                "typed_config": {"@type": f"{FILTERS}.http.router.v3.Router"},
            }
        ],
    }
    tls = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": True,
        "common_tls_context": {
            "alpn_protocols": ["h2"],
            "tls_certificates": [
                {
                    "certificate_chain": {"filename": str(made.certificate("server"))},
                    "private_key": {"filename": str(made.key("server"))},
                }
            ],
            "validation_context": {"trusted_ca": {"filename": str(made.authority)}},
        },
    }
    protocol = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    return {
        "static_resources": {
            "listeners": [
                {
                    "address": _at(port),
                    "filter_chains": [
                        {
                            "transport_socket": {"name": "tls", "typed_config": tls},
                            "filters": [{"name": "http", "typed_config": http}],
                        }
                    ],
                }
            ],
            "clusters": [
                {
                    "name": "temporal",
                    "type": "STATIC",
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol
                    },
                    "load_assignment": {
                        "cluster_name": "temporal",
                        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _at(upstream)}}]}],
                    },
                }
            ],
        }
    }


def _at(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": LOOPBACK, "port_value": port}}
