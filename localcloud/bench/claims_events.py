"""Rows f and g of `perdure bench claims`: expiries, and reactions to changes made by others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from domain.built_in_kinds import CONFIG_MAP
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from engine.kube.json import JsonObject
from localcloud.bench.claims_sightings import BOUND, DELETING, DETACHED, GONE, PENDING, READY
from localcloud.bench.claims_telling import Cost, Meter, step, together, told
from localcloud.bench.claims_things import (
    APPROVED,
    OPERATOR,
    POOLED,
    SAID,
    USERS,
    Scene,
    Sizes,
    all_ready,
    end,
    make,
    moment,
    path,
    scene,
    thing,
)
from localcloud.bench.figures import Figure, Found, percentile
from localcloud.bench.laboratory import PATIENCE_SECONDS, writes
from localcloud.state import Cloud

# From creating the first claim to the first expiry; all must be settled by then.
_LEAD_SECONDS = 35
_DOWN_LEAD_SECONDS = 20
_MARK = "marked"


async def ends(sizes: Sizes, rows: frozenset[str]) -> Found:
    found: list[Found] = []
    async with scene() as on:
        for part, measure in _ENDS:
            if part in rows:
                step(f"{part} begins")
                found.append(told(await measure(on, sizes)))
                await on.lab.quiet()
    return together(found)


async def _spread(on: Scene, sizes: Sizes) -> Found:
    late, cost = await _late(on, "spread", sizes.ends, sizes.ends_seconds)
    what = f"{sizes.ends} expiries spread over {sizes.ends_seconds} s: lateness"
    figures = (
        _lateness(f"{what}, p50", percentile(late, 0.5), "≤ 0.4 s", f"p90 {percentile(late, 0.9):.2f} s"),
        _lateness("expiries spread evenly: highest lateness", max(late), "≤ 1 s", "upstream 30 s and 60 s"),
        *_cost(cost, sizes.ends),
    )
    return Found(figures=figures, breakdown={"f1: Kubernetes requests": dict(cost.requests.most_common())})


async def _at_once(on: Scene, sizes: Sizes) -> Found:
    late, cost = await _late(on, "together", sizes.ends, 1)
    what = f"{sizes.ends} expiries in one second: highest lateness"
    figures = (
        _lateness(what, max(late), "≤ 8 s", f"p50 {percentile(late, 0.5):.2f} s"),
        *_cost(cost, sizes.ends),
    )
    return Found(figures=figures, breakdown={"f2: Kubernetes requests": dict(cost.requests.most_common())})


async def _while_down(on: Scene, sizes: Sizes) -> Found:
    late, up = await _late_after_downtime(on, sizes.ends_while_down)
    note = f"counted from when worker and watcher were ready, {up:.1f} s after the start"
    what = f"{sizes.ends_while_down} expiries while everything was down: highest lateness after the start"
    return Found(figures=(_lateness(what, max(late), "≤ 2 s", f"p50 {percentile(late, 0.5):.2f} s; {note}"),))


_ENDS: tuple[tuple[str, Callable[[Scene, Sizes], Awaitable[Found]]], ...] = (
    ("f1", _spread),
    ("f2", _at_once),
    ("f3", _while_down),
)


def _lateness(what: str, seconds: float, goal: str, note: str = "") -> Figure:
    return Figure(row="f", what=what, measured=round(seconds, 2), unit="s", goal=goal, note=note)


def _cost(cost: Cost, ends: int) -> tuple[Figure, ...]:
    return (
        Figure(
            row="f",
            what="Kubernetes requests per expiry",
            measured=round(sum(cost.requests.values()) / ends, 2),
            note=f"{writes(cost.requests) / ends:.2f} of them writes",
        ),
        Figure(row="f", what="CPU per expiry, ms", measured=cost.cpu_of(ends)),
    )


async def _late(on: Scene, prefix: str, count: int, seconds: int) -> tuple[list[float], Cost]:
    first = int(time.time()) + _LEAD_SECONDS
    due = {f"{prefix}-{number}": first + number * seconds // count for number in range(count)}
    await _make_ending(on, due)
    await on.lab.quiet()
    step(f"{count} claims are settled, {first - time.time():.0f} s before the first end")
    meter = Meter(on.lab)
    late = [seen - due[name] for name, seen in (await _deleted(on, due)).items()]
    await on.lab.quiet()
    return late, meter.read()


async def _late_after_downtime(on: Scene, count: int) -> tuple[list[float], float]:
    deployment = on.lab.deployment
    due = dict.fromkeys((f"down-{number}" for number in range(count)), int(time.time()) + _DOWN_LEAD_SECONDS)
    await _make_ending(on, due)
    step("the deployment is stopped")
    await asyncio.to_thread(deployment.down)
    await asyncio.sleep(max(0.0, max(due.values()) + 1 - time.time()))
    step("the deployment is started again")
    began = time.time()
    deployment.start(clouds=(Cloud.AWS,), tether=True)  # in this thread, since the deployment is tied to it
    await asyncio.to_thread(deployment.wait_ready)
    ready = time.time()
    deleted = await _deleted(on, due)
    return [max(0.0, seen - ready) for seen in deleted.values()], ready - began


async def _make_ending(on: Scene, due: Mapping[str, float]) -> None:
    names = list(due)
    for start in range(0, len(names), 50):
        some = names[start : start + 50]
        await asyncio.gather(*(make(on, [name], POOLED, lifespan=end(due[name])) for name in some))
        await all_ready(on, some)


async def _deleted(on: Scene, names: Sequence[str] | Mapping[str, float]) -> dict[str, float]:
    parts = {
        name: [
            (RESOURCE_CLAIM, path(name)),
            (RESOURCE_HANDLE, f"{OPERATOR}/{on.seen.handle_of[path(name)]}"),
            *((CONFIG_MAP, each) for each in on.seen.things_of[path(name)]),
        ]
        for name in names
    }
    found: dict[str, float] = {}
    async with asyncio.timeout(PATIENCE_SECONDS):
        for name, each in parts.items():
            await on.seen.until(lambda each=each: all(on.seen.ended(*part) is not None for part in each))  # type: ignore[misc]
            found[name] = max(seen for part in each if (seen := on.seen.ended(*part)) is not None)
    return found


# g


async def reactions(sizes: Sizes, rows: frozenset[str]) -> Found:
    async with scene() as on:
        found = {
            "approval granted → bound": await _each(on, sizes, "approval", _approve),
            "resource says that it is ready → claim ready": await _each(on, sizes, "readiness", _get_ready),
            "condition of auto-delete → claim deleted": await _each(on, sizes, "delete", _auto_delete),
            "condition of auto-detach → claim detached": await _each(on, sizes, "detach", _auto_detach),
        }
    figures = tuple(
        Figure(
            row="g",
            what=f"{what}: longest of {len(seconds)}",
            measured=round(max(seconds), 3),
            unit="s",
            goal="≤ 0.5 s",
            note=f"median {percentile(seconds, 0.5):.3f} s, upstream 48 to 57 s",
        )
        for what, seconds in found.items()
    )
    return told(Found(figures=figures))


async def _each(on: Scene, sizes: Sizes, prefix: str, react: Callable[[Scene, str], Awaitable[float]]) -> list[float]:
    seconds = []
    for number in range(sizes.reactions):
        seconds.append(await react(on, f"{prefix}-{number}"))
        await asyncio.sleep(0.3)
    return seconds


async def _approve(on: Scene, name: str) -> float:
    await make(on, [name], APPROVED)
    await moment(on, name, PENDING)
    await asyncio.sleep(0.2)
    began = time.time()
    approved: JsonObject = {"status": {"approval": {"state": "approved"}}}
    await on.lab.patch(RESOURCE_CLAIM, USERS, name, approved, subresource="status")
    return await moment(on, name, BOUND) - began


async def _get_ready(on: Scene, name: str) -> float:
    await make(on, [name], SAID)
    return await _say(on, name, "ready", READY)


async def _auto_delete(on: Scene, name: str) -> float:
    await make(on, [name], POOLED, autoDelete={"when": _condition()})
    await moment(on, name, READY)
    return await _say(on, name, _MARK, DELETING, GONE)


async def _auto_detach(on: Scene, name: str) -> float:
    await make(on, [name], POOLED, autoDetach={"when": _condition()})
    await moment(on, name, READY)
    return await _say(on, name, _MARK, DETACHED)


def _condition() -> str:
    return f"status.resources[0].state.data.said | default('') == '{_MARK}'"


async def _say(on: Scene, name: str, message: str, *words: str) -> float:
    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.seen.until(lambda: bool(on.seen.things_of.get(path(name))))
    await asyncio.sleep(0.2)
    began = time.time()
    namespace, resource = thing(on, name)
    await on.lab.patch(CONFIG_MAP, namespace, resource, {"data": {"said": message}})

    def seen() -> float | None:
        found = (on.seen.first(RESOURCE_CLAIM, path(name), word) for word in words)
        return min((each for each in found if each is not None), default=None)

    async with asyncio.timeout(PATIENCE_SECONDS):
        await on.seen.until(lambda: seen() is not None)
    return (seen() or began) - began
