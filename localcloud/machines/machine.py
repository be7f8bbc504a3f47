"""One machine: its files, its programs, its boot and faults.

Its directory is its disk, which outlives reboots and the host. The image's fixed paths are mapped into it, and the
image's fixed ports to free ones on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp

from domain.loadbalancers.envoy_bootstrap import envoy_bootstrap
from localcloud.machines import user_data, vrrp
from localcloud.machines.contract import Fare, MachineState, MachineView, Port, Server
from localcloud.machines.programs import Program
from localcloud.state import LOOPBACK, replace_file

PORTS = ("ads", "admin", "health")

_SNAPSHOT_SECONDS = 0.2
_CHECK_TIMEOUT = aiohttp.ClientTimeout(total=2)


class Machine:
    def __init__(
        self,
        server: Server,
        birth: user_data.Birth,
        directory: Path,
        ports: Mapping[str, int],
        environment: Mapping[str, str],
        on_change: Callable[[], None],
    ) -> None:
        self.server = server
        self.ports: tuple[Port, ...] = ()
        """The ports of the load balancer that the machine's Envoy has accepted."""
        self.up = False
        self.own_ports = dict(ports)
        self._birth = birth
        self._directory = directory
        self._on_change = on_change
        self._began = time.monotonic()
        self._fare = Fare()
        self._fare_changed = asyncio.Event()
        self._ready = False
        self._statistics = vrrp.Statistics()
        self._written = 0.0
        self._envoy = self._program("envoy", self._envoy_command(), environment)
        self._agent = self._program("agent", self._agent_command(), environment)

    @property
    def name(self) -> str:
        return self.server.name

    @property
    def address(self) -> str:
        return self.server.addresses[0]

    @property
    def virtual_address(self) -> str:
        return self._birth.vrrp.virtual_address

    @property
    def priority(self) -> int | None:
        """The priority in keepalived's election; None if the machine does not take part."""
        if not (self.up and self._fare.keepalived and user_data.KEEPALIVED_SERVICE in self._birth.services):
            return None
        numbers = self._birth.vrrp
        envoy = numbers.envoy_weight if self._envoy.pid is not None else 0
        return numbers.priority + envoy + (numbers.agent_weight if self._ready else 0)

    def fare(self, fare: Fare) -> None:
        if fare != self._fare:
            self._fare = fare
            self._fare_changed.set()

    def turn(self, *, master: bool) -> None:
        """Make the machine master or standby, like keepalived, and rewrite its statistics."""
        now = time.monotonic()
        if self.priority is None:
            self._pid_file.unlink(missing_ok=True)
            self._statistics.turn(master=False, now=now)
            return
        if self._statistics.turn(master=master, now=now) or now - self._written >= vrrp.STATISTICS_SECONDS:
            replace_file(self._statistics_file, self._statistics.text())
            # This process simulates keepalived.
            replace_file(self._pid_file, f"{os.getpid()}\n")
            self._written = now

    async def run(self) -> None:
        self._write_disk()
        async with asyncio.TaskGroup() as running:
            for each in (self._fares(), self._envoy.run(), self._agent.run(), self._snapshots(), self._checks()):
                running.create_task(each)

    def view(self) -> MachineView:
        return MachineView(
            server_id=self.server.id,
            name=self.name,
            state=MachineState.UP if self.up else MachineState.BOOTING,
            message="" if self._fare.boots else "a fault prevents it from booting",
            address=self.address,
            virtual_address=self.virtual_address,
            master=self._statistics.master,
            priority=self.priority or 0,
            ports=self.ports,
            agent_pid=self._agent.pid,
            envoy_pid=self._envoy.pid,
            agent_health=self._local("health"),
            envoy_admin=self._local("admin"),
            directory=str(self._directory),
        )

    async def _fares(self) -> None:
        while True:
            self._fare_changed.clear()
            left = self._began + self._fare.boot_delay - time.monotonic()
            self.up = self._fare.boots and left <= 0
            for program, service, runs in (
                (self._envoy, user_data.ENVOY, self._fare.envoy),
                (self._agent, user_data.AGENT, self._fare.agent),
            ):
                program.restart_delay = self._fare.restart_delay
                program.switch(on=self.up and runs and service in self._birth.services)
            self._on_change()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left if self._fare.boots and left > 0 else None):
                    await self._fare_changed.wait()

    async def _snapshots(self) -> None:
        seen = 0
        while True:
            with contextlib.suppress(FileNotFoundError):
                changed = self._snapshot_file.stat().st_mtime_ns
                if changed != seen:
                    seen = changed
                    self.ports = accepted_ports(self._snapshot_file.read_text())
                    self._on_change()
            await asyncio.sleep(_SNAPSHOT_SECONDS)

    async def _checks(self) -> None:
        refused = 0
        async with aiohttp.ClientSession(timeout=_CHECK_TIMEOUT) as client:
            while True:
                well = self._agent.pid is not None and await answers(client, f"http://{self._local('health')}/readyz")
                refused = 0 if well else refused + 1
                ready = well or (self._ready and refused < vrrp.FALL)
                if ready != self._ready:
                    self._ready = ready
                    self._on_change()
                await asyncio.sleep(vrrp.CHECK_SECONDS)

    def _program(self, name: str, command: list[str], environment: Mapping[str, str]) -> Program:
        log_file = self._directory / f"{name}.log"
        return Program(f"{self.name}'s {name}", command, environment, log_file, self._on_change)

    def _write_disk(self) -> None:
        for each in self._birth.files:
            path = self._mapped(each.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, each.mode & 0o700)
            with os.fdopen(descriptor, "wb") as file:
                file.write(each.content)
        bootstrap = envoy_bootstrap(agent=(LOOPBACK, self.own_ports["ads"]), admin=(LOOPBACK, self.own_ports["admin"]))
        replace_file(self._bootstrap_file, json.dumps(bootstrap))

    def _envoy_command(self) -> list[str]:
        program = Path(sys.executable).with_name("envoy")
        found = str(program) if program.exists() else shutil.which("envoy")
        if found is None:
            raise FileNotFoundError("no `envoy` program: install `perdure[local]` (./run does)")
        # The Envoys of all machines share this computer: each needs a base id of its own, and one thread is enough.
        flags = ("--use-dynamic-base-id", "--concurrency", "1", "--log-level", "warning")
        return [found, "-c", str(self._bootstrap_file), *flags]

    def _agent_command(self) -> list[str]:
        given = dict(self._birth.arguments)
        if given.get("--listen-address") == self.virtual_address:
            given["--listen-address"] = self.address
        for flag, value in given.items():
            if any(value == each.path for each in self._birth.files):
                given[flag] = str(self._mapped(value))
        given |= {
            "--health-probe-bind-address": self._local("health"),
            "--ads-bind-address": self._local("ads"),
            "--envoy-admin-address": self._local("admin"),
            "--keepalived-stats-file": str(self._statistics_file),
            "--keepalived-pid-file": str(self._pid_file),
            "--snapshot-file": str(self._snapshot_file),
        }
        return [sys.executable, "-m", "yawollet.command", *(f"{flag}={value}" for flag, value in given.items())]

    def _mapped(self, path: str) -> Path:
        found = (self._directory / path.lstrip("/")).resolve()
        if not found.is_relative_to(self._directory.resolve()):
            raise user_data.ForeignError(f"{path} is outside the machine's directory")
        return found

    def _local(self, port: str) -> str:
        return f"{LOOPBACK}:{self.own_ports[port]}"

    @property
    def _bootstrap_file(self) -> Path:
        return self._mapped("/etc/yawol/envoy.yaml")

    @property
    def _snapshot_file(self) -> Path:
        return self._mapped("/var/lib/yawollet/snapshot.json")

    @property
    def _statistics_file(self) -> Path:
        return self._mapped("/keepalived.stats")

    @property
    def _pid_file(self) -> Path:
        return self._mapped("/keepalived.pid")


def accepted_ports(saved: str) -> tuple[Port, ...]:
    named = (name.partition("-") for name in json.loads(saved)["snapshot"]["listeners"])
    return tuple(Port(protocol=protocol, number=int(number)) for protocol, _, number in named)


async def answers(client: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with client.get(url) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False
