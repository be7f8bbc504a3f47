"""All machines and addresses, reconciled at every call of Nova or Neutron and at every change of machines or faults.

Reconciling is idempotent, and also repeated every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from domain.model import Model
from localcloud.machines import user_data, vrrp
from localcloud.machines.contract import Fares, FloatingIp, HostView, LeadView, MachineState, MachineView, Port, Server
from localcloud.machines.machine import PORTS, Machine
from localcloud.machines.router import Lead
from localcloud.state import choose_ports, replace_file

M = TypeVar("M", bound=Model)

# The longest pause. Reconciling rewrites keepalived's statistics, and retries addresses that another program used.
_AT_LEAST_SECONDS = vrrp.STATISTICS_SECONDS / 4

log = logging.getLogger("machines")


class Host:
    def __init__(self, ground: Path, home: Path, environment: Mapping[str, str]) -> None:
        """`ground` is the directory where Nova and Neutron write what to run; machines' programs get `environment`."""
        self._ground = ground
        self._home = home
        self._environment = environment
        self._changed = asyncio.Event()
        self._fares = self._saved_fares()
        self._machines: dict[str, _Running] = {}
        self._foreign: dict[str, tuple[Server, str]] = {}
        self._masters: dict[str, str | None] = {}  # server ids by virtual address
        self._leads: dict[str, Lead] = {}
        self._unreadable: set[Path] = set()
        self._led: dict[str, str] = {}  # virtual addresses by floating IP

    @property
    def fares(self) -> Fares:
        return self._fares

    def set_fares(self, fares: Fares) -> None:
        replace_file(self._fares_file, fares.model_dump_json())
        self._fares = fares
        self._changed.set()

    async def run(self, call: str) -> None:
        self._home.mkdir(parents=True, exist_ok=True, mode=0o700)
        async with self._called(call):
            try:
                while True:
                    self._changed.clear()
                    await self._settle()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(_AT_LEAST_SECONDS):
                            await self._changed.wait()
            finally:
                for lead in self._leads.values():
                    await lead.serve(())
                for server_id in list(self._machines):
                    await self._stop(server_id)

    def view(self) -> HostView:
        machines = [each.machine.view() for each in self._machines.values()]
        for server, reason in self._foreign.values():
            state = MachineState.FOREIGN if server.running else MachineState.OFF
            machines.append(MachineView(server_id=server.id, name=server.name, state=state, message=reason))
        return HostView(
            machines=tuple(sorted(machines, key=lambda each: each.name)),
            leads=tuple(self._lead_view(address) for address in sorted(self._leads)),
        )

    async def _settle(self) -> None:
        servers = {each.id: each for each in self._requested("servers", Server)}
        for server_id in [each for each in self._machines if not _stays(self._machines[each], servers.get(each))]:
            await self._stop(server_id)
            if server_id not in servers:
                shutil.rmtree(self._directory(server_id), ignore_errors=True)
        self._foreign = {}
        for server in servers.values():
            self._start(server)
        for running in self._machines.values():
            running.machine.fare(self._fares.of(running.machine.name))
        self._elect()
        await self._lead()

    def _start(self, server: Server) -> None:
        if server.id in self._machines:
            return
        if not server.running:
            self._foreign[server.id] = (server, "SHUTOFF")
            return
        try:
            birth = user_data.read(server.user_data)
            if not server.addresses:
                raise user_data.ForeignError("it has no address")
            directory = self._directory(server.id)
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            machine = Machine(server, birth, directory, self._free_ports(), self._environment, self._changed.set)
        except user_data.ForeignError as error:
            self._foreign[server.id] = (server, str(error))
            return
        log.info("%s boots at %s, for %s", machine.name, machine.address, machine.virtual_address)
        task = asyncio.create_task(machine.run())
        task.add_done_callback(lambda ended: _log_bug(machine.name, ended))
        self._machines[server.id] = _Running(machine, task)

    async def _stop(self, server_id: str) -> None:
        running = self._machines.pop(server_id)
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)
        log.info("%s is off", running.machine.name)

    def _elect(self) -> None:
        groups: dict[str, dict[str, Machine]] = defaultdict(dict)
        for server_id, running in self._machines.items():
            groups[running.machine.virtual_address][server_id] = running.machine
        before, self._masters = self._masters, {}
        for virtual_address, members in groups.items():
            candidates = [
                vrrp.Candidate(server_id, machine.address, machine.priority)
                for server_id, machine in members.items()
                if machine.priority is not None
            ]
            master = self._masters[virtual_address] = vrrp.elect(before.get(virtual_address), candidates)
            if master != before.get(virtual_address):
                log.info("%s is at %s now", virtual_address, members[master].name if master else "no machine")
            for server_id, machine in members.items():
                machine.turn(master=server_id == master)

    async def _lead(self) -> None:
        self._led = {address: address for address in self._masters} | {
            each.address: each.fixed_address
            for each in self._requested("floatingips", FloatingIp)
            if each.fixed_address in self._masters
        }
        for address in set(self._leads) - set(self._led):
            await self._leads.pop(address).serve(())
        for address in self._led:
            if address not in self._leads:
                self._leads[address] = Lead(address, partial(self._target, address))
            lead = self._leads[address]
            known = dict(lead.problems)
            await lead.serve(self._ports_of(address))
            for problem in set(lead.problems.values()) - set(known.values()):
                log.warning("not served: %s", problem)

    def _master_of(self, address: str) -> Machine | None:
        running = self._machines.get(self._masters.get(self._led.get(address, "")) or "")
        return running.machine if running is not None else None

    def _target(self, address: str) -> str | None:
        master = self._master_of(address)
        return master.address if master is not None else None

    def _ports_of(self, address: str) -> tuple[Port, ...]:
        master = self._master_of(address)
        return master.ports if master is not None else ()

    def _lead_view(self, address: str) -> LeadView:
        master, lead = self._master_of(address), self._leads[address]
        return LeadView(
            address=address,
            virtual_address=self._led[address],
            master=master.name if master is not None else "",
            ports=lead.ports,
            problems=tuple(lead.problems.values()),
        )

    def _requested(self, what: str, shape: type[M]) -> list[M]:
        found = []
        for path in sorted((self._ground / what).glob("[!.]*.json")):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                try:
                    found.append(shape.model_validate_json(path.read_bytes()))
                except ValidationError:
                    if path not in self._unreadable:
                        log.error("%s/%s cannot be read", what, path.name)
                    self._unreadable.add(path)
        return found

    def _free_ports(self) -> dict[str, int]:
        taken = {
            f"{server_id} {name}": port
            for server_id, running in self._machines.items()
            for name, port in running.machine.own_ports.items()
        }
        return choose_ports(PORTS, taken)[0]

    def _directory(self, server_id: str) -> Path:
        return self._home / server_id

    @property
    def _fares_file(self) -> Path:
        return self._home / "fares.json"

    def _saved_fares(self) -> Fares:
        try:
            return Fares.model_validate_json(self._fares_file.read_bytes())
        except FileNotFoundError:
            return Fares()

    @asynccontextmanager
    async def _called(self, call: str) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as ear:
            ear.bind(f"\0{call}")
            loop.add_reader(ear, self._hear, ear)
            try:
                yield
            finally:
                loop.remove_reader(ear)

    def _hear(self, ear: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            while ear.recv(64):
                self._changed.set()


class _Running:
    def __init__(self, machine: Machine, task: asyncio.Task[None]) -> None:
        self.machine = machine
        self.task = task


def _stays(running: _Running, server: Server | None) -> bool:
    return server is not None and server.running and server.boot == running.machine.server.boot


def _log_bug(name: str, ended: asyncio.Task[None]) -> None:
    if not ended.cancelled() and (error := ended.exception()) is not None:
        log.error("%s failed", name, exc_info=error)
