"""`perdure bench claims`: the resource claims' figures; rows a to d are here, the other rows in `claims_*.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from localcloud.bench.claims_bare import against_bare_writes
from localcloud.bench.claims_crowds import crowded, held, idle
from localcloud.bench.claims_events import ends, reactions
from localcloud.bench.claims_growth import growth
from localcloud.bench.claims_race import race
from localcloud.bench.claims_sightings import BOUND, FREE, FREE_AND_READY, READY
from localcloud.bench.claims_starved import SHARES, starved
from localcloud.bench.claims_telling import together, told
from localcloud.bench.claims_things import (
    OPERATOR,
    PAUSE_SECONDS,
    POOLED,
    Scene,
    Sizes,
    all_ready,
    create_pool,
    make,
    moment,
    scene,
)
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.laboratory import PATIENCE_SECONDS, writes

__all__ = ["MEASUREMENTS", "ON_REQUEST", "Sizes"]

POOL = "pool"


async def served(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        found = [
            told(await measure(on, sizes)) for row, measure in _SERVED if row in rows or (row == "c" and "a" in rows)
        ]
    all_of_them = together(found)
    wanted = tuple(figure for figure in all_of_them.figures if figure.row in rows)
    return all_of_them.model_copy(update={"figures": wanted})


async def _requests(on: Scene, sizes: Sizes) -> Found:
    names = [f"counted-{number}" for number in range(sizes.counted)]
    await on.lab.quiet()
    mark, before = on.lab.audit_mark(), on.lab.cpu()
    for name in names:
        await make(on, [name])
        await moment(on, name, READY)
        await asyncio.sleep(PAUSE_SECONDS)
    await on.lab.quiet()
    requests, after = on.lab.requests_since(mark), on.lab.cpu()
    each = sum(requests.values()) / sizes.counted
    cpu = ", ".join(f"{service} {1000 * (after[service] - before[service]) / sizes.counted:.0f}" for service in after)
    figures = (
        Figure(
            row="d",
            what=f"Kubernetes requests per claim, for {sizes.counted} claims created one after the other",
            measured=round(each, 2),
            goal="≤ 10",
            note="upstream 28 to 34; counted until all work has ended",
        ),
        Figure(row="d", what="writes per claim", measured=round(writes(requests) / sizes.counted, 2), goal="≤ 8"),
        Figure(row="d", what="CPU per claim, ms", measured=cpu),
    )
    return Found(figures=figures, breakdown={"d: Kubernetes requests": dict(requests.most_common())})


async def _burst(on: Scene, sizes: Sizes) -> Found:
    names = [f"burst-{number}" for number in range(sizes.burst)]
    await on.lab.quiet()
    mark = on.lab.audit_mark()
    async with on.seen.only(RESOURCE_CLAIM):
        sent = await make(on, names)
        began = min(sent.values())
        bound = max([await moment(on, name, BOUND) for name in names]) - began
        ready = await all_ready(on, names) - began
    quiet = time.time()
    await on.lab.quiet()
    requests = on.lab.requests_since(mark)
    figures = (
        Figure(
            row="b",
            what=f"{sizes.burst} claims at once, no pool: all ready",
            measured=round(ready, 2),
            unit="s",
            goal="≤ 2.5 s",
            note=f"upstream 7.9 s; all bound after {bound:.2f} s, the last posted after "
            f"{max(sent.values()) - began:.2f} s",
        ),
        Figure(row="b", what="until all work has ended", measured=round(time.time() - quiet, 1), unit="s"),
        Figure(row="b", what="Kubernetes requests per claim", measured=round(sum(requests.values()) / sizes.burst, 2)),
    )
    return Found(figures=figures, breakdown={"b: Kubernetes requests": dict(requests.most_common())})


async def _pool(on: Scene, sizes: Sizes) -> Found:
    await on.lab.quiet()
    mark, began = on.lab.audit_mark(), time.time()
    await create_pool(on, POOL, sizes.pool)
    path = f"{OPERATOR}/{POOL}"
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.seen.until(lambda: on.seen.count(RESOURCE_HANDLE, FREE) >= sizes.pool)
        made = time.time() - began
        await on.seen.until(lambda: on.seen.count(RESOURCE_HANDLE, FREE_AND_READY) >= sizes.pool)
        handles = time.time() - began
        shown = await on.seen.moment(RESOURCE_POOL, path, READY) - began
    await on.lab.quiet()
    requests = on.lab.requests_since(mark)
    figures = (
        Figure(
            row="c",
            what=f"a pool filled from 0 to {sizes.pool}: all handles ready, and its status says so",
            measured=round(max(handles, shown), 2),
            unit="s",
            goal="≤ 0.8 s",
            note=f"upstream 2.0 s, shown after 7.1 s; handles exist after {made:.2f} s, ready after {handles:.2f} s",
        ),
        Figure(row="c", what="Kubernetes requests per handle", measured=round(sum(requests.values()) / sizes.pool, 2)),
    )
    return Found(figures=figures, breakdown={"c: Kubernetes requests": dict(requests.most_common())})


async def _singles(on: Scene, sizes: Sizes) -> Found:
    names = [f"single-{number}" for number in range(sizes.singles)]
    bound, ready = [], []
    for name in names:
        sent = (await make(on, [name], POOLED))[name]
        bound.append(await moment(on, name, BOUND) - sent)
        ready.append(await moment(on, name, READY) - sent)
        await asyncio.sleep(PAUSE_SECONDS)
    figures = (
        _milliseconds("bound to a free handle of the pool, p50", percentile(bound, 0.5), "≤ 80 ms", "upstream 250 ms"),
        _milliseconds(f"bound, p99 of {len(bound)}", percentile(bound, 0.99), "≤ 250 ms", _spread(bound)),
        _milliseconds("ready, p50", percentile(ready, 0.5), "≤ 120 ms", f"upstream 370 ms; {_spread(ready)}"),
    )
    return Found(figures=figures)


def _milliseconds(what: str, seconds: float, goal: str, note: str) -> Figure:
    return Figure(row="a", what=what, measured=round(1000 * seconds), unit="ms", goal=goal, note=note)


def _spread(seconds: Sequence[float]) -> str:
    return f"p90 {1000 * percentile(seconds, 0.9):.0f} ms, worst {1000 * max(seconds):.0f} ms"


_SERVED: tuple[tuple[str, Callable[[Scene, Sizes], Coroutine[None, None, Found]]], ...] = (
    ("d", _requests),
    ("b", _burst),
    ("c", _pool),
    ("a", _singles),
)

_STARVED = frozenset(f"s{share}" for share in SHARES)
# Rows that run only on request: j and x take many minutes, and s needs root to set a quota.
ON_REQUEST = frozenset({"j", "x"}) | _STARVED
MEASUREMENTS = (
    (frozenset({"a", "b", "c", "d"}), served),
    (frozenset({"e"}), idle),
    (frozenset({"f1", "f2", "f3"}), ends),
    (frozenset({"g"}), reactions),
    (frozenset({"h", "i", "k"}), crowded),
    (frozenset({"r"}), race),
    (frozenset({"j"}), held),
    (_STARVED, starved),
    (frozenset({"w"}), against_bare_writes),
    (frozenset({"x"}), growth),
)
