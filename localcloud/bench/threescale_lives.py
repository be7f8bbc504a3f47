"""Rows g and h of `perdure bench threescale`: all kinds reach the same result in random orders, and despite faults."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from typing import Any

from domain.threescale import CUSTOM_KINDS
from domain.threescale.digests import digest
from localcloud.bench.figures import Figure, Found
from localcloud.bench.threescale_all_kinds import COUNT, all_kinds, holds
from localcloud.bench.threescale_things import Scene, Sizes, scene, true_conditions

# Row h's faults. Each is set in two tenants: in one it affects a third of the creations, in the other a third of the
# changes.
FAULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("before", {}),
    ("after", {}),
    ("cut", {}),
    ("refuse", {"status": 503}),
    ("refuse", {"status": 429, "headers": {"Retry-After": "1"}}),
    ("refuse", {"status": 403}),
    ("refuse", {"status": 404}),
    ("refuse", {"status": 422}),
    ("refuse-after", {"status": 502}),
)


async def shuffled(sizes: Sizes, _: frozenset[str]) -> Found:
    slowest, ends = 0.0, Counter[str]()
    async with scene() as on:
        master = on.threescale.tenant("master")
        for number in range(sizes.orders):
            name = f"order-{number}"
            await on.tenant(name)
            objects = all_kinds(master, name)
            random.Random(number).shuffle(objects)  # noqa: S311 - an order, no secret
            began = time.monotonic()
            for each in objects:
                await on.create([each], name)
            await on.until(lambda name=name: on.all_done(COUNT, namespace=name))  # type: ignore[misc]
            slowest = max(slowest, time.monotonic() - began)
            await on.lab.quiet()
            ends[_end_state(on, name)] += 1
    figures = (
        Figure(row="g", what=f"different results of {sizes.orders} random orders", measured=len(ends), goal="1"),
        Figure(
            row="g",
            what="from the first object until all are settled, slowest order",
            measured=round(slowest, 1),
            unit="s",
            goal="≤ 60 s",
        ),
    )
    return Found(figures=figures, breakdown={"g: ends": dict(ends)})


def _end_state(on: Scene, name: str) -> str:
    world = holds(on.threescale.world(name))
    states = sorted(
        f"{kind.name}: {true_conditions(each)}" for kind in CUSTOM_KINDS for each in on.lab.objects.of(kind, name)
    )
    counts = ", ".join(f"{len(rows)} {table}" for table, rows in world.items())
    return f"{counts}; {digest(world, states)}"


async def disturbed(_: Sizes, __: frozenset[str]) -> Found:
    async with scene() as on:
        expected = await _life(on, "calm", None)
        began = time.monotonic()
        lives = {
            f"fault-{number}-{method.lower()}": (method, kind, more)
            for number, (kind, more) in enumerate(FAULTS)
            for method in ("POST", "PUT")
        }
        ends = await asyncio.gather(*(_life(on, name, fault) for name, fault in lives.items()))
        seconds = time.monotonic() - began
        struck = sum(each.hits for each in on.threescale.faults())
    odd = {
        f"{method} {kind} {more.get('status', '')}".strip(): 1
        for (method, kind, more), end in zip(lives.values(), ends, strict=True)
        if end != expected
    }
    figure = Figure(
        row="h",
        what=f"{len(lives)} tenants, each with a third of creations or changes disturbed: those with another result",
        measured=len(odd),
        goal="0",
        note=f"{struck} calls disturbed; all tenants done after {seconds:.0f} s",
    )
    return Found(figures=(figure,), breakdown={"h: tenants with another result": odd} if odd else {})


async def _life(on: Scene, name: str, fault: tuple[str, str, dict[str, Any]] | None) -> str:
    await on.tenant(name)
    if fault is not None:
        method, kind, more = fault
        on.threescale.fault(method, kind=kind, tenant=name, probability=0.33, seed=7, count=12, **more)
    await on.create(all_kinds(on.threescale.tenant("master"), name), name)
    await on.until(lambda: on.all_done(COUNT, namespace=name))
    await on.lab.quiet()
    return _end_state(on, name)
