"""What the machine host is told: the servers that run here, and where each floating address leads.

A hypervisor starts a guest and hands it its user data; a router leads floating addresses to fixed ones. Nova's driver
and Neutron's router, which do neither, write down here what they were asked for, one file each, and call the machine
host (`localcloud.machines`), which does it. The files are what counts: a call that nobody hears is made up for when the
machine host starts, as it then reads them all.

A server's file holds its user data, and with it a token; the directory is for this user alone.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

from . import environment

_GROUND = Path(environment.HOME) / "ground"
SERVERS = _GROUND / "servers"
FLOATING_IPS = _GROUND / "floatingips"

_writing = threading.Lock()


def write(directory: Path, name: str, document: dict[str, Any]) -> None:
    """Put one thing down, whole or not at all."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    text = json.dumps(document)
    with _writing:
        temporary = directory / f".{name}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        temporary.replace(directory / f"{name}.json")
    _call()


def read(directory: Path, name: str) -> dict[str, Any] | None:
    """What was put down, None if nothing was."""
    try:
        found: dict[str, Any] = json.loads((directory / f"{name}.json").read_text())
    except FileNotFoundError:
        return None
    return found


def remove(directory: Path, name: str) -> None:
    """It is gone."""
    (directory / f"{name}.json").unlink(missing_ok=True)
    _call()


def _call() -> None:
    """Say that something has changed, to whoever listens."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as caller:
        try:
            caller.sendto(b"look", "\0" + os.environ["PERDURE_OPENSTACK_GROUND"])
        except OSError:
            return  # nobody is there, or has as many calls before them as will ever be needed
