"""`perdure bench threescale`: the 3scale area's figures, counted by the simulator's ledger.

docs/benchmarks.md describes the rows.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from domain.control_annotations import RETRIED, RETRY
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.orphan_backoff import next_look
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.bench.claims_telling import together, told
from localcloud.bench.figures import Figure, Found, Measure
from localcloud.bench.threescale_crowds import apart, crowded
from localcloud.bench.threescale_lives import disturbed, shuffled
from localcloud.bench.threescale_namespaces import namespaces
from localcloud.bench.threescale_things import (
    HITS,
    Counted,
    Scene,
    Sizes,
    backend,
    counted,
    done,
    example,
    orphan,
    product,
    rule,
    scene,
)

__all__ = ["MEASUREMENTS", "Measure", "Sizes"]

SHOP = "shop"
LOOKS = 10
WAITED_SECONDS = 30.0


async def one_product(_: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        await on.tenant(SHOP)
        await on.create([backend("first"), backend("second")], SHOP)
        await on.until(lambda: on.all_done(2, (BACKEND,)))
        found = [told(await _made(on))]
        measures = (("b", _renamed), ("c", _inserted), ("i", _observe_again), ("f", _waited))
        found += [told(await measure(on)) for row, measure in measures if row in rows]
    all_of_them = together(found)
    return all_of_them.model_copy(update={"figures": tuple(each for each in all_of_them.figures if each.row in rows)})


async def _made(on: Scene) -> Found:
    async def work() -> None:
        await on.create([example("example", "first", "second")], SHOP)
        await on.until(lambda: on.all_done(1, (PRODUCT,)))

    cost = await counted(on, work)
    note = f"upstream ~84 calls; Perdure: {cost.ledger.mutating()} writes, {cost.seconds:.2f} s"
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
    note = (
        f"{upstream} calls; Perdure: {cost.ledger.mutating()} writes, {cost.ledger.reading()} reads, "
        f"{cost.seconds:.2f} s"
    )
    figure = Figure(row=row, what=f"calls for {what}", measured=cost.ledger.calls(), goal=goal, note=note)
    writes = Figure(row=row, what="writes among these calls", measured=cost.ledger.mutating(), goal=goal)
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


async def _observe_again(on: Scene) -> Found:
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
    looks = await counted(on, lambda: _retry(on))
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
            what=f"{LOOKS} observations of every object, by `retry`: writes",
            measured=looks.ledger.mutating(),
            goal="0",
            note=f"{looks.ledger.reading()} reads",
        ),
    )
    return Found(figures=figures)


async def _retry(on: Scene) -> None:
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
        Figure(
            row="f",
            what="observations planned for an hour of waiting (not measured)",
            measured=_looks_in_an_hour(),
            goal="11 to 13",
        ),
        Figure(
            row="f",
            what="from the backend's creation until backend and product are settled",
            measured=round(arrival.seconds, 2),
            unit="s",
            goal="≤ 2 s",
            note=f"{arrival.ledger.calls()} calls; the replaced operator needs up to 16.7 min",
        ),
    )
    return Found(figures=figures)


def _looks_in_an_hour() -> int:
    since = moment = datetime.now(UTC)
    looks = 0
    while (moment := next_look(since, moment, "bench")) <= since + timedelta(hours=1):
        looks += 1
    return looks


# Rows that run only on request: l takes an hour.
ON_REQUEST = frozenset({"l"})
# The rows of each deployment; j takes two.
MEASUREMENTS = (
    (frozenset({"a", "b", "c", "f", "i"}), one_product),
    (frozenset({"d", "e", "l"}), crowded),
    (frozenset({"g"}), shuffled),
    (frozenset({"h"}), disturbed),
    (frozenset({"j"}), apart),
    (frozenset({"k"}), namespaces),
)
