"""The state directory of a local deployment: `up` resumes it, `down --wipe` removes it.

docs/local-deployment.md lists its files. `deployment.json`, the plan of the last `up`, marks the directory as ours;
`lock` is held (flock) while a supervisor lives. Files with concurrent readers are replaced by rename.
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
from pydantic import TypeAdapter, ValidationError

from domain.model import Model
from localcloud.openstack.programs import OpenStackPrograms
from localcloud.processes import ProcessIdentity
from localcloud.temporal.programs import ProductionTemporal

LOOPBACK = "127.0.0.1"
# Linux takes the local ports of outgoing connections from 32768 upwards, so a remembered port below stays free.
PORTS = range(20_000, 32_000)

_ports = TypeAdapter(dict[str, int])


class Cloud(StrEnum):
    AWS = "aws"
    OPENSTACK = "openstack"
    THREESCALE = "threescale"


class Binaries(Model):
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path


class Plan(Model):
    clouds: tuple[Cloud, ...]
    services: tuple[str, ...]
    binaries: Binaries | None
    """None when the user's own cluster is used."""
    kubeconfig: Path | None
    """The user's own kubeconfig, if they gave one."""
    openstack: OpenStackPrograms | None = None
    """None if the OpenStack cloud is not requested."""
    temporal: ProductionTemporal | None = None
    """None if Temporal's development server runs, or no Temporal at all."""
    fsync: bool = True
    """Whether the servers sync writes to the disk; otherwise writes survive a server's crash, but not the machine's."""


class ServiceState(StrEnum):
    WAITING = "waiting"
    STARTING = "starting"
    READY = "ready"
    UNHEALTHY = "unhealthy"
    RESTARTING = "restarting"
    DONE = "done"
    STOPPED = "stopped"


class ServiceStatus(Model):
    name: str
    state: ServiceState = ServiceState.WAITING
    healthy: bool = False
    process: ProcessIdentity | None = None
    port: int | None = None
    url: str | None = None
    since: datetime | None = None
    """When the service entered its state, in UTC."""
    restarts: int = 0
    """How often the supervisor had to start it again since `up`."""
    message: str = ""
    """Why the service is not ready, or how it last ended."""

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    @property
    def settled(self) -> bool:
        return self.state in (ServiceState.READY, ServiceState.DONE)


class Running(Model):
    supervisor: ProcessIdentity
    started: datetime
    stopping: bool = False
    notes: tuple[str, ...] = ()
    """What a person should know about this start, such as an address that changed."""
    services: tuple[ServiceStatus, ...] = ()

    @property
    def ready(self) -> bool:
        return not self.stopping and all(service.settled for service in self.services)

    def service(self, name: str) -> ServiceStatus | None:
        return next((service for service in self.services if service.name == name), None)


