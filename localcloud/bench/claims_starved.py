"""Row s of `perdure bench claims`: concurrent claims on the whole machine, and on a fifth and a twentieth of it."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from datetime import UTC, datetime

from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError

from domain.backlog_report import Backlog
from domain.built_in_kinds import CONFIG_MAP, LEASE
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, binder
from domain.decision import Queue
from engine.backlog import of_objectless, of_queues
from engine.kube.json import at, text
from engine.settings import Settings
from localcloud.bench.claims_race import agreed
from localcloud.bench.claims_sightings import BOUND, READY
from localcloud.bench.claims_telling import Meter, step, told
from localcloud.bench.claims_things import THINGS, Scene, Sizes, make, path, scene
from localcloud.bench.figures import Figure, Found
from localcloud.cpu_share import limited
from localcloud.services import WATCH, WORKER

SHARES = (100, 20, 5)
# The longest wait on the whole machine, in seconds per claim; on a share it is divided by the share.
_PATIENCE = 0.5
_READ_AT_ONCE = 8
_IDLE_SECONDS = 5.0
_LOOK_SECONDS = 15.0
_BROKEN_OFF = {
    EventType.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT: "activities timed out",
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT: "workflow tasks timed out",
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED: "workflow tasks failed",
}


async def starved(sizes: Sizes, rows: frozenset[str]) -> Found:
    figures: list[Figure] = []
    breakdown: dict[str, dict[str, int]] = {}
    async with scene() as on:
        for share in SHARES:
            if f"s{share}" in rows:
                found = told(await _on_share(on, sizes.starved_claims, share))
                figures += found.figures
                breakdown |= found.breakdown
    return Found(figures=tuple(figures), breakdown=breakdown)


async def _on_share(on: Scene, count: int, percent: int) -> Found:
    row, share, names = f"s{percent}", percent / 100, [f"s{percent}-{number}" for number in range(count)]
    await on.lab.quiet()
    before, restarts, terms = await _broken_off(on.lab.temporal), _restarts(on), await _terms(on)
    idling = Meter(on.lab)
    await asyncio.sleep(_IDLE_SECONDS)
    idle = idling.read().cpu
    meter = Meter(on.lab)
    running = on.lab.deployment.state.running()
    assert running is not None
    with limited(running.supervisor.pid, share):
        step(f"{count} claims are made on {percent} % of the machine")
        sent = await make(on, names)
        began = min(sent.values())
        served, backlogs = await _all_within(on, names, count * _PATIENCE / share)
        took = time.time() - began
    cost = meter.read()
    await on.lab.quiet()
    broken = await _broken_off(on.lab.temporal) - before
    again = _restarts(on) - restarts
    broken += Counter({f"{service} restarted": number for service, number in again.items()})
    broken["the Lease changed hands"] = await _terms(on) - terms
    lost, doubled = await _ledger(on, names)
    idle_by = ", ".join(f"{name} {100 * each / _IDLE_SECONDS:.1f}" for name, each in idle.items())
    idle_share = sum(idle.values()) / _IDLE_SECONDS / (os.cpu_count() or 1)
    cpu = f"CPU per claim, ms: {cost.cpu_of(count)}"
    figures = (
        Figure(
            row=row,
            what=f"{count} claims at once on {percent} % of the machine: all ready",
            measured=round(took, 1) if served == count else f"{served} of {count} after {took:.0f} s",
            unit="s",
            note=f"{1000 * sum(cost.cpu.values()) / count:.0f} ms of CPU each; idle, % of a core: {idle_by}",
        ),
        Figure(
            row=row,
            what=f"time until all are ready, multiplied by the CPU share ({share:g})",
            measured=round(took * share, 1),
            unit="s",
            goal="" if percent == 100 else "≤ 1.5 times the value of s100",
            note=f"{took * (share - idle_share):.1f} s without the CPU share of the idle processes; {cpu}",
        ),
        Figure(
            row=row,
            what="reports of `perdure top` meanwhile that showed a backlog",
            measured=f"{sum(backlogs)} of {len(backlogs)}",
        ),
        Figure(row=row, what="claims lost; handles or resources doubled", measured=f"{lost}; {doubled}", goal="0; 0"),
        Figure(
            row=row, what="interrupted tasks, restarts", measured=sum(broken.values()), goal="0", note=_listed(broken)
        ),
    )
    return Found(figures=figures, breakdown={f"{row}: Kubernetes requests": dict(cost.requests.most_common())})


async def _all_within(on: Scene, names: list[str], seconds: float) -> tuple[int, list[bool]]:
    deadline, last = time.monotonic() + seconds, time.monotonic()
    backlogs: list[bool] = []
    while True:
        ready = sum(on.seen.first(RESOURCE_CLAIM, path(name), READY) is not None for name in names)
        if ready == len(names) or time.monotonic() > deadline:
            return ready, backlogs
        if time.monotonic() - last > _LOOK_SECONDS:
            bound = sum(on.seen.first(RESOURCE_CLAIM, path(name), BOUND) is not None for name in names)
            backlog = await _backlog(on)
            backlogs.append(bool(backlog))
            step(f"{bound} are bound, {ready} are ready; {'; '.join(each.what for each in backlog) or 'no backlog'}")
            last = time.monotonic()
        await asyncio.sleep(0.05)


async def _backlog(on: Scene) -> list[Backlog]:
    settings, now = Settings(), datetime.now(UTC)
    queues = [("claims", "workflow"), (Queue.CLAIMS.value, "activity")]
    standing = [binder(settings.claims_domain, settings.cluster)]
    try:
        return [*await of_queues(on.lab.temporal, queues, now), *await of_objectless(on.lab.temporal, standing, now)]
    except RPCError as error:
        return [Backlog(what=f"Temporal does not answer: {error}", since=None, why="")]


async def _ledger(on: Scene, names: list[str]) -> tuple[int, int]:
    claims = (await on.lab.kube.list(RESOURCE_CLAIM)).items
    handles = (await on.lab.kube.list(RESOURCE_HANDLE)).items
    things = (await on.lab.kube.list(CONFIG_MAP, THINGS)).items
    pairs, wanted = agreed(claims, handles), set(names)
    of_ours = [each for each in handles if text(each, "spec", "resourceClaim", "name") in wanted]
    guids = Counter(text(each, "data", "guid") for each in things)
    lost = sum(name not in pairs for name in names)
    doubled = max(0, len(of_ours) - len(names)) + sum(number - 1 for guid, number in guids.items() if guid)
    return lost, doubled


async def _broken_off(client: Client) -> Counter[str]:
    found: Counter[str] = Counter()
    permits = asyncio.Semaphore(_READ_AT_ONCE)

    async def read(run: WorkflowExecution) -> None:
        async with permits:
            async for event in client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history_events():
                if name := _BROKEN_OFF.get(event.event_type):
                    found[name] += 1
                elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                    found["further attempts"] += event.activity_task_started_event_attributes.attempt - 1

    await asyncio.gather(*[read(run) async for run in client.list_workflows()])
    return found


def _restarts(on: Scene) -> Counter[str]:
    return Counter({name: on.lab.deployment.service(name).restarts for name in (WORKER, WATCH)})


async def _terms(on: Scene) -> int:
    settings = Settings()
    lease = await on.lab.kube.get(LEASE, settings.watch_lease_namespace, settings.watch_lease_name)
    turns = at(lease, "spec", "leaseTransitions")
    return turns if isinstance(turns, int) else 0


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)
