"""Command lines, environment and layout of OpenStack's services, for the table of services."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from localcloud.openstack import configuration, database, loopback
from localcloud.openstack.configuration import ADMIN_CLOUD, APIS, CLOUD, Layout
from localcloud.openstack.loopback import Networks
from localcloud.openstack.programs import OpenStackPrograms
from localcloud.state import LOOPBACK, StateDirectory

# Concurrent requests per API. Those that wait for another service hold a thread.
THREADS = {"keystone": 8, "placement": 4, "glance": 4, "neutron": 8, "nova": 8}


def layout(state: StateDirectory, ports: Mapping[str, int]) -> Layout:
    return Layout(
        home=state.data("openstack"),
        socket=database.socket_of(state.data("mariadb")),
        urls={name: f"http://{LOOPBACK}:{ports[name]}" for name in APIS},
    )


def prepare(state: StateDirectory, ports: Mapping[str, int], programs: OpenStackPrograms) -> None:
    placed = layout(state, ports)
    configuration.write(placed, programs)
    loopback.choose(placed.home)


def mariadb(programs: OpenStackPrograms, state: StateDirectory) -> list[str]:
    data = state.data("mariadb") / "tables"
    listening = database.socket_of(state.data("mariadb"))
    return [
        *(sys.executable, "-m", "localcloud.openstack.database"),
        *("--schemas", str(programs.schemas), "--data", str(data), "--socket", str(listening)),
        *database.server(programs.mariadb, data, listening),
    ]


def database_environment(programs: OpenStackPrograms) -> dict[str, str]:
    source_root = str(Path(__file__).parents[2])
    return {**database.environment(programs.mariadb), "PYTHONPATH": source_root}


def api(programs: OpenStackPrograms, name: str, port: int) -> list[str]:
    return [str(programs.python), "-m", "perdure_openstack.serve", name, str(port), str(THREADS[name])]


def preparation(programs: OpenStackPrograms) -> list[str]:
    return [str(programs.python), "-m", "perdure_openstack.prepare"]


def environment(state: StateDirectory, ports: Mapping[str, int]) -> dict[str, str]:
    placed = layout(state, ports)
    networks = _networks(placed)
    return {
        **configuration.environment(placed, os.environ),
        "OS_CLIENT_CONFIG_FILE": str(placed.clouds),
        "PERDURE_OPENSTACK_ADMIN": ADMIN_CLOUD,
        "PERDURE_OPENSTACK_PROJECT": CLOUD,
        "PERDURE_OPENSTACK_TENANT": networks.tenant,
        "PERDURE_OPENSTACK_EXTERNAL": networks.external,
        "PERDURE_OPENSTACK_CLAIM": networks.claim[1:],
        "PERDURE_OPENSTACK_GROUND": call(state),
    }


def ground(state: StateDirectory) -> Path:
    return state.data("openstack") / "ground"


def project(state: StateDirectory) -> Path:
    return state.data("openstack") / "project.env"


def call(state: StateDirectory) -> str:
    """The abstract socket name of the machine host; a path would be too long."""
    return f"perdure-machines-{hashlib.sha256(os.fsencode(state.root)).hexdigest()[:16]}"


def public_environment(state: StateDirectory, ports: Mapping[str, int]) -> dict[str, str]:
    placed = layout(state, ports)
    return {
        "OS_CLIENT_CONFIG_FILE": str(placed.clouds),
        "OS_CLOUD": CLOUD,
        "OS_AUTH_URL": f"{placed.urls['keystone']}/v3",
    }


def _networks(placed: Layout) -> Networks:
    """The chosen networks, or the first pair before one is chosen, which suffices for `perdure status`."""
    file = placed.home / "loopback"
    return Networks(int(file.read_text())) if file.is_file() else Networks(loopback.PAIRS[0])
