"""Command lines, environments and configuration of a production Temporal, for the supervisor's table.

    postgres ── temporal-schema (once) ── temporal ──┬── temporal-namespace (once)
                                                     └── temporal-ui, codec

The server's APIs require TLS and a client certificate of the deployment's authority. The web UI and the codec server
listen on loopback without TLS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from localcloud.state import LOOPBACK, StateDirectory, replace_file
from localcloud.temporal import postgres
from localcloud.temporal.certificates import SERVER_NAME, Certificates
from localcloud.temporal.choice import Database, database_of
from localcloud.temporal.programs import ProductionTemporal

PLUGIN = "postgres12"
# Into how many parts the histories are divided; fixed when the databases are created.
HISTORY_SHARDS = 4
# The names of each service's two ports: for clients, and for membership, by which the services find each other.
_RPC = {
    "frontend": ("temporal", "temporal-membership"),
    "history": ("temporal-history", "temporal-history-membership"),
    "matching": ("temporal-matching", "temporal-matching-membership"),
    "worker": ("temporal-worker", "temporal-worker-membership"),
}
PORTS = tuple(dict.fromkeys(port for ports in _RPC.values() for port in ports))


def certificates(state: StateDirectory) -> Certificates:
    return Certificates(state.certificates / "temporal")


def database(temporal: ProductionTemporal, state: StateDirectory, ports: Mapping[str, int]) -> Database:
    if temporal.url:
        return database_of(temporal.url)
    password = postgres.password(_password_file(state))
    return Database(host=LOOPBACK, port=ports["postgres"], user=postgres.USER, password=password, name="temporal")


def prepare(state: StateDirectory, ports: Mapping[str, int], temporal: ProductionTemporal) -> None:
    certificates(state).ensure()
    home = state.data("temporal-production")
    server = server_configuration(database(temporal, state, ports), certificates(state), ports)
    replace_file(home / "server.yaml", yaml.safe_dump(server, sort_keys=False))
    replace_file(home / "ui.yaml", yaml.safe_dump(ui_configuration(certificates(state), ports), sort_keys=False))


def postgres_server(temporal: ProductionTemporal, state: StateDirectory, port: int, *, fsync: bool) -> list[str]:
    assert temporal.postgres is not None
    data = state.data("postgres") / "cluster"
    return [
        *(sys.executable, "-m", "localcloud.temporal.postgres"),
        *("--data", str(data), "--password", str(_password_file(state))),
        *postgres.server(temporal.postgres, data, port, fsync=fsync),
    ]


def schema(temporal: ProductionTemporal, state: StateDirectory) -> list[str]:
    command = [sys.executable, "-m", "localcloud.temporal.schema", str(temporal.sql_tool)]
    return command if temporal.url else [*command, "--own", str(state.data("postgres") / "schema-made")]


def schema_environment(wanted: Database) -> dict[str, str]:
    """The SQL tool's environment, which has the password so that the command line does not show it."""
    return {
        **os.environ,
        "SQL_PLUGIN": PLUGIN,
        "SQL_HOST": wanted.host,
        "SQL_PORT": str(wanted.port),
        "SQL_USER": wanted.user,
        "SQL_PASSWORD": wanted.password,
        "SQL_DATABASE": wanted.name,
        "SQL_CONNECT_ATTRIBUTES": urlencode(wanted.attributes),
    }


def server(temporal: ProductionTemporal, state: StateDirectory) -> list[str]:
    """The server's command line. Certificates decide who may connect, so no authorizer is configured."""
    file = state.data("temporal-production") / "server.yaml"
    return [str(temporal.server), "--config-file", str(file), "--allow-no-auth", "start"]


def ui(temporal: ProductionTemporal, state: StateDirectory) -> list[str]:
    return [str(temporal.ui), "--root", "/", "--config", str(state.data("temporal-production")), "--env", "ui", "start"]


