"""Input for the machine host: the servers that should run, and the destination of each floating IP.

The files are authoritative: the machine host (`localcloud.machines`) reads all of them each time, so a lost call does
no harm. They contain tokens, so the directory is private.
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
    try:
        found: dict[str, Any] = json.loads((directory / f"{name}.json").read_text())
    except FileNotFoundError:
        return None
    return found


def remove(directory: Path, name: str) -> None:
    (directory / f"{name}.json").unlink(missing_ok=True)
    _call()


def _call() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as caller:
        try:
            caller.sendto(b"look", "\0" + os.environ["PERDURE_OPENSTACK_GROUND"])
        except OSError:
            return  # the host does not listen, or has enough calls queued
