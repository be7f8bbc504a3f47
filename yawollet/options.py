"""The agent's options: the flags of yawol's agent, and flags of our own for values that are fixed in yawol's agent."""

from __future__ import annotations

import socket
from datetime import timedelta
from pathlib import Path

import psutil

from domain.loadbalancers.go_formats import parse_duration
from domain.model import Model

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - yawol's default; a machine's security group decides which clients may connect
STATS_FILE = "/tmp/keepalived.stats"  # noqa: S108 - where the machine image puts it
_SHORTEST, _LONGEST = timedelta(seconds=5), timedelta(seconds=170)
_OFF = ("", "0")


class Address(Model):
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Options(Model):
    namespace: str  # of the LoadBalancer and its machine
    load_balancer: str
    machine: str
    listen_address: str = EVERY_ADDRESS  # where Envoy listens: on a real machine, the virtual address
    requeue: timedelta = timedelta(seconds=30)  # the longest time between two passes
    stats_file: Path | None = Path(STATS_FILE)  # the file that keepalived writes on SIGUSR2; None without keepalived
    pid_file: Path = Path("/run/keepalived.pid")
    health: Address | None = Address(host="127.0.0.1", port=8080)  # where readyz is served; None: nowhere
    metrics: Address | None = None  # where the process's own metrics are served; None: nowhere
    kubeconfig: str = ""  # the path of a file; if empty, the environment determines the cluster
    ads: Address = Address(host="127.0.0.1", port=18000)  # where Envoy's configuration is served
    admin: Address = Address(host="127.0.0.1", port=9000)  # the address of Envoy's admin interface
    snapshot_file: Path = Path("/var/lib/yawollet/snapshot.json")  # the file with the accepted snapshot


def server_address(text: str) -> Address | None:
    """An address such as `127.0.0.1:8080` or `:8080`; None for `0` or empty, which turn a server off. Other texts raise
    ValueError.
    """
    if text in _OFF:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise ValueError(f"{text!r} is not an address such as 127.0.0.1:8080")
    return Address(host=host.strip("[]") or EVERY_ADDRESS, port=int(port))


def requeue_time(text: str) -> timedelta:
    """The time between two passes, within yawol's limits, from seconds or a Go duration. Other texts raise
    ValueError.
    """
    found = timedelta(seconds=int(text)) if text.isdecimal() else parse_duration(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration")
    return min(max(found, _SHORTEST), _LONGEST)


def interface_address(name: str) -> str:
    """The interface's last IPv4 address; raises ValueError if it has none."""
    addresses = [each.address for each in psutil.net_if_addrs().get(name, ()) if each.family is socket.AF_INET]
    if not addresses:
        raise ValueError(f"interface {name!r} has no IPv4 address")
    return addresses[-1]