def server_configuration(wanted: Database, proofs: Certificates, ports: Mapping[str, int]) -> dict[str, Any]:
    certificate, key = map(str, proofs.server)
    authority = [str(proofs.authority)]
    listening = {"certFile": certificate, "keyFile": key, "requireClientAuth": True, "clientCaFiles": authority}
    calling = {"serverName": SERVER_NAME, "rootCaFiles": authority}
    frontend = f"{LOOPBACK}:{ports['temporal']}"
    services = {
        name: {"rpc": {"grpcPort": ports[port], "membershipPort": ports[membership], "bindOnIP": LOOPBACK}}
        for name, (port, membership) in _RPC.items()
    }
    services["frontend"]["rpc"]["httpPort"] = ports["temporal-http"]
    return {
        "log": {"stdout": True, "level": "warn"},
        "persistence": {
            "numHistoryShards": HISTORY_SHARDS,
            "defaultStore": "default",
            "visibilityStore": "visibility",
            "datastores": {
                "default": {"sql": _datastore(wanted, wanted.name, connections=20)},
                "visibility": {"sql": _datastore(wanted, wanted.visibility, connections=10)},
            },
        },
        "global": {
            "membership": {"maxJoinDuration": "30s", "broadcastAddress": LOOPBACK},
            "metrics": {
                "prometheus": {"timerType": "histogram", "listenAddress": f"{LOOPBACK}:{ports['temporal-metrics']}"}
            },
            "tls": {
                "internode": {"server": listening, "client": calling},
                "frontend": {"server": listening, "client": calling},
                "systemWorker": {"certFile": certificate, "keyFile": key, "client": calling},
            },
        },
        "services": services,
        "clusterMetadata": {
            "enableGlobalNamespace": False,
            "failoverVersionIncrement": 10,
            "masterClusterName": "active",
            "currentClusterName": "active",
            "clusterInformation": {
                "active": {
                    "enabled": True,
                    "initialFailoverVersion": 1,
                    "rpcName": "frontend",
                    "rpcAddress": frontend,
                    "httpAddress": f"{LOOPBACK}:{ports['temporal-http']}",
                }
            },
        },
        "dcRedirectionPolicy": {"policy": "noop"},
        "publicClient": {"hostPort": frontend},
    }


def ui_configuration(proofs: Certificates, ports: Mapping[str, int]) -> dict[str, Any]:
    certificate, key = map(str, proofs.client)
    return {
        "temporalGrpcAddress": f"{LOOPBACK}:{ports['temporal']}",
        "host": LOOPBACK,
        "port": ports["temporal-ui"],
        "enableUi": True,
        "defaultNamespace": "default",
        "disableNewsFetch": True,
        "hideLogs": True,
        "cors": {"allowOrigins": [ui_url(ports)], "cookieInsecure": True},
        "tls": {
            "caFile": str(proofs.authority),
            "certFile": certificate,
            "keyFile": key,
            "enableHostVerification": True,
            "serverName": SERVER_NAME,
        },
        # The codec server may be left out (`--without codec`).
        **({"codec": {"endpoint": f"http://{LOOPBACK}:{ports['codec']}"}} if "codec" in ports else {}),
    }


def ui_url(ports: Mapping[str, int]) -> str:
    return f"http://{LOOPBACK}:{ports['temporal-ui']}"


def public_environment(state: StateDirectory) -> dict[str, str]:
    found = certificates(state)
    certificate, key = map(str, found.client)
    return {
        "TEMPORAL_TLS_CLIENT_CERT_PATH": certificate,
        "TEMPORAL_TLS_CLIENT_KEY_PATH": key,
        "TEMPORAL_TLS_SERVER_CA_CERT_PATH": str(found.authority),
        "TEMPORAL_TLS_SERVER_NAME": SERVER_NAME,
        "PERDURE_TEMPORAL_KEYS": os.environ.get("PERDURE_TEMPORAL_KEYS") or str(found.payload_keys),
    }


def _datastore(wanted: Database, name: str, connections: int) -> dict[str, Any]:
    return {
        "pluginName": PLUGIN,
        "databaseName": name,
        "connectAddr": f"{_bracketed(wanted.host)}:{wanted.port}",
        "connectProtocol": "tcp",
        "connectAttributes": dict(wanted.attributes),
        "user": wanted.user,
        "password": wanted.password,
        "maxConns": connections,
        "maxIdleConns": connections,
        "maxConnLifetime": "1h",
    }


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _password_file(state: StateDirectory) -> Path:
    return state.data("postgres") / "password"