@dataclass(frozen=True)
class StateDirectory:
    root: Path

    @classmethod
    def default(cls) -> StateDirectory:
        named = os.environ.get("PERDURE_STATE")
        return cls(Path(named).absolute() if named else platformdirs.user_state_path("perdure") / "local")

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def env_file(self) -> Path:
        return self.root / "env"

    @property
    def to_enter(self) -> str:
        """The shell command that activates `perdure`'s virtual environment, if any, and sources `env`."""
        entered = f"source {shlex.quote(str(self.env_file))}"
        if sys.prefix == sys.base_prefix:
            return entered
        inside = Path(sys.prefix).is_relative_to(Path.cwd())
        environment = Path(sys.prefix).relative_to(Path.cwd()) if inside else Path(sys.prefix)
        return f"source {shlex.quote(f'{environment}/bin/activate')}; {entered}"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def certificates(self) -> Path:
        return self.root / "certificates"

    @property
    def packages(self) -> Path:
        return self.root / "packages"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def data(self, name: str) -> Path:
        path = self.root / "data" / name
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path

    def claim(self) -> None:
        """Make the directory; raises StateDirectoryError or OSError."""
        if self.is_taken() and not self.is_ours():
            raise StateDirectoryError(
                f"{self.root} is not empty and is not a state directory of perdure; name another one"
            )
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(self.root, os.W_OK):
            raise StateDirectoryError(f"{self.root} cannot be written; name another directory")

    def create(self, plan: Plan) -> None:
        self.claim()
        self.logs.mkdir(exist_ok=True)
        replace_file(self.root / "deployment.json", plan.model_dump_json(indent=2))

    def is_taken(self) -> bool:
        """Whether the directory contains more than `packages`, which may be installed before the first `up`."""
        return self.root.exists() and any(each != self.packages for each in self.root.iterdir())

    def is_ours(self) -> bool:
        return (self.root / "deployment.json").is_file()

    def plan(self) -> Plan:
        return Plan.model_validate_json((self.root / "deployment.json").read_bytes())

    def running(self) -> Running | None:
        """The state last published, None if unreadable. The supervisor may be dead."""
        try:
            return Running.model_validate_json((self.root / "services.json").read_bytes())
        except (FileNotFoundError, ValidationError):  # a computer's crash may leave an empty file
            return None

    def write_running(self, running: Running) -> None:
        replace_file(self.root / "services.json", running.model_dump_json(indent=2))

    def write_env(self, variables: Mapping[str, str]) -> None:
        lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
        replace_file(self.env_file, "".join(lines))

    def read_env(self) -> dict[str, str]:
        words = shlex.split(self.env_file.read_text())
        return dict(word.split("=", 1) for word in words if "=" in word)

    def ports(self) -> dict[str, int]:
        try:
            return _ports.validate_json((self.root / "ports.json").read_bytes())
        except (FileNotFoundError, ValidationError):
            return {}

    def write_ports(self, ports: Mapping[str, int]) -> None:
        replace_file(self.root / "ports.json", _ports.dump_json(dict(ports), indent=2).decode())

    def lock(self) -> IO[str]:
        """Lock the directory until the file is closed; raises BlockingIOError if it is locked."""
        file = (self.root / "lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise
        return file

    def is_locked(self) -> bool:
        if not (self.root / "lock").exists():
            return False
        try:
            self.lock().close()
        except BlockingIOError:
            return True
        return False

    def wipe(self) -> None:
        if not self.is_ours():
            raise StateDirectoryError(f"{self.root} is not a state directory of perdure; nothing was removed")
        for name in ("data", "certificates", "logs", "packages"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        # deployment.json marks the directory as ours, so it goes last: an interrupted wipe can be repeated.
        for name in ("kubeconfig", "env", "services.json", "ports.json", "lock", "deployment.json"):
            for path in (*self.root.glob(f".{name}.*"), self.root / name):  # the former if `replace_file` was killed
                path.unlink(missing_ok=True)
        if not any(self.root.iterdir()):
            self.root.rmdir()


class StateDirectoryError(Exception):
    pass


def choose_ports(
    names: tuple[str, ...], remembered: Mapping[str, int], reserved: list[IO[str]] | None = None
) -> tuple[dict[str, int], list[str]]:
    """A free port for each name, preferably the remembered one, and the names whose port changed.

    Other starting deployments avoid these ports until the lock files appended to `reserved` are closed.
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
        port = remembered.get(name)
        if port is not None and port not in chosen.values() and take(port):
            chosen[name] = port
            continue
        if port is not None:
            moved.append(name)
        taken = {*chosen.values(), *remembered.values()}
        chosen[name] = next(port for port in _random_ports() if port not in taken and take(port))
    return chosen, moved


def is_free(port: int) -> bool:
    reservation = _reserve(port)
    if reservation is None:
        return False
    reservation.close()
    return True


def _reserve(port: int) -> IO[str] | None:
    directory = platformdirs.user_cache_path("perdure") / "ports"
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / str(port)).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
        # Otherwise a port in TIME_WAIT would look used; Go's and Python's servers set it too.
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
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)
