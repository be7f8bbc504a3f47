"""`perdure bench loadbalancers`: figures on a real OpenStack with machines that boot (docs/benchmarks.md has the rows).

OpenStack calls that prepare the benchmark or run the machines, and Kubernetes requests of agents, are not counted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import pairwise

from domain.loadbalancers import LOAD_BALANCER
from domain.resource import parse_timestamp
from engine.kube.json import JsonObject, text
from localcloud import environment
from localcloud.bench.figures import Figure, Found
from localcloud.bench.loadbalancers_crowds import Sizes, at_once, settled
from localcloud.bench.loadbalancers_things import (
    NAMESPACE_NAME,
    SECOND_PORT,
    Scene,
    all_ready,
    balancer,
    counted,
    delete,
    first_answer,
    scene,
    settle,
)
from localcloud.bench.loadbalancers_traffic import traffic
from localcloud.machines.contract import Fare
from localcloud.services import API_SERVER, TEMPORAL, WATCH, WORKER

__all__ = ["MEASUREMENTS", "Sizes"]

SLOW_BOOT_SECONDS = 60.0
BOOT_TIMEOUT_SECONDS, GRACE_SECONDS = 20.0, 10.0
REPLACED = 3
EVERYTHING = (WORKER, WATCH, TEMPORAL, API_SERVER)
# Row h's faults; each hits the first two calls that match it.
FAULTS = tuple(
    (service, method, kind, status)
    for service in ("neutron", "nova")
    for method in ("POST", "DELETE")
    for kind, status in (("before", 503), ("after", 504), ("cut", 500), ("before", 409))
)


async def calls(_: Sizes, rows: frozenset[str]) -> Found:
    figures: list[Figure] = []
    breakdown: dict[str, dict[str, int]] = {}
    async with scene() as on:
        for row, measure in (("a", _to_ready), ("b", _changes), ("d", _to_bytes)):
            if row in rows:
                found = await measure(on)
                figures += found.figures
                breakdown |= found.breakdown
    return Found(figures=tuple(figures), breakdown=breakdown)


async def _to_ready(on: Scene) -> Found:
    first = await counted(on, lambda: _made_ready(on, "first"))
    await settle(on)
    again = await counted(on, lambda: _made_ready(on, "next"))
    await delete(on, "first", "next")
    figures = (
        Figure(
            row="a",
            what="OpenStack calls from LoadBalancer to ready, one machine, two ports",
            measured=again.ledger.calls(),
            goal="≤ 22",
            note=f"upstream 37; {first.ledger.calls()} for the first LoadBalancer of a process",
        ),
        Figure(
            row="a",
            what="tokens, from the worker's start on",
            measured=first.ledger.tokens() + again.ledger.tokens(),
            goal="≤ 1 per process and credential",
            note="upstream 6 for each",
        ),
        Figure(
            row="a",
            what="Kubernetes requests of worker and watcher",
            measured=sum(again.requests.values()),
            goal="≤ 20",
            note="upstream 40",
        ),
        Figure(row="a", what="time", measured=round(again.seconds, 1), unit="s", goal="≤ 7 s", note="upstream 13.8 s"),
    )
    breakdown = {
        "a: OpenStack calls": again.ledger.by_route(),
        "a: Kubernetes requests": dict(again.requests.most_common()),
    }
    return Found(figures=figures, breakdown=breakdown)


async def _changes(on: Scene) -> Found:
    await _made_ready(on, "changed")
    await settle(on)
    on.cloud.boots(boot_delay=SLOW_BOOT_SECONDS)
    slow = await counted(on, lambda: _patched(on, "changed", {"replicas": 2}, lambda: all_ready(on, "changed", 2)))
    on.cloud.boots(boot_delay=0)
    await settle(on)

    async def served() -> None:
        await on.until(lambda: all(SECOND_PORT in each.ports for each in on.machines.view().machines if each.ports))

    ports = await counted(
        on, lambda: _patched(on, "changed", {"ports": balancer(on, "x", ports=3)["spec"]["ports"]}, served)
    )
    await settle(on)
    gone = await counted(on, lambda: delete(on, "changed"))
    figures = tuple(
        Figure(row="b", what=what, measured=count.ledger.calls(), goal=goal, note=f"{note}; {count.seconds:.1f} s")
        for what, count, goal, note in (
            ("OpenStack calls for a machine that boots in 60 s", slow, "≤ 14", "upstream 9, plus 1 each second"),
            ("OpenStack calls for a port added", ports, "≤ 3", "upstream 9"),
            ("OpenStack calls for a deletion with two machines", gone, "≤ 18", "upstream 36"),
        )
    )
    breakdown = {
        "b: a machine that boots in 60 s": slow.ledger.by_route(),
        "b: a port added": ports.ledger.by_route(),
        "b: deletion": gone.ledger.by_route(),
    }
    return Found(figures=figures, breakdown=breakdown)


async def _to_bytes(on: Scene) -> Found:
    found = await first_answer(on)
    note = f"address after {found.address_seconds:.1f} s"
    figure = Figure(
        row="d",
        what="Service created to its first answer through Envoy",
        measured=round(found.answer_seconds, 1),
        unit="s",
        goal="≤ 15 s",
        note=note,
    )
    return Found(figures=(figure,))


async def silent(sizes: Sizes, rows: frozenset[str]) -> Found:
    with _shortened():
        return await _silent()


async def _silent() -> Found:
    async with scene() as on:
        on.machines.fare(Fare(boots=False))
        began: dict[str, datetime] = {}
        gone: dict[str, float] = {}
        await on.lab.kube.create(LOAD_BALANCER, balancer(on, "silent"), NAMESPACE_NAME)

        def enough() -> bool:
            now = time.time()
            current = {text(each, "metadata", "uid"): each for each in on.of_machines()}
            for uid, each in current.items():
                created = parse_timestamp(text(each, "metadata", "creationTimestamp"))
                if created is not None and uid not in began:
                    began[uid] = created
            for uid in began:
                if uid not in current or text(current[uid], "metadata", "deletionTimestamp"):
                    gone.setdefault(uid, now)
            return len(gone) >= REPLACED

        await on.until(lambda: bool(enough() or began))
        async with asyncio.TaskGroup() as meanwhile:
            meanwhile.create_task(_everything_killed(on))
            await on.until(enough)
    after = [gone[uid] - began[uid].timestamp() for uid in gone]
    births = sorted(each.timestamp() for each in began.values())
    pauses = [later - earlier for earlier, later in pairwise(births)]
    expected = BOOT_TIMEOUT_SECONDS + GRACE_SECONDS
    figures = (
        Figure(
            row="g",
            what=f"machines that never report, with {BOOT_TIMEOUT_SECONDS:g} s to boot and {GRACE_SECONDS:g} s of "
            "grace: gone after",
            measured=", ".join(f"{each:.1f}" for each in after),
            unit="s",
            goal=f"{expected:g} s, to the second",
            note=f"creation times are whole seconds; {', '.join(EVERYTHING)} were killed during the first wait",
        ),
        Figure(
            row="g",
            what="between one creation and the next",
            measured=", ".join(f"{each:.0f}" for each in pauses),
            unit="s",
            goal="pauses grow",
        ),
    )
    return Found(figures=figures)


async def _everything_killed(on: Scene) -> None:
    deployment = on.lab.deployment
    killed = {name: await asyncio.to_thread(deployment.kill, name) for name in EVERYTHING}
    for name, pid in killed.items():
        await asyncio.to_thread(deployment.wait_service, name, other_than_pid=pid)


async def disturbed(sizes: Sizes, rows: frozenset[str]) -> Found:
    doubled, left, slowest = 0, 0, 0.0
    odd: dict[str, int] = {}
    async with scene() as on:
        for number, (service, method, kind, status) in enumerate(FAULTS):
            name, began = f"disturbed-{number}", time.monotonic()
            on.cloud.fault(service, method, kind=kind, status=status, count=2)
            await on.lab.kube.create(LOAD_BALANCER, balancer(on, name), NAMESPACE_NAME)
            await all_ready(on, name, 1)
            there = await on.things_of(name)
            surplus = sum(abs(count - wanted) for count, wanted in zip(there, (1, 1, 2, 1), strict=True))
            await delete(on, name)
            on.cloud.clear()
            remaining = sum(await on.things_of(name))
            doubled, left = doubled + surplus, left + remaining
            if surplus or remaining:
                odd[f"{service} {method} {kind} {status}"] = surplus + remaining
            slowest = max(slowest, time.monotonic() - began)
    figures = (
        Figure(
            row="h",
            what=f"{len(FAULTS)} load balancers, each with two lost or refused calls: objects doubled or missing",
            measured=doubled,
            goal="0",
            note="each should have one floating IP, one group, two ports, one server",
        ),
        Figure(row="h", what="objects left after deletion", measured=left, goal="0", note=f"slowest {slowest:.0f} s"),
    )
    return Found(figures=figures, breakdown={"h: doubled, missing or left": odd} if odd else {})


async def _made_ready(on: Scene, name: str) -> None:
    await on.lab.kube.create(LOAD_BALANCER, balancer(on, name, ports=2), NAMESPACE_NAME)
    await all_ready(on, name, 1)


async def _patched(on: Scene, name: str, spec: JsonObject, done: Callable[[], object]) -> None:
    await on.lab.patch(LOAD_BALANCER, NAMESPACE_NAME, name, {"spec": spec})
    waited = done()
    if asyncio.iscoroutine(waited):
        await waited


@contextmanager
def _shortened() -> Iterator[None]:
    with environment.restored():
        os.environ["PERDURE_LOADBALANCERS_BOOT_TIMEOUT"] = f"{BOOT_TIMEOUT_SECONDS:g}"
        os.environ["PERDURE_LOADBALANCERS_DELETION_GRACE"] = f"{GRACE_SECONDS:g}"
        yield


# The rows of each deployment. The measurements of `loadbalancers_crowds.py` use the sizes as well.
MEASUREMENTS = (
    (frozenset({"a", "b", "d"}), calls),
    (frozenset({"g"}), silent),
    (frozenset({"h"}), disturbed),
    (frozenset({"f1", "f2", "j"}), traffic),
    (frozenset({"e", "i"}), at_once),
    (frozenset({"c"}), settled),
)
