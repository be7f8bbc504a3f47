"""Rows d, e, l and j of `perdure bench threescale`: many objects."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable

from domain.threescale import PRODUCT
from engine.kube.json import JsonObject, text
from localcloud.bench.claims_telling import step, together, told
from localcloud.bench.figures import Figure, Found
from localcloud.bench.threescale_things import (
    Scene,
    Sizes,
    application,
    backend,
    counted,
    developer,
    done,
    product,
    scene,
)
from localcloud.services import TEMPORAL, WATCH, WORKER

SHOP = "shop"
TENANTS = 10
_LOOK_AT_MANY_SECONDS = 0.5
_RENAMED_AT_ONCE = 8
_PRODUCTS = "GET /admin/api/services"


async def crowded(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        await on.tenant(SHOP)
        count = await _settled_crowd(on, sizes.products)
        found = []
        if "d" in rows:
            found.append(told(await _resync(on, count, sizes.products)))
        if "e" in rows:
            found.append(told(await _restart(on, count)))
        if "l" in rows:
            found.append(told(await _idle(on, sizes)))
    return together(found)


async def _settled_crowd(on: Scene, products: int) -> int:
    began = time.monotonic()
    backends = [f"backend-{n}" for n in range(max(1, products // 2))]
    objects = [backend(name) for name in backends]
    objects += [product(f"product-{n}", backends[n % len(backends)]) for n in range(products)]
    people = developer("acme")
    objects += [application(f"application-{n}", "acme", f"product-{n % products}") for n in range(products * 5 // 2)]
    await on.create([*people, *objects], SHOP)
    count = len(objects) + len(people) - 1
    await on.until(lambda: on.all_done(count), seconds=1200)
    await on.lab.quiet()
    seconds = time.monotonic() - began
    step(f"{count} objects are settled after {seconds:.0f} s, with {on.threescale.ledger().calls()} calls")
    return count


async def _resync(on: Scene, count: int, products: int) -> Found:
    cost = await counted(on, lambda: on.wake_all())
    what = f"a resync of {count} settled objects, {products} products among them: calls"
    figure = Figure(row="d", what=what, measured=cost.ledger.calls(), goal="0", note="upstream 2,800 for 200 products")
    findings: list[str] = []

    async def audited() -> None:
        findings.extend(await on.lab.audit("threescale"))

    audit = await counted(on, audited)
    calls = audit.ledger.by_route()
    most = Figure(
        row="d",
        what="an audit of all these objects: highest number of list requests for one kind",
        measured=max(calls.values(), default=0),
        goal="≤ 1 per kind, tenant and page",
        note=f"{audit.ledger.calls()} calls, {audit.ledger.mutating()} of them writes",
    )
    agreed = Figure(row="d", what="findings of that audit", measured=len(findings), goal="0", note="; ".join(findings))
    return Found(figures=(figure, most, agreed), breakdown={"d: audit's calls": calls})


async def _restart(on: Scene, count: int) -> Found:
    async def restarted() -> None:
        deployment = on.lab.deployment
        for service in (WORKER, WATCH, TEMPORAL):
            await asyncio.to_thread(deployment.kill, service, signal.SIGKILL)
        for service in (TEMPORAL, WORKER, WATCH):
            await asyncio.to_thread(deployment.wait_service, service)
        await on.lab.quiet()

    cost = await counted(on, restarted)
    figure = Figure(
        row="e",
        what=f"calls after worker, watcher and Temporal were killed and started again, with {count} objects",
        measured=cost.ledger.calls(),
        goal="0",
        note="upstream ~4,200 calls for 200 products, 100 backends, 500 applications",
    )
    return Found(figures=(figure,))


async def _idle(on: Scene, sizes: Sizes) -> Found:
    step(f"nothing is done for {sizes.idle_seconds:g} s")
    idle = await counted(on, lambda: asyncio.sleep(sizes.idle_seconds))
    routes = idle.ledger.by_route()
    lists = routes.get(_PRODUCTS, 0)
    permits = asyncio.Semaphore(_RENAMED_AT_ONCE)

    async def rename(product: JsonObject) -> None:
        async with permits:
            spec = {"metrics": {"hits": {"friendlyName": "Renamed"}}}
            await on.lab.patch(PRODUCT, SHOP, text(product, "metadata", "name"), {"spec": spec})

    def renamed() -> bool:
        return all(
            done(each) and text(each, "spec", "metrics", "hits", "friendlyName") == "Renamed"
            for each in on.lab.objects.of(PRODUCT, SHOP)
        )

    async def work() -> None:
        await asyncio.gather(*map(rename, on.lab.objects.of(PRODUCT, SHOP)))
        await on.until(renamed, seconds=600, look=_LOOK_AT_MANY_SECONDS)

    cost = await counted(on, work)
    figures = (
        Figure(
            row="l",
            what=f"{sizes.products} products in one tenant, {sizes.idle_seconds:g} s idle: lists of products",
            measured=lists,
            goal="1 a sweep, one sweep an hour",
            note=f"{idle.ledger.calls()} calls, {idle.ledger.mutating()} of them writes",
        ),
        Figure(
            row="l",
            what="a metric of each product renamed: writes per product",
            measured=round(cost.ledger.mutating() / sizes.products, 2),
            goal="1, and a deployment",
            note=f"{cost.ledger.reading()} reads in all, {cost.seconds:.0f} s",
        ),
    )
    return Found(figures=figures, breakdown={"l: calls while idle": routes, "l: calls": cost.ledger.by_route()})


async def apart(sizes: Sizes, _: frozenset[str]) -> Found:
    well, well_cpu = await _nine_tenants(sizes.crowd, hanging=False)
    beside, beside_cpu = await _nine_tenants(sizes.crowd, hanging=True)
    figures = (
        Figure(
            row="j",
            what=f"{sizes.crowd} products over {TENANTS} tenants: nine tenants settled while all ten answer",
            measured=round(well, 1),
            unit="s",
            note=f"seconds of CPU: {well_cpu}",
        ),
        Figure(
            row="j",
            what="nine tenants settled while the tenth does not answer",
            measured=round(beside, 1),
            unit="s",
            goal="as fast as when all ten answer",
            note=f"{beside / well:.2f} times the time; seconds of CPU: {beside_cpu}; upstream: all tenants stop",
        ),
    )
    return Found(figures=figures)


async def _nine_tenants(products: int, *, hanging: bool) -> tuple[float, str]:
    async with scene() as on:
        names = [f"tenant-{n}" for n in range(TENANTS)]
        for name in names:
            await on.tenant(name)
        if hanging:
            on.threescale.fault("*", kind="hang", tenant=names[0])
        each = products // TENANTS
        began, before = time.monotonic(), on.lab.cpu()
        await asyncio.gather(*(on.create([product(f"product-{n}") for n in range(each)], name) for name in names))
        well: Callable[[], bool] = lambda: all(on.all_done(each, (PRODUCT,), name) for name in names[1:])  # noqa: E731
        await on.until(well, seconds=600, look=_LOOK_AT_MANY_SECONDS)
        seconds, after = time.monotonic() - began, on.lab.cpu()
        on.threescale.clear()
        return seconds, ", ".join(f"{service} {after[service] - before[service]:.0f}" for service in after)
