"""Row r of `perdure bench claims`: more claims at once than free handles; later the pool creates more handles."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from engine.kube.json import JsonObject, text
from localcloud.bench.claims_sightings import BOUND, FREE_AND_READY
from localcloud.bench.claims_telling import step, told
from localcloud.bench.claims_things import OPERATOR, POOLED, Scene, Sizes, create_pool, make, scene
from localcloud.bench.figures import Figure, Found
from localcloud.bench.laboratory import PATIENCE_SECONDS

_POOL = "race"


async def race(sizes: Sizes, rows: frozenset[str]) -> Found:
    handles, claims = sizes.race_handles, sizes.race_claims
    async with scene() as on:
        await _filled(on, handles)
        await _want(on, 0)
        await on.lab.quiet()
        step(f"{handles} handles are free, {claims} claims are made")
        began = time.time()
        await make(on, [f"racer-{number}" for number in range(claims)], POOLED, disableCreation=True)
        await _bound(on, handles)
        took = time.time() - began
        await on.lab.quiet()
        first = await _pairs(on)
        began = time.time()
        await _want(on, claims - handles)
        await _bound(on, claims)
        served = time.time() - began
        await on.lab.quiet()
        second = await _pairs(on)
    retained = sum(second.get(claim) == handle for claim, handle in first.items())
    figures = (
        Figure(
            row="r",
            what=f"{claims} claims race for {handles} handles: distinct handles, claims that wait",
            measured=f"{len(set(first.values()))}, {claims - len(first)}",
            goal=f"{handles}, {claims - handles}",
            note=f"the handles are bound {took:.2f} s after the first claim was sent",
        ),
        Figure(
            row="r",
            what="the pool creates the missing handles: distinct handles, claims that kept their handle",
            measured=f"{len(set(second.values()))}, {retained}",
            goal=f"{claims}, {handles}",
            note=f"all bound {served:.2f} s after the pool was changed",
        ),
    )
    return told(Found(figures=figures))


async def _filled(on: Scene, size: int) -> None:
    await create_pool(on, _POOL, size)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.seen.until(lambda: on.seen.count(RESOURCE_HANDLE, FREE_AND_READY) >= size)


async def _want(on: Scene, size: int) -> None:
    await on.lab.patch(RESOURCE_POOL, OPERATOR, _POOL, {"spec": {"minAvailable": size}})


async def _bound(on: Scene, count: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.seen.until(lambda: on.seen.count(RESOURCE_CLAIM, BOUND) >= count)


async def _pairs(on: Scene) -> dict[str, str]:
    claims = (await on.lab.kube.list(RESOURCE_CLAIM)).items
    handles = (await on.lab.kube.list(RESOURCE_HANDLE)).items
    return agreed(claims, handles)


def agreed(claims: Iterable[JsonObject], handles: Iterable[JsonObject]) -> dict[str, str]:
    held = [(text(each, "spec", "resourceClaim", "name"), text(each, "metadata", "name")) for each in handles]
    named = Counter(claim for claim, _ in held if claim)
    told_by_claims = {
        (text(each, "metadata", "name"), text(each, "status", "resourceHandle", "name")) for each in claims
    }
    return {claim: handle for claim, handle in held if named[claim] == 1 and (claim, handle) in told_by_claims}
