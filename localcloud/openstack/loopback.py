"""A deployment's loopback networks: 127.64.0.0/16 and 127.65.0.0/16, or the next free pair.

Neutron's process reserves the pair by an abstract socket name, which the kernel releases even after a crash.
"""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from pathlib import Path

from localcloud.state import replace_file

PAIRS = range(64, 256, 2)

log = logging.getLogger("openstack")


@dataclass(frozen=True)
class Networks:
    first: int

    @property
    def tenant(self) -> str:
        return f"127.{self.first}.0.0/16"

    @property
    def external(self) -> str:
        return f"127.{self.first + 1}.0.0/16"

    @property
    def claim(self) -> str:
        return f"\0perdure-loopback-{self.first}"

    def is_free(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as candidate:
            try:
                candidate.bind(self.claim)
            except OSError:
                return False
        return True


def choose(home: Path) -> Networks:
    file = home / "loopback"
    if file.is_file():
        networks = Networks(int(file.read_text()))
        if not networks.is_free():
            log.warning("another deployment uses the addresses %s too", networks.tenant)
        return networks
    networks = next((pair for pair in map(Networks, PAIRS) if pair.is_free()), Networks(PAIRS[0]))
    home.mkdir(parents=True, exist_ok=True)
    replace_file(file, str(networks.first))
    return networks
