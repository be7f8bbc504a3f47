"""The state directory: everything that one local deployment is, so that `up` can resume it and `down --wipe` remove it.

    deployment.json   what was asked for at the last `up`; also marks the directory as ours
    services.json     what runs now: written by the supervisor at every change
    ports.json        the port of each service, kept so that addresses survive a restart
    lock              held (flock) by the supervisor for as long as it lives
    kubeconfig, env   how people and programs reach it; `env` holds lines of `export K=V`
    certificates/     the cluster's authority, keys and certificates
    packages/         packages with areas of their own, which run beside Perdure's
    data/NAME/        one directory per service that remembers something
    logs/NAME.log     what each service prints; logs/audit.log holds every request to the API server

Files that others read while they are rewritten are replaced by rename, so no reader sees half a file. The lock goes
with the process that holds it, however that ends, so a stale lock cannot exist.
"""

from __future__ import annotations

import fcntl
import os
import random
import shlex
import shutil
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import IO

import platformdirs
from pydantic import TypeAdapter

from domain.model import Model
from localcloud.openstack.programs import OpenStackPrograms
from localcloud.processes import ProcessIdentity

LOOPBACK = "127.0.0.1"
# Below 32768, where Linux takes the local ports of outgoing connections from: a remembered port stays free.
PORTS = range(20_000, 32_000)

_ports = TypeAdapter(dict[str, int])


class Cloud(StrEnum):
    """The clouds that `--with` names."""

    AWS = "aws"
    OPENSTACK = "openstack"
    THREESCALE = "threescale"


class Binaries(Model):
    """Where the control plane's programs are."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path


class Plan(Model):
    """What one `up` asked for, resolved so far that the supervisor needs to look nothing up."""

    clouds: tuple[Cloud, ...]
    services: tuple[str, ...]
    binaries: Binaries | None
    """None when the user's own cluster is used."""
    kubeconfig: Path | None
    """The user's own, if they gave one."""
    openstack: OpenStackPrograms | None = None
    """None without that cloud."""
    fsync: bool = True
    """Whether the servers wait for the disk: without it what they wrote outlives them, but not the machine."""


class ServiceState(StrEnum):
    """Where a service is in its life."""

    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    UNHEALTHY = "unhealthy"
    RESTARTING = "restarting"
    DONE = "done"
    STOPPED = "stopped"


class ServiceStatus(Model):
    """One row of `perdure status`."""

    name: str
    state: ServiceState = ServiceState.WAITING
    healthy: bool = False
    process: ProcessIdentity | None = None
    port: int | None = None
    url: str | None = None
    since: datetime | None = None
    """Of its state, UTC."""
    restarts: int = 0
    """How often the supervisor had to start it again since `up`."""
    message: str = ""
    """Why it is not ready, or how it ended last."""

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return self.process.pid if self.process else None

    @property
    def settled(self) -> bool:
        """Whether nothing more is to be waited for."""
        return self.state in (ServiceState.READY, ServiceState.DONE)


