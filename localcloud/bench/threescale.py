"""`perdure bench threescale`: rows of the 3scale area's issue, calls counted by the simulator's ledger.

    a, b, c, i   the reference's example product: made, changed in one place, looked at again and again
    f            a product that waits for its backend
    d, e         many settled objects: a resync, and a restart of worker, watcher and Temporal
    g            everything applied in orders that nobody would choose
    h            every kind of write late, lost, refused: nothing twice, nothing missing
    j            ten tenants, of which one hangs

The upstream figures in notes are of the replaced operator, counted from its code. A resync is played by a wake of every
object; a look at 3scale that nothing wanted, by the lever `retry`.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.identity import Kind
from domain.levers import RETRIED, RETRY
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.orphans import next_look
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.bench.claims_telling import step, together, told
from localcloud.bench.figures import Figure, Found, Measure
from localcloud.bench.threescale_things import (
    HITS,
    Counted,
    Scene,
    Sizes,
    application,
    backend,
    counted,
    developer,
    done,
    example,
    orphan,
    product,
    rule,
    scene,
)
from localcloud.services import TEMPORAL, WATCH, WORKER

__all__ = ["MEASUREMENTS", "Measure", "Sizes"]

SHOP = "shop"
LOOKS = 10
WAITED_SECONDS = 30.0
TENANTS = 10
# What strikes in row h: each on every call that makes, changes or deletes, twice.
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


async def one_product(_: Sizes, rows: frozenset[str]) -> Found:
    """Rows a, b, c, f and i."""
    async with scene() as on:
        await on.tenant(SHOP)
        await on.create([backend("first"), backend("second")], SHOP)
        await on.until(lambda: on.all_done(2, (BACKEND,)))
        found = [told(await _made(on))]
        measures = (("b", _renamed), ("c", _inserted), ("i", _looked_at), ("f", _waited))
        found += [told(await measure(on)) for row, measure in measures if row in rows]
    all_of_them = together(found)
    return all_of_them.model_copy(update={"figures": tuple(each for each in all_of_them.figures if each.row in rows)})


async def _made(on: Scene) -> Found:
    async def work() -> None:
        await on.create([example("example", "first", "second")], SHOP)
        await on.until(lambda: on.all_done(1, (PRODUCT,)))

    cost = await counted(on, work)
    note = f"upstream ~84; {cost.ledger.mutating()} writes, {cost.seconds:.2f} s"
    what = "calls from the example product to settled"
    figure = Figure(row="a", what=what, measured=cost.ledger.calls(), goal="≤ 42", note=note)
    return Found(figures=(figure,), breakdown={"a: calls": cost.ledger.by_route()})


async def _renamed(on: Scene) -> Found:
    spec: JsonObject = {"metrics": {"m1": {"friendlyName": "Another name"}}}
    return _of_change("b", "a metric's friendly name", "1, and a deployment", "upstream ~30", await _changed(on, spec))


async def _inserted(on: Scene) -> Found:
    before = sequence(on.lab.objects.one(PRODUCT, SHOP, "example"), "spec", "mappingRules")
    spec: JsonObject = {"mappingRules": [rule("/first", "t0"), *before]}
    return _of_change(
        "c", "a rule before ten others", "≤ 2, and a deployment", "upstream 33 + 28", await _changed(on, spec)
    )


def _of_change(row: str, what: str, goal: str, upstream: str, cost: Counted) -> Found:
    note = f"{upstream}; {cost.ledger.mutating()} writes, {cost.ledger.reading()} reads, {cost.seconds:.2f} s"
    figure = Figure(row=row, what=f"calls for {what}", measured=cost.ledger.calls(), goal=goal, note=note)
    writes = Figure(row=row, what="of them writes", measured=cost.ledger.mutating(), goal=goal)
    return Found(figures=(figure, writes), breakdown={f"{row}: calls": cost.ledger.by_route()})


async def _changed(on: Scene, spec: JsonObject, name: str = "example") -> Counted:
    async def work() -> None:
        answer = await on.lab.kube.patch(PRODUCT, SHOP, name, {"spec": spec}, field_manager="perdure-bench")
        generation = at(answer, "metadata", "generation")

        def settled() -> bool:
            found = on.lab.objects.one(PRODUCT, SHOP, name) or {}
            return at(found, "metadata", "generation") == generation and done(found)

        await on.until(settled)

    return await counted(on, work)


async def _looked_at(on: Scene) -> Found:
    """Row i: what 3scale writes in another way is no difference, however often it is looked at."""
    plain = backend("plain", "http://plain.example.com")
    plan: JsonObject = {
        "setupFee": "10.00",
        "pricingRules": [
            {"from": 1, "to": 9, "pricePerUnit": "20", "metricMethodRef": {"systemName": "hits"}},
            {"from": 10, "to": 20, "pricePerUnit": "15.40", "metricMethodRef": {"systemName": "hits"}},
        ],
    }
    odd = product(
        "odd",
        backendUsages={"plain": {"path": "v1/"}},
        applicationPlans={"p": plan},
        metrics={"hits": HITS},
        mappingRules=[rule("/b", "hits"), rule("/a", "hits")],
    )
    await on.create([plain, odd], SHOP)
    await on.until(lambda: done(on.lab.objects.one(PRODUCT, SHOP, "odd") or {}))
    await on.lab.quiet()

    async def woken() -> None:
        for _ in range(LOOKS):
            await on.wake_all(SHOP)
            await on.lab.quiet()

    resyncs = await counted(on, woken)
    looks = await counted(on, lambda: _asked_again(on))
    figures = (
        Figure(
            row="i",
            what=f"{LOOKS} resyncs: calls",
            measured=resyncs.ledger.calls(),
            goal="0",
            note="upstream writes for ever",
        ),
        Figure(
            row="i",
            what=f"{LOOKS} looks at all of it, by `retry`: writes",
            measured=looks.ledger.mutating(),
            goal="0",
            note=f"{looks.ledger.reading()} reads",
        ),
    )
    return Found(figures=figures)


async def _asked_again(on: Scene) -> None:
    for number in range(LOOKS):
        token = f"look-{number}"
        for kind, name in ((BACKEND, "plain"), (PRODUCT, "odd")):
            await on.lab.patch(kind, SHOP, name, {"metadata": {"annotations": {RETRY: token}}})

            def honoured(kind: object = kind, name: str = name, token: str = token) -> bool:
                found = on.lab.objects.one(PRODUCT if kind == PRODUCT else BACKEND, SHOP, name)
                return text(found, "metadata", "annotations", RETRIED) == token

            await on.until(honoured)


async def _waited(on: Scene) -> Found:
    await on.create([product("waiting", "late")], SHOP)
    await on.until(lambda: orphan(on.lab.objects.one(PRODUCT, SHOP, "waiting")))
    waited = await counted(on, lambda: asyncio.sleep(WAITED_SECONDS))

    async def arrives() -> None:
        await on.create([backend("late")], SHOP)
        await on.until(lambda: done(on.lab.objects.one(PRODUCT, SHOP, "waiting") or {}))

    arrival = await counted(on, arrives)
    figures = (
        Figure(
            row="f",
            what=f"a product without its backend: calls in {WAITED_SECONDS:g} s",
            measured=waited.ledger.calls(),
            goal="0",
        ),
        Figure(row="f", what="looks in an hour, computed", measured=_looks_in_an_hour(), goal="11 to 13"),
        Figure(
            row="f",
            what="from its backend's creation to settled, both",
            measured=round(arrival.seconds, 2),
            unit="s",
            goal="≤ 2 s",
            note=f"upstream up to 16.7 min; {arrival.ledger.calls()} calls",
        ),
    )
    return Found(figures=figures)


def _looks_in_an_hour() -> int:
    since = moment = datetime.now(UTC)
    looks = 0
    while (moment := next_look(since, moment, "bench")) <= since + timedelta(hours=1):
        looks += 1
    return looks


async def crowded(sizes: Sizes, rows: frozenset[str]) -> Found:
    """Rows d and e."""
    async with scene() as on:
        await on.tenant(SHOP)
        count = await _settled_crowd(on, sizes.products)
        found = []
        if "d" in rows:
            found.append(told(await _resync(on, count, sizes.products)))
        if "e" in rows:
            found.append(told(await _restart(on, count)))
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
    return Found(figures=(figure,))


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
        what=f"worker, watcher and Temporal killed and back, {count} objects: calls",
        measured=cost.ledger.calls(),
        goal="0",
        note="upstream ~4,200 for 200 products, 100 backends, 500 applications",
    )
    return Found(figures=(figure,))


async def shuffled(sizes: Sizes, _: frozenset[str]) -> Found:
    """Row g: all kinds that are made from nothing, in random orders."""
    slowest, ends = 0.0, Counter[str]()
    async with scene() as on:
        for number in range(sizes.orders):
            name = f"order-{number}"
            await on.tenant(name)
            objects = _everything()
            random.Random(number).shuffle(objects)  # noqa: S311 - an order, no secret
            began = time.monotonic()
            for each in objects:
                await on.create([each], name)
            await on.until(lambda name=name: on.all_done(_EVERYTHING, namespace=name))  # type: ignore[misc]
            slowest = max(slowest, time.monotonic() - began)
            await on.lab.quiet()
            ends[_end_state(on, name)] += 1
    figures = (
        Figure(row="g", what=f"different ends of {sizes.orders} orders", measured=len(ends), goal="1"),
        Figure(
            row="g",
            what="from the first object to all settled, slowest",
            measured=round(slowest, 1),
            unit="s",
            goal="≤ 60 s",
        ),
    )
    return Found(figures=figures, breakdown={"g: ends": dict(ends)})


def _everything() -> list[tuple[Kind, JsonObject]]:
    return [
        *developer("acme"),
        backend("first"),
        backend("second"),
        example("example", "first", "second"),
        product("small", "second"),
        application("app", "acme", "example"),
        application("other", "acme", "small"),
    ]


_EVERYTHING = 8  # the password apart


def _end_state(on: Scene, tenant: str) -> str:
    tables = on.threescale.world(tenant).tables
    return ", ".join(f"{len(rows)} {name}" for name, rows in sorted(tables.items()) if rows and name != "tokens")


async def disturbed(_: Sizes, __: frozenset[str]) -> Found:
    """Row h: the same life under each fault, compared with an undisturbed one."""
    odd: dict[str, int] = {}
    slowest = 0.0
    async with scene() as on:
        expected = await _life(on, "calm", None)
        for number, (kind, more) in enumerate(FAULTS):
            for method in ("POST", "PUT"):
                began, name = time.monotonic(), f"fault-{number}-{method.lower()}"
                if await _life(on, name, (method, kind, more)) != expected:
                    odd[f"{method} {kind} {more.get('status', '')}".strip()] = 1
                slowest = max(slowest, time.monotonic() - began)
    lives = 2 * len(FAULTS)
    figure = Figure(
        row="h",
        what=f"{lives} lives, each with one kind of call disturbed in every third call: other ends than undisturbed",
        measured=len(odd),
        goal="0",
        note=f"slowest life {slowest:.0f} s",
    )
    return Found(figures=(figure,), breakdown={"h: what ended otherwise": odd} if odd else {})


async def _life(on: Scene, name: str, fault: tuple[str, str, dict[str, Any]] | None) -> str:
    await on.tenant(name)
    if fault is not None:
        method, kind, more = fault
        on.threescale.fault(method, kind=kind, tenant=name, probability=0.33, seed=7, count=12, **more)
    await on.create(_everything(), name)
    await on.until(lambda: on.all_done(_EVERYTHING, namespace=name))
    on.threescale.clear()
    await on.lab.quiet()
    return _end_state(on, name)


async def apart(sizes: Sizes, _: frozenset[str]) -> Found:
    """Row j: what nine tenants take with the tenth well, and with the tenth hanging."""
    well = await _nine_tenants(sizes.crowd, hanging=False)
    beside = await _nine_tenants(sizes.crowd, hanging=True)
    figures = (
        Figure(
            row="j",
            what=f"{sizes.crowd} products over {TENANTS} tenants: nine settled",
            measured=round(well, 1),
            unit="s",
        ),
        Figure(
            row="j",
            what="the same, with the tenth hanging",
            measured=round(beside, 1),
            unit="s",
            goal="as fast as without it",
            note=f"{beside / well:.2f} times; upstream: all stop",
        ),
    )
    return Found(figures=figures)


async def _nine_tenants(products: int, *, hanging: bool) -> float:
    async with scene() as on:
        names = [f"tenant-{n}" for n in range(TENANTS)]
        for name in names:
            await on.tenant(name)
        if hanging:
            on.threescale.fault("*", kind="hang", tenant=names[0])
        each = products // TENANTS
        began = time.monotonic()
        await asyncio.gather(*(on.create([product(f"product-{n}") for n in range(each)], name) for name in names))
        well: Callable[[], bool] = lambda: all(on.all_done(each, (PRODUCT,), name) for name in names[1:])  # noqa: E731
        await on.until(well, seconds=600)
        seconds = time.monotonic() - began
        on.threescale.clear()
        return seconds


# Which rows each covers; one deployment each, but for j, which takes two.
MEASUREMENTS = (
    (frozenset({"a", "b", "c", "f", "i"}), one_product),
    (frozenset({"d", "e"}), crowded),
    (frozenset({"g"}), shuffled),
    (frozenset({"h"}), disturbed),
    (frozenset({"j"}), apart),
)
