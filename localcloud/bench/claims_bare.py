"""Row w of `perdure bench claims`: the CPU of claims, compared with the bare writes of the same objects."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from domain.built_in_kinds import CONFIG_MAP
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.identity import Kind
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, mapping, text
from localcloud.bench.claims_telling import Meter, beyond_idle, each_of, idle_cpu, told
from localcloud.bench.claims_things import (
    OPERATOR,
    PAUSE_SECONDS,
    USERS,
    Scene,
    Sizes,
    all_ready,
    claim,
    make,
    path,
    scene,
    settled,
    thing,
)
from localcloud.bench.figures import Figure, Found
from localcloud.services import API_SERVER, ETCD

_READY_SECONDS = 120.0
# How many claims are written at a time: as many as the binder handles at a time.
_AT_ONCE = 16
# The objects of one ready claim: the claim, its handle and its resource.
_Objects = tuple[JsonObject, JsonObject, JsonObject]


async def against_bare_writes(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        idle = await idle_cpu(on.lab)
        cases = (("one after the other", sizes.counted, 1), ("at once", sizes.burst, _AT_ONCE))
        products: list[tuple[dict[str, float], list[_Objects]]] = []
        for number, (_, count, places) in enumerate(cases):
            names = [f"whole-{number}-{each}" for each in range(count)]
            products.append(await _product(on, names, places, idle))
        figures: list[Figure] = []
        async with on.lab.nobody_at_work(ready_seconds=_READY_SECONDS):
            for (how, count, places), (product, objects) in zip(cases, products, strict=True):
                bare = await _bare(on, objects, places, idle)
                figures.append(_compared(f"{count} claims {how}", count, product, bare))
    return told(Found(figures=tuple(figures)))


def _compared(what: str, count: int, product: Mapping[str, float], bare: Mapping[str, float]) -> Figure:
    of_product, of_bare = sum(product.values()), sum(bare.values())
    return Figure(
        row="w",
        what=f"{what}: CPU of everything, relative to bare writes of the same objects",
        measured=round(of_product / of_bare, 2),
        unit="times",
        goal="≤ 1.5 times",
        note=f"each {each_of(product, count)}; bare writes {each_of(bare, count)}",
    )


async def _product(
    on: Scene, names: Sequence[str], places: int, idle: Mapping[str, float]
) -> tuple[dict[str, float], list[_Objects]]:
    await on.lab.quiet()
    things: dict[str, tuple[str, str]] = {}
    async with on.seen.only(RESOURCE_CLAIM):
        meter, began = Meter(on.lab), time.monotonic()
        if places == 1:
            for name in names:
                await make(on, [name])
                await all_ready(on, [name])
                await asyncio.sleep(PAUSE_SECONDS)
        else:
            await make(on, names)
            await all_ready(on, names)
        await settled(on)
        cpu = beyond_idle(meter.read().cpu, idle, time.monotonic() - began)
        things = {name: thing(on, name) for name in names}
    kube = on.lab.kube
    objects = [
        (
            await kube.get(RESOURCE_CLAIM, USERS, name),
            await kube.get(RESOURCE_HANDLE, OPERATOR, on.seen.handle_of[path(name)]),
            await kube.get(CONFIG_MAP, *things[name]),
        )
        for name in names
    ]
    return cpu, objects


async def _bare(on: Scene, objects: Sequence[_Objects], places: int, idle: Mapping[str, float]) -> dict[str, float]:
    permits = asyncio.Semaphore(places)

    async def one(whole: _Objects) -> None:
        async with permits:
            await _written(on.lab.kube, whole)

    async with on.seen.only(RESOURCE_CLAIM):
        meter, began, own = Meter(on.lab), time.monotonic(), time.process_time()
        await asyncio.gather(*map(one, objects))
        own = time.process_time() - own
        cpu = beyond_idle(meter.read().cpu, idle, time.monotonic() - began)
    return {API_SERVER: cpu[API_SERVER], ETCD: cpu[ETCD], "this process": own}


async def _written(kube: KubeApi, whole: _Objects) -> None:
    final, handle, resource = whole
    name = f"{text(final, 'metadata', 'name')}-bare"
    there = await kube.create(RESOURCE_CLAIM, claim(name), USERS)
    there = await _put(kube, RESOURCE_CLAIM, there, metadata={**mapping(there, "metadata"), **_marks(final)})
    spec = {**mapping(handle, "spec"), "resourceClaim": {**mapping(handle, "spec", "resourceClaim"), "name": name}}
    held = await kube.create(RESOURCE_HANDLE, {"metadata": _copied(handle), "spec": spec}, OPERATOR)
    shown = mapping(final, "status")
    bound = {field: value for field, value in shown.items() if field not in ("ready", "resources")}
    there = await _put(kube, RESOURCE_CLAIM, there, "status", status=bound)
    await kube.create(CONFIG_MAP, {**resource, "metadata": _copied(resource)}, text(resource, "metadata", "namespace"))
    await _put(kube, RESOURCE_HANDLE, held, "status", status=mapping(handle, "status"))
    there = await _put(kube, RESOURCE_CLAIM, there, spec=mapping(final, "spec"))
    await _put(kube, RESOURCE_CLAIM, there, "status", status=shown)


def _marks(obj: JsonObject) -> JsonObject:
    metadata = mapping(obj, "metadata")
    return {name: metadata[name] for name in ("annotations", "labels", "finalizers") if name in metadata}


def _copied(obj: JsonObject) -> JsonObject:
    return {**_marks(obj), "name": f"{text(obj, 'metadata', 'name')}-bare"}


async def _put(kube: KubeApi, kind: Kind, obj: JsonObject, subresource: str = "", **parts: object) -> JsonObject:
    after = {**obj, **parts}
    metadata = {name: value for name, value in mapping(after, "metadata").items() if name != "managedFields"}
    namespace, name = text(metadata, "namespace"), text(metadata, "name")
    return await kube.replace(kind, namespace, name, {**after, "metadata": metadata}, subresource=subresource)
