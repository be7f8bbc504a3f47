"""Simulates the reports of many machines' agents, because so many agents would need another computer.

A machine reports at least every half minute while Nova runs its server. Each set's first machine by name is master.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.resource import timestamp
from engine.errors import Absent, ApiError
from engine.kube import KubeApi
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.objects import Objects

EVERY_SECONDS = 30.0
AT_ONCE = 8
_LOOK_SECONDS = 0.1
_RELEVANT = ("ConfigReady", "EnvoyReady", "EnvoyUpToDate")

log = logging.getLogger(__name__)


class Reporter:
    def __init__(self, kube: KubeApi, objects: Objects, ground: Path) -> None:
        self._kube = kube
        self._objects = objects
        self._servers = ground / "servers"
        self._due: dict[str, float] = {}  # when the next report is due, by the machine's uid
        self._permits = asyncio.Semaphore(AT_ONCE)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            running = await asyncio.to_thread(self._running)
            now = time.monotonic()
            every = self._objects.of(LOAD_BALANCER_MACHINE)
            due = [each for each in every if self._is_due(each, running, now)]
            masters = first_of_each(every) if due else frozenset()
            for each in due:
                # Otherwise machines that boot together would report in step forever.
                pause = EVERY_SECONDS * random.uniform(0.5, 1)  # noqa: S311 - spreads load
                self._due[text(each, "metadata", "uid")] = now + pause
            await asyncio.gather(*(self._report(each, master=text(each, "metadata", "uid") in masters) for each in due))
            await asyncio.sleep(_LOOK_SECONDS)

    def _running(self) -> frozenset[str]:
        return frozenset(path.stem for path in self._servers.glob("[!.]*.json"))

    def _is_due(self, machine: JsonObject, running: frozenset[str], now: float) -> bool:
        alive = text(machine, "status", "serverID") in running and not text(machine, "metadata", "deletionTimestamp")
        return alive and now >= self._due.get(text(machine, "metadata", "uid"), 0)

    async def _report(self, machine: JsonObject, *, master: bool) -> None:
        namespace, name = text(machine, "metadata", "namespace"), text(machine, "metadata", "name")
        status = {"status": {"conditions": conditions(machine, master=master), "metrics": metrics()}}
        async with self._permits:
            try:
                await self._kube.patch(LOAD_BALANCER_MACHINE, namespace, name, status, subresource="status")
            except Absent:
                return
            except ApiError as error:  # agents retry, too
                log.warning("%s", error.message)
                self._due.pop(text(machine, "metadata", "uid"), None)


def first_of_each(machines: Sequence[JsonObject]) -> frozenset[str]:
    first: dict[str, JsonObject] = {}
    for machine in sorted(machines, key=lambda each: text(each, "metadata", "name")):
        first.setdefault(owner_of(machine), machine)
    return frozenset(text(each, "metadata", "uid") for each in first.values())


def owner_of(machine: JsonObject) -> str:
    owners = sequence(machine, "metadata", "ownerReferences")
    return text(owners[0], "uid") if owners else ""


def conditions(machine: JsonObject, *, master: bool) -> list[JsonObject]:
    now = timestamp(datetime.now(UTC))
    states = dict.fromkeys(_RELEVANT, "True") | {"KeepalivedMaster": str(master)}
    before = {text(each, "type"): each for each in sequence(machine, "status", "conditions")}

    def since(type_: str, state: str) -> str:
        known = before.get(type_)
        return text(known, "lastTransitionTime") if known and text(known, "status") == state else now

    others = [each for type_, each in before.items() if type_ not in states]
    return [
        *(
            {"type": type_, "status": state, "reason": "Played", "message": "", "lastHeartbeatTime": now}
            | {"lastTransitionTime": since(type_, state)}
            for type_, state in states.items()
        ),
        *(dict(each) for each in others if isinstance(each, dict)),
    ]


def metrics() -> list[JsonObject]:
    now = timestamp(datetime.now(UTC))
    values = {"load1": "0.10", "load5": "0.05", "numCPU": "1", "uptime": f"{time.monotonic():.0f}"}
    return [{"type": type_, "value": value, "timestamp": now} for type_, value in values.items()]


def ready_machines(balancer: JsonObject | None) -> int:
    found = at(balancer, "status", "readyReplicas") if balancer else None
    return found if isinstance(found, int) else 0