class Running(Model):
    """The supervisor's own account of itself and its services."""

    supervisor: ProcessIdentity
    started: datetime
    stopping: bool = False
    notes: tuple[str, ...] = ()
    """What a person should know about this start, such as an address that changed."""
    services: tuple[ServiceStatus, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether everything that was asked for runs."""
        return not self.stopping and all(service.settled for service in self.services)

    def service(self, name: str) -> ServiceStatus | None:
        """The named row."""
        return next((service for service in self.services if service.name == name), None)


@dataclass(frozen=True)
class StateDirectory:
    """Paths and files of one deployment."""

    root: Path

    @classmethod
    def default(cls) -> StateDirectory:
        """PERDURE_STATE, else the user's state directory (XDG_STATE_HOME on Linux)."""
        named = os.environ.get("PERDURE_STATE")
        return cls(Path(named).absolute() if named else platformdirs.user_state_path("perdure") / "local")

    @property
    def kubeconfig(self) -> Path:
        """How to reach the cluster."""
        return self.root / "kubeconfig"

    @property
    def env_file(self) -> Path:
        """Lines of `export K=V`, to be sourced."""
        return self.root / "env"

    @property
    def to_enter(self) -> str:
        """What gives another shell `env` and, where it lives in an environment of its own, this `perdure`."""
        entered = f"source {shlex.quote(str(self.env_file))}"
        if sys.prefix == sys.base_prefix:
            return entered
        inside = Path(sys.prefix).is_relative_to(Path.cwd())
        environment = Path(sys.prefix).relative_to(Path.cwd()) if inside else Path(sys.prefix)
        return f"source {shlex.quote(f'{environment}/bin/activate')}; {entered}"

    @property
    def logs(self) -> Path:
        """One file per service."""
        return self.root / "logs"

    @property
    def certificates(self) -> Path:
        """The cluster's keys."""
        return self.root / "certificates"

    @property
    def packages(self) -> Path:
        """Packages with areas of their own."""
        return self.root / "packages"

    def log(self, name: str) -> Path:
        """The log of one service."""
        return self.logs / f"{name}.log"

    def data(self, name: str) -> Path:
        """The directory of one service, made when missing."""
        path = self.root / "data" / name
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def create(self, plan: Plan) -> None:
        """Make the directory, or refuse one that holds somebody else's files."""
        if self.is_taken() and not self.is_ours():
            raise StateDirectoryError(
                f"{self.root} is not empty and is no state directory of perdure; name another one"
            )
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.logs.mkdir(exist_ok=True)
        replace_file(self.root / "deployment.json", plan.model_dump_json(indent=2))

    def is_taken(self) -> bool:
        """Whether there is anything in it but packages, which can be installed before the first `up`."""
        return self.root.exists() and any(each != self.packages for each in self.root.iterdir())

    def is_ours(self) -> bool:
        """Whether an `up` made this directory."""
        return (self.root / "deployment.json").is_file()

    def plan(self) -> Plan:
        """What the last `up` asked for."""
        return Plan.model_validate_json((self.root / "deployment.json").read_bytes())

    def running(self) -> Running | None:
        """What the supervisor wrote last; it may have died since."""
        try:
            return Running.model_validate_json((self.root / "services.json").read_bytes())
        except FileNotFoundError:
            return None

    def write_running(self, running: Running) -> None:
        """Publish what runs."""
        replace_file(self.root / "services.json", running.model_dump_json(indent=2))

    def write_env(self, variables: Mapping[str, str]) -> None:
        """Write the file to source."""
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        replace_file(self.env_file, "".join(lines))

    def read_env(self) -> dict[str, str]:
        """The variables of the file to source."""
        words = shlex.split(self.env_file.read_text())
        return dict(word.split("=", 1) for word in words if "=" in word)

    def ports(self) -> dict[str, int]:
        """The port of each service at the last `up`."""
        try:
            return _ports.validate_json((self.root / "ports.json").read_bytes())
        except FileNotFoundError:
            return {}

    def write_ports(self, ports: Mapping[str, int]) -> None:
        """Remember the ports for the next `up`."""
        replace_file(self.root / "ports.json", _ports.dump_json(dict(ports), indent=2).decode())

    def lock(self) -> IO[str]:
        """Take the directory; raises BlockingIOError while a supervisor holds it. Closing the file gives it back."""
        file = (self.root / "lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        return file

    def is_locked(self) -> bool:
        """Whether a supervisor lives."""
        if not (self.root / "lock").exists():
            return False
        try:
            self.lock().close()
        except BlockingIOError:
            return True
        return False

    def wipe(self) -> None:
        """Remove what `up` made, and the directory when nothing else is in it."""
        if not self.is_ours():
            raise StateDirectoryError(f"{self.root} is no state directory of perdure; nothing was removed")
        for name in ("data", "certificates", "logs", "packages"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        # deployment.json marks the directory as ours, so it goes last: an interrupted wipe can be repeated.
        for name in ("kubeconfig", "env", "services.json", "ports.json", "lock", "deployment.json"):
            (self.root / name).unlink(missing_ok=True)
        if not any(self.root.iterdir()):
            self.root.rmdir()


class StateDirectoryError(Exception):
    """The directory holds something else."""


def choose_ports(
    names: tuple[str, ...], remembered: Mapping[str, int], reserved: list[IO[str]] | None = None
) -> tuple[dict[str, int], list[str]]:
    """A free port for each name, the remembered one where possible; and the names that had to move.

    With `reserved` the ports are reserved until those files are closed, or the process ends: of two deployments that
    begin at the same time, none takes a port on which the other's server does not listen yet.
    """
    chosen: dict[str, int] = {}
    moved: list[str] = []

    def take(port: int) -> bool:
        reservation = _reserve(port)
        if reservation is None:
            return False
        if reserved is None:
            reservation.close()
        else:
            reserved.append(reservation)
        return True

    for name in names:
        kept = remembered.get(name)
        if kept is not None and kept not in chosen.values() and take(kept):
            chosen[name] = kept
            continue
        if kept is not None:
            moved.append(name)
        taken = {*chosen.values(), *remembered.values()}
        chosen[name] = next(port for port in _random_ports() if port not in taken and take(port))
    return chosen, moved


def is_free(port: int) -> bool:
    """Whether a server could listen there, and no deployment has reserved it."""
    reservation = _reserve(port)
    if reservation is None:
        return False
    reservation.close()
    return True


def _reserve(port: int) -> IO[str] | None:
    """A free port's lock, held until it is closed; None if the port is taken or reserved."""
    directory = platformdirs.user_cache_path("perdure") / "ports"
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / str(port)).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        # As Go's and Python's servers do: without it a port in TIME_WAIT after a restart would look taken.
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            lock.close()
            return None
    return lock


def _random_ports() -> list[int]:
    return random.sample(PORTS, len(PORTS))


def replace_file(path: Path, text: str) -> None:
    """Write a private file so that a reader sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)
