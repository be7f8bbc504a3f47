"""`perdure bench loadbalancers`, rows f and j: continuous requests while components are killed or replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import psutil

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.rollout import MASTER_STABLE
from engine.kube.json import JsonObject, text
from localcloud.bench.claims_telling import step
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS
from localcloud.bench.loadbalancers_things import (
    NAMESPACE_NAME,
    NODE_PORT,
    PORT,
    SECOND_PORT,
    Scene,
    all_ready,
    balancer,
    node,
    scene,
)
from localcloud.machines.contract import Fare, MachineView
from localcloud.machines.vrrp import CHECK_SECONDS, FALL
from localcloud.services import API_SERVER, TEMPORAL, WATCH, WORKER

__all__ = ["disturbances", "traffic"]

REQUESTS_PER_SECOND = 50
REPLICAS = 2
NAME = "busy"
# How long clients continue after a recovery, and a client's timeout.
AFTERWARDS_SECONDS = 3.0
ANSWERED_WITHIN_SECONDS = 30.0
# The API server's minimum downtime.
AWAY_SECONDS = 10.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Sent:
    began: float
    ended: float
    fault: str = ""


@dataclass
class Traffic:
    url: str
    asked: list[Sent] = field(default_factory=list)

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=ANSWERED_WITHIN_SECONDS)
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=timeout) as each_its_own,
            aiohttp.ClientSession(timeout=timeout) as session,
            asyncio.TaskGroup() as requests,
        ):
            ticking = requests.create_task(self._tick(requests, (each_its_own, session)))
            try:
                yield
            finally:
                ticking.cancel()

    async def _tick(self, requests: asyncio.TaskGroup, clients: tuple[aiohttp.ClientSession, ...]) -> None:
        due = time.monotonic()
        number = 0
        while True:
            requests.create_task(self._ask(clients[number % len(clients)]))
            number += 1
            due += 1 / REQUESTS_PER_SECOND
            await asyncio.sleep(max(0.0, due - time.monotonic()))

    async def _ask(self, client: aiohttp.ClientSession) -> None:
        began = time.monotonic()
        fault = await _fault(client, self.url)
        self.asked.append(Sent(began, time.monotonic(), fault))


@dataclass(frozen=True)
class Stage:
    on: Scene
    traffic: Traffic

    async def machines(self) -> list[MachineView]:
        view = await asyncio.to_thread(self.on.machines.view)
        return [each for each in view.machines if each.ports]

    async def master(self) -> MachineView:
        found: list[MachineView] = []

        async def one() -> bool:
            found[:] = [each for each in await self.machines() if each.master]
            return len(found) == 1

        await _until(one)
        return found[0]

    async def kill(self, service: str) -> None:
        deployment = self.on.lab.deployment
        pid = await asyncio.to_thread(deployment.kill, service, signal.SIGKILL)
        await asyncio.to_thread(deployment.wait_service, service, other_than_pid=pid)

    async def kill_agents(self) -> None:
        former = {each.agent_pid for each in await self.machines()}
        for pid in former:
            if pid is not None:
                os.kill(pid, signal.SIGKILL)

        async def new() -> bool:
            now = {each.agent_pid for each in await self.machines()}
            return len(now) == len(former) and not now & {*former, None}

        await _until(new)

    async def add_port(self) -> None:
        spec: JsonObject = {"ports": balancer(self.on, NAME, ports=3)["spec"]["ports"]}
        await self.on.lab.patch(LOAD_BALANCER, NAMESPACE_NAME, NAME, {"spec": spec})

        async def served() -> bool:
            return all(SECOND_PORT in each.ports for each in await self.machines())

        await _until(served)

    async def roll_out(self) -> None:
        former = {text(each, "metadata", "uid") for each in self.on.of_machines()}
        zone: JsonObject = {"infrastructure": {"availabilityZone": "nova"}}
        await self.on.lab.patch(LOAD_BALANCER, NAMESPACE_NAME, NAME, {"spec": zone})

        async def replaced() -> bool:
            now = self.on.lab.objects.of(LOAD_BALANCER_MACHINE)
            return len(now) == REPLICAS and not {text(each, "metadata", "uid") for each in now} & former

        await _until(replaced, MASTER_STABLE.total_seconds() + 300)
        await all_ready(self.on, NAME, REPLICAS)

    async def go_on_without_api_server(self) -> None:
        deployment = self.on.lab.deployment
        pid = await asyncio.to_thread(deployment.kill, API_SERVER, signal.SIGKILL)
        held = await asyncio.to_thread(_hold_the_next, self.on, pid)
        try:
            await self.kill_agents()
            # Without an API server no agent is ready; until keepalived has noticed that everywhere, the address may
            # move.
            await asyncio.sleep(2 * CHECK_SECONDS * FALL)
            reserve = next(each for each in await self.machines() if not each.master)
            if reserve.envoy_pid is not None:
                os.kill(reserve.envoy_pid, signal.SIGKILL)
            # A new Envoy and a new agent must serve without an API server.
            url = f"http://{reserve.address}:{PORT}/"

            async def serves() -> bool:
                async with aiohttp.ClientSession() as client:
                    return not await _fault(client, url)

            await _until(serves)
            await asyncio.sleep(AWAY_SECONDS)
        finally:
            os.kill(held, signal.SIGCONT)
        await asyncio.to_thread(deployment.wait_service, API_SERVER, other_than_pid=pid)

    async def cut_power(self) -> float:
        dead = await self.master()
        await asyncio.to_thread(self.on.machines.fare, Fare(server=f"^{dead.name}$", boots=False))
        while dead.envoy_pid is not None and psutil.pid_exists(dead.envoy_pid):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        died = time.monotonic()

        async def taken_over() -> bool:
            return any(each.master and each.name != dead.name for each in await self.machines())

        await _until(taken_over)
        return died


# Returns the time at which a machine was killed, else None. Requests in progress at that time may fail.
Disturbance = Callable[[Stage], Awaitable[float | None]]
# In order, by row; the killed machine comes last, since a replacement has to boot.
DISTURBANCES: tuple[tuple[str, str, Disturbance], ...] = (
    ("f1", "worker killed", lambda stage: stage.kill(WORKER)),
    ("f1", "watcher killed", lambda stage: stage.kill(WATCH)),
    ("f1", "Temporal killed", lambda stage: stage.kill(TEMPORAL)),
    ("f1", "agents of both machines killed", Stage.kill_agents),
    ("f1", "a port added", Stage.add_port),
    ("j", "API server away; agents and the standby's Envoy killed", Stage.go_on_without_api_server),
    ("f2", "rollout", Stage.roll_out),
    ("f1", "the master machine killed", Stage.cut_power),
)


@dataclass(frozen=True)
class Suffered:
    row: str
    what: str
    seconds: float
    asked: int
    failed: tuple[Sent, ...]
    own: int
    """The number of failed requests that were in progress when their machine died."""
    slowest_seconds: float


async def disturbances(rows: frozenset[str]) -> list[Suffered]:
    suffered: list[Suffered] = []
    async with scene() as on, node(NODE_PORT):
        await on.lab.kube.create(LOAD_BALANCER, _busy(on), NAMESPACE_NAME)
        await all_ready(on, NAME, REPLICAS)
        found = on.lab.objects.one(LOAD_BALANCER, NAMESPACE_NAME, NAME)
        stage = Stage(on, Traffic(f"http://{text(found, 'status', 'externalIP')}:{PORT}/"))
        await stage.master()
        async with stage.traffic.flowing():
            for row, what, strike in DISTURBANCES:
                if row in rows:
                    suffered.append(await _suffer(stage, row, what, strike))
    return suffered


async def _suffer(stage: Stage, row: str, what: str, strike: Disturbance) -> Suffered:
    step(f"{what}, while {REQUESTS_PER_SECOND} requests a second go on")
    before, began = len(stage.traffic.asked), time.monotonic()
    died = await strike(stage)
    seconds = time.monotonic() - began
    await asyncio.sleep(AFTERWARDS_SECONDS)
    sent = stage.traffic.asked[before:]
    faults = [each for each in sent if each.fault]
    own = [each for each in faults if died is not None and each.began <= died]
    return Suffered(
        row=row,
        what=what,
        seconds=seconds,
        asked=len(sent),
        failed=tuple(each for each in faults if each not in own),
        own=len(own),
        slowest_seconds=max((each.ended - each.began for each in sent), default=0.0),
    )


async def traffic(_: object, rows: frozenset[str]) -> Found:
    suffered = await disturbances(rows)
    figures = tuple(
        Figure(
            row=each.row,
            what=f"failed requests: {each.what}",
            measured=len(each.failed),
            goal="0",
            note=f"of {each.asked} requests; the disturbance ended after {each.seconds:.1f} s, slowest answer "
            f"{each.slowest_seconds:.2f} s"
            + (f"; {each.own} more were in progress on the dead machine" if each.own else ""),
        )
        for each in suffered
    )
    faults: dict[str, int] = {}
    for each in suffered:
        for request in each.failed:
            name = f"{each.what}: {request.fault}"
            faults[name] = faults.get(name, 0) + 1
    return Found(figures=figures, breakdown={"f, j: failed requests": faults} if faults else {})


async def _fault(client: aiohttp.ClientSession, url: str) -> str:
    try:
        async with client.get(url) as answer:
            body = await answer.text()
            return "" if answer.status == 200 and body == "node\n" else f"{answer.status} {body[:80]!r}"
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        return f"{type(error).__name__}: {error}"


def _busy(on: Scene) -> dict[str, object]:
    made = balancer(on, NAME)
    return {**made, "spec": {**made["spec"], "replicas": REPLICAS}}


def _hold_the_next(on: Scene, pid: int) -> int:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = on.lab.deployment.service(API_SERVER).pid
        if found not in (None, pid) and found is not None:
            os.kill(found, signal.SIGSTOP)
            return found
        time.sleep(0.01)
    raise TimeoutError("the API server does not start again")


async def _until(holds: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while not await holds():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)
