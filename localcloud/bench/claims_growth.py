"""Row x of `perdure bench claims`: how the cost of a claim grows with the number of concurrent claims."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from temporalio.client import Client, WorkflowExecution

from domain.claims import CLAIM_BINDER, RESOURCE_CLAIM
from localcloud.bench.claims_sightings import READY
from localcloud.bench.claims_telling import Meter, beyond_idle, each_of, idle_cpu, step, told
from localcloud.bench.claims_things import Scene, Sizes, all_ready, make, scene, settled
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS, event_of, memory_mib
from localcloud.services import API_SERVER, ETCD, POSTGRES, TEMPORAL, WATCH, WORKER

_FEWEST = 100
# Seconds to wait for each claim: several times the goal.
_PATIENCE = 0.5
# How many histories of claims are read.
_SAMPLE = 20
_OF_KIND = "WorkflowType = '{}'"
_GOALS = {1000: "≤ 35 s"}


async def growth(sizes: Sizes, rows: frozenset[str]) -> Found:
    figures: list[Figure] = []
    breakdown: dict[str, dict[str, int]] = {}
    for count in numbers(sizes.growth_claims):
        async with scene() as on:
            found = told(await _at_once(on, count))
        figures += found.figures
        breakdown |= found.breakdown
    return Found(figures=tuple(figures), breakdown=breakdown)


def numbers(most: int) -> Sequence[int]:
    found = []
    count = _FEWEST
    while count < most:
        found.append(count)
        count *= 10
    return (*found, most)


async def _at_once(on: Scene, count: int) -> Found:
    lab, names = on.lab, [f"grown-{number}" for number in range(count)]
    step(f"{count} claims are made")
    idle = await idle_cpu(lab)
    databases = _databases(on)
    async with on.seen.only(RESOURCE_CLAIM):
        meter, began = Meter(lab), time.time()
        sent = await make(on, names)
        async with asyncio.timeout(PATIENCE_SECONDS + count * _PATIENCE):
            await on.seen.until(lambda: on.seen.count(RESOURCE_CLAIM, READY) >= count)
        ready = await all_ready(on, names) - min(sent.values())
        await settled(on)
        seconds, cost = time.time() - began, meter.read()
    cpu = beyond_idle(cost.cpu, idle, seconds)
    each = 1000 * sum(cpu.values()) / count
    grown = ", ".join(f"{name} {_mib(size - databases[name]):.1f}" for name, size in _databases(on).items())
    binders = [
        await _events(lab.temporal, run)
        async for run in lab.temporal.list_workflows(_OF_KIND.format(CLAIM_BINDER.name))
    ]
    sample = lab.temporal.list_workflows(_OF_KIND.format(RESOURCE_CLAIM.name), limit=_SAMPLE)
    claims = [await _events(lab.temporal, run) async for run in sample]
    tasks = [types["workflow_task_completed"] for types in claims]

    def figure(what: str, measured: float | str, unit: str = "", goal: str = "", note: str = "") -> Figure:
        text = f"{count} claims at once: {what}"
        return Figure(row="x", what=text, measured=measured, unit=unit, goal=goal, note=note)

    by_service = _memories_mib(on)
    figures = (
        figure("all ready", round(ready, 1), "s", _GOALS.get(count, ""), f"all work has ended after {seconds:.0f} s"),
        figure("CPU per claim", round(each), "ms", "≤ 150 ms", each_of(cpu, count)),
        figure("Kubernetes requests per claim", round(sum(cost.requests.values()) / count, 2)),
        figure(
            "history events of the binder's longest run",
            max(types.total() for types in binders),
            goal="< 1000",
            note=f"{sum(types.total() for types in binders)} events in {len(binders)} runs",
        ),
        figure(
            "history events and workflow tasks per claim",
            f"{sum(types.total() for types in claims) / len(claims):.1f}, {sum(tasks) / len(tasks):.1f}",
        ),
        figure("growth of the databases", grown, "MiB"),
        figure("memory of all processes", round(sum(by_service.values())), "MiB", note=_listed(by_service)),
    )
    return Found(
        figures=figures, breakdown={f"x: Kubernetes requests of {count} claims": dict(cost.requests.most_common())}
    )


async def _events(client: Client, run: WorkflowExecution) -> Counter[str]:
    events = client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history_events()
    return Counter([event_of(each).type async for each in events])


def _databases(on: Scene) -> dict[str, int]:
    state = on.lab.deployment.state
    names = [name for name in (TEMPORAL, POSTGRES, ETCD) if name in state.plan().services]
    return {name: sum(_size(file) for file in state.data(name).rglob("*")) for name in names}


def _size(file: Path) -> int:
    try:
        return file.stat().st_size if file.is_file() else 0
    except FileNotFoundError:
        return 0


def _memories_mib(on: Scene) -> dict[str, float]:
    return {service: memory_mib(on.lab, service) for service in (WORKER, WATCH, TEMPORAL, API_SERVER, ETCD)}


def _listed(sizes_mib: Mapping[str, float]) -> str:
    return ", ".join(f"{service} {size:.0f}" for service, size in sizes_mib.items())


def _mib(size: int) -> float:
    return size / 2**20
