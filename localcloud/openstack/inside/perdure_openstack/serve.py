"""One OpenStack API under waitress: `python -m perdure_openstack.serve SERVICE PORT THREADS`.

The port opens once the service is prepared: Keystone has its catalog (`identity`), and Nova's other services run in
this process (`compute`).
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
from pathlib import Path

import waitress

from . import environment
from .front import Front

APPLICATIONS = {
    "keystone": "keystone.wsgi.api",
    "placement": "placement.wsgi.api",
    "glance": "glance.wsgi.api",
    "neutron": "neutron.wsgi.api",
    "nova": "nova.wsgi.osapi_compute",
}


def main() -> None:
    service, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sys.argv = [service]  # oslo.config would read further arguments as its own
    application = importlib.import_module(APPLICATIONS[service]).application
    if service == "keystone":
        from . import identity

        identity.ensure()
    if service == "neutron":
        _hold_addresses()
    front = Front(application, service, Path(environment.HOME) / "faults")
    if service == "nova":
        from . import compute

        compute.start(front.boots)
    waitress.serve(
        front, host=environment.LOOPBACK, port=port, threads=threads, ident=None, _quiet=True, channel_timeout=300
    )


def _hold_addresses() -> None:
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        claim.bind("\0" + os.environ["PERDURE_OPENSTACK_CLAIM"])
    except OSError as error:
        print(f"another deployment uses the same loopback networks: {error}", file=sys.stderr)
    _held.append(claim)


_held: list[socket.socket] = []


if __name__ == "__main__":
    main()
