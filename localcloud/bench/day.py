"""`perdure bench day`: a day's objects of all areas in an hour; each is created and changed, and most are ended."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter

from domain.model import Model
from localcloud.bench.all_areas import Area, Everything, everything
from localcloud.bench.claims_telling import step, told
from localcloud.bench.figures import Figure, Found
from localcloud.deployment import DeploymentError
from localcloud.services import API_SERVER, ETCD, EVENTS, TEMPORAL, WATCH, WORKER

_COUNTS = {"claims": 500, "accounts": 50, "balancers": 20, "products": 200, "instances": 500}
_VICTIMS = (WORKER, WATCH, TEMPORAL, API_SERVER, EVENTS, ETCD)
_KILL_EVERY_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 15.0
# Shares of the day: the time in which objects are created; the pause before a change, and between change and end.
_CREATED_WITHIN, _PAUSE = 0.7, 0.12
_KEPT_SHARE = 0.2
_SETTLING_SECONDS = 1800.0


class Sizes(Model):
    minutes: float = 60.0
    scale: float = 1.0


async def day(sizes: Sizes, rows: frozenset[str]) -> Found:
    seconds = 60 * sizes.minutes
    dice = random.Random(7)  # noqa: S311 - repeatable on purpose
    async with everything([name for name in _COUNTS if name in rows]) as on:
        mark, began = on.lab.audit_mark(), time.monotonic()
        memory: list[tuple[float, float]] = []
        lives = [
            asyncio.create_task(_life(area, f"{name}-{number:03}", seconds, dice))
            for name, area in on.areas.items()
            for number in range(max(1, round(_COUNTS[name] * sizes.scale)))
        ]
        step(f"{len(lives)} objects within {sizes.minutes:g} min")
        looking = asyncio.create_task(_look(on, memory, began))
        killed: Counter[str] = Counter()
        killing = asyncio.create_task(_kill(on, killed))
        await asyncio.gather(*lives)
        await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)
        late = time.monotonic() - began - seconds
        settling, found = await on.settled(_SETTLING_SECONDS, entirely=True)
        looking.cancel()
        await on.lab.quiet()
        found += await on.verdict()
        for each in found:
            step(each)
        requests = on.lab.requests_since(mark)
    first, last = (
        max((size for moment, size in memory if begin <= moment < begin + seconds / 2), default=0.0)
        for begin in (0.0, seconds / 2)
    )
    ended = sum(len(area.ended) for area in on.areas.values())
    counts = ", ".join(f"{len(area.changes) + len(area.ended)} {name}" for name, area in on.areas.items())
    figures = (
        Figure(
            row="day",
            what=f"{len(lives)} objects created and changed, {ended} of them ended: from the last request until all "
            "are settled",
            measured=round(settling, 1),
            unit="s",
            note=f"{counts}; planned within {sizes.minutes:g} min, the last request was {max(0.0, late):.0f} s late",
        ),
        Figure(
            row="day",
            what="objects lost, created twice, or found by the audits",
            measured=len(found),
            goal="0",
            note=f"{killed.total()} kills: " + ", ".join(f"{name} {number}" for name, number in killed.items()),
        ),
        Figure(
            row="day",
            what="highest memory of worker, watcher and consumer together: second half of the day, first half",
            measured=f"{last:.0f}; {first:.0f} MiB",
            goal="flat",
        ),
    )
    return told(Found(figures=figures, breakdown={"day: Kubernetes requests": dict(requests.most_common())}))


async def _life(area: Area, name: str, seconds: float, dice: random.Random) -> None:
    begin, is_kept = dice.uniform(0, _CREATED_WITHIN) * seconds, dice.random() < _KEPT_SHARE
    await asyncio.sleep(begin)
    await area.create(name)
    await asyncio.sleep(_PAUSE * seconds)
    await area.change(name)
    await asyncio.sleep(_PAUSE * seconds)
    if not is_kept:
        await area.end(name)


async def _kill(on: Everything, killed: Counter[str]) -> None:
    for victim in itertools.cycle(_VICTIMS):
        await asyncio.sleep(_KILL_EVERY_SECONDS)
        try:
            await asyncio.to_thread(on.lab.deployment.kill, victim)
            killed[victim] += 1
            step(f"{victim} is killed")
        except DeploymentError as error:
            step(f"not killed: {error}")


async def _look(on: Everything, memory: list[tuple[float, float]], began: float) -> None:
    while True:
        used = await asyncio.to_thread(on.memory_mib)
        memory.append((time.monotonic() - began, sum(used.values())))
        await asyncio.sleep(_LOOK_EVERY_SECONDS)


MEASUREMENTS = ((frozenset(_COUNTS), day),)
