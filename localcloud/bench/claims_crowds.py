"""Rows e, h, i, j and k of `perdure bench claims`: many settled claims."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter

import psutil

from localcloud.bench.claims_sightings import BOUND
from localcloud.bench.claims_telling import told
from localcloud.bench.claims_things import CLOCK, Scene, Sizes, all_ready, make, make_settled, moment, scene
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.laboratory import memory_mib, writes
from localcloud.services import WATCH, WORKER

_CLOCKED = 10
_SETTLING_SECONDS = 10.0
# Requests that do not depend on the number of claims: reopened watches, periodic renewals of Leases, and the readiness
# check after half a minute without an answer of the API server.
_STANDING = ("watch ", "get leases", "patch leases", "update leases", "create leases", "get /readyz")


async def idle(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        await make_settled(on, sizes.idle, "idle")
        quiet, tasks, requests = await _watched(on, sizes.idle_seconds)
        await make(on, [f"clock-{number}" for number in range(_CLOCKED)], CLOCK)
        await all_ready(on, [f"clock-{number}" for number in range(_CLOCKED)])
        await asyncio.sleep(_SETTLING_SECONDS)
        clocked, _, _ = await _watched(on, sizes.idle_seconds)
    minutes = sizes.idle_seconds / 60
    figures = (
        Figure(
            row="e",
            what=f"{sizes.idle} settled claims: requests per claim and minute",
            measured=round(quiet / sizes.idle / minutes, 4),
            goal="0",
            note=f"upstream 4 each minute; here {quiet} in {minutes:g} min, without leases and renewed watches",
        ),
        Figure(row="e", what=f"workflow tasks in {minutes:g} min", measured=tasks, goal="0"),
        Figure(
            row="e",
            what=f"requests in {minutes:g} min, with {_CLOCKED} more claims whose templates read the clock",
            measured=clocked,
            note="these templates are rendered again each minute",
        ),
    )
    return told(Found(figures=figures, breakdown={"e: Kubernetes requests": dict(requests.most_common())}))


async def _watched(on: Scene, seconds: float) -> tuple[int, int, Counter[str]]:
    await on.lab.quiet()
    mark, before = on.lab.audit_mark(), await on.lab.workflow_tasks()
    await asyncio.sleep(seconds)
    requests, after = on.lab.requests_since(mark), await on.lab.workflow_tasks()
    watched = sum(count for name, count in requests.items() if not name.startswith(_STANDING))
    return watched, after - before, requests


async def crowded(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        began = time.time()
        await make_settled(on, sizes.idle_claims, "idle")
        prepared = time.time() - began
        figures: list[Figure] = []
        breakdown: dict[str, dict[str, int]] = {}
        if "h" in rows:
            figures += told(Found(figures=tuple(await _newcomers(on, sizes, prepared)))).figures
        for row, number in (("i", signal.SIGTERM), ("k", signal.SIGKILL)):
            if row in rows:
                found = told(await _restarted(on, sizes, row, number))
                figures += found.figures
                breakdown |= found.breakdown
    return Found(figures=tuple(figures), breakdown=breakdown)


async def _newcomers(on: Scene, sizes: Sizes, prepared: float) -> list[Figure]:
    seconds = []
    for number in range(sizes.newcomers):
        name, due = f"new-{number}", time.time() + sizes.newcomer_seconds
        sent = (await make(on, [name]))[name]
        seconds.append(await moment(on, name, BOUND) - sent)
        await asyncio.sleep(max(0.0, due - time.time()))
    return [
        Figure(
            row="h",
            what=f"a new claim each {sizes.newcomer_seconds:g} s among {sizes.idle_claims} settled claims: time until "
            "it is bound, p99",
            measured=round(percentile(seconds, 0.99), 3),
            unit="s",
            goal="≤ 0.3 s",
            note=f"upstream 0.93 s with 300 claims; median of {len(seconds)} claims {percentile(seconds, 0.5):.3f} s",
        ),
        Figure(row="h", what="all claims created and settled", measured=round(prepared, 1), unit="s"),
    ]


async def _restarted(on: Scene, sizes: Sizes, row: str, number: signal.Signals) -> Found:
    await on.lab.quiet()
    mark, deployment = on.lab.audit_mark(), on.lab.deployment
    before = {service: deployment.service(service).pid for service in (WORKER, WATCH)}
    began = time.time()
    for service in before:
        deployment.kill(service, number)
    await make(on, [f"after-{row}"])
    bound = await moment(on, f"after-{row}", BOUND)
    started = [_started(deployment.service(service).pid) for service in before]
    await on.lab.quiet()
    requests = on.lab.requests_since(mark)
    lists = sum(count for name, count in requests.items() if name.startswith(("list ", "watch ")))
    figures = (
        Figure(
            row=row,
            what=f"{sizes.idle_claims} settled claims, {number.name} to worker and watcher: a new claim is bound after",
            measured=round(bound - max(started), 2),
            unit="s",
            goal="≤ 5 s",
            note=f"counted from when both processes had started; {bound - began:.2f} s from the signal",
        ),
        Figure(
            row=row,
            what="requests caused by the restart",
            measured=sum(requests.values()),
            goal="only lists and watches, and the new claim's own requests",
            note=f"{lists} lists and watches, {writes(requests)} writes; the new claim's requests are among these",
        ),
    )
    return Found(figures=figures, breakdown={f"{row}: Kubernetes requests": dict(requests.most_common())})


def _started(pid: int | None) -> float:
    return float(psutil.Process(pid).create_time()) if pid is not None else 0.0


async def held(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        began = time.time()
        await make_settled(on, sizes.held_claims, "held", lambda: _sizes_text(_memories(on)))
        prepared = time.time() - began
        sizes_mib = _memories(on)
    figures = (
        Figure(
            row="j",
            what=f"memory of worker and watcher with {sizes.held_claims} settled claims",
            measured=round(sum(sizes_mib.values())),
            unit="MiB",
            goal="≤ 600 MB",
            note=_sizes_text(sizes_mib),
        ),
        Figure(row="j", what="all claims created and settled", measured=round(prepared, 1), unit="s"),
    )
    return told(Found(figures=figures))


def _memories(on: Scene) -> dict[str, float]:
    return {service: memory_mib(on.lab, service) for service in (WORKER, WATCH)}


def _sizes_text(sizes_mib: dict[str, float]) -> str:
    return ", ".join(f"{service} {size:.0f} MiB" for service, size in sizes_mib.items())
