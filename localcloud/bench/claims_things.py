"""The providers of `perdure bench claims`; each handle's resource is a ConfigMap.

A resource is ready when it exists; with the provider `said` it is ready when a word is written into it. Claims of the
provider `approved` need an approval. The provider `clock` renders the time, so its claims are never settled for long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import NamedTuple

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from domain.built_in_kinds import CONFIG_MAP, NAMESPACE
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_PROVIDER
from domain.identity import Key
from domain.model import Model
from domain.resource import timestamp
from engine.kube.json import JsonObject, text
from localcloud.bench.claims_sightings import GONE, READY, Sightings
from localcloud.bench.claims_telling import step
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory
from localcloud.state import Cloud

OPERATOR = "poolboy"
USERS, THINGS = "users", "things"
AT_ONCE, SAID, APPROVED, CLOCK = "at-once", "said", "approved", "clock"
POSTS_AT_ONCE = 20
PAUSE_SECONDS = 0.15
# The workflow's start, and its first task scheduled and started.
_EVENTS_BEFORE_ITS_TASK = 3
# How many claims are created at a time. More would only wait for each other, and for this process's watches.
BATCH = 250


class Sizes(Model):
    singles: int = 50
    burst: int = 100
    pool: int = 50
    counted: int = 20
    idle: int = 500
    idle_seconds: float = 60.0
    ends: int = 200
    ends_seconds: int = 20
    ends_while_down: int = 50
    reactions: int = 10
    idle_claims: int = 1000
    newcomers: int = 30
    newcomer_seconds: float = 2.0
    held_claims: int = 5000
    race_claims: int = 300
    race_handles: int = 200
    starved_claims: int = 300
    growth_claims: int = 1000


class Scene(NamedTuple):
    lab: Laboratory
    seen: Sightings


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    step("a deployment is brought up")
    async with laboratory((Cloud.AWS,)) as lab:
        seen = Sightings(lab.kube)
        async with seen.followed():
            found = Scene(lab, seen)
            await create_providers(lab)
            await make(found, ["warm-up"])
            await all_ready(found, ["warm-up"])
            await delete(found, ["warm-up"])
            yield found


async def create_providers(lab: Laboratory) -> None:
    await lab.create_namespaces((USERS, THINGS), NAMESPACE)
    for each in _PROVIDERS:
        await lab.kube.create(RESOURCE_PROVIDER, each, OPERATOR)


async def make(scene: Scene, names: Iterable[str], provider: str = AT_ONCE, **spec: object) -> dict[str, float]:
    permits = asyncio.Semaphore(POSTS_AT_ONCE)
    sent: dict[str, float] = {}

    async def one(name: str) -> None:
        async with permits:
            sent[name] = time.time()
            await scene.lab.kube.create(RESOURCE_CLAIM, claim(name, provider, **spec), USERS)

    await asyncio.gather(*map(one, names))
    return sent


async def make_settled(scene: Scene, count: int, prefix: str, describe: Callable[[], str] = str) -> None:
    names = [f"{prefix}-{number}" for number in range(count)]
    for start in range(0, count, BATCH):
        batch = names[start : start + BATCH]
        await make(scene, batch)
        await all_ready(scene, batch)
        step(f"{start + len(batch)} of {count} claims are ready {describe()}".rstrip())
    await scene.lab.quiet()


async def all_ready(scene: Scene, names: Sequence[str]) -> float:
    return max([await moment(scene, name, READY) for name in names])


async def moment(scene: Scene, name: str, word: str) -> float:
    async with asyncio.timeout(PATIENCE_SECONDS):
        return await scene.seen.moment(RESOURCE_CLAIM, path(name), word)


async def settled(scene: Scene) -> None:
    await scene.lab.quiet()
    for each in (await scene.lab.kube.list(RESOURCE_CLAIM)).items:
        key = Key(kind=RESOURCE_CLAIM.name, namespace=USERS, name=text(each, "metadata", "name"), uid=_uid(each))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _had_its_task(scene.lab.temporal, key.workflow_id):  # noqa: ASYNC110 - sends no event
                await asyncio.sleep(0.5)
    await scene.lab.quiet()


def _uid(obj: JsonObject) -> str:
    return text(obj, "metadata", "uid")


async def _had_its_task(temporal: Client, workflow_id: str) -> bool:
    try:
        return (await temporal.get_workflow_handle(workflow_id).describe()).history_length > _EVENTS_BEFORE_ITS_TASK
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise


async def delete(scene: Scene, names: Iterable[str]) -> None:
    wanted = list(names)
    handles = [
        f"{OPERATOR}/{scene.seen.handle_of[path(name)]}" for name in wanted if path(name) in scene.seen.handle_of
    ]
    things = [thing for name in wanted for thing in scene.seen.things_of.get(path(name), ())]
    await asyncio.gather(*(scene.lab.kube.delete(RESOURCE_CLAIM, USERS, name) for name in wanted))
    seen = scene.seen
    async with asyncio.timeout(PATIENCE_SECONDS):
        for kind, paths in (
            (RESOURCE_CLAIM, [path(name) for name in wanted]),
            (RESOURCE_HANDLE, handles),
            (CONFIG_MAP, things),
        ):
            for each in paths:
                await seen.until(lambda kind=kind, each=each: seen.first(kind, each, GONE) is not None)  # type: ignore[misc]


def path(name: str) -> str:
    return f"{USERS}/{name}"


def claim(name: str, provider: str = AT_ONCE, **spec: object) -> JsonObject:
    values = {"text": f"of {name}", "number": 3}
    chosen: JsonObject = {"name": provider} if provider != AT_ONCE else {"name": provider, "parameterValues": values}
    return {"metadata": {"name": name}, "spec": {"provider": chosen, **spec}}


def pool(name: str, size: int) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"minAvailable": size, "provider": {"name": POOLED}}}


async def create_pool(scene: Scene, name: str, size: int) -> None:
    await scene.lab.kube.create(RESOURCE_POOL, pool(name, size), OPERATOR)


def end(seconds: float) -> dict[str, str]:
    return {"end": timestamp(datetime.fromtimestamp(int(seconds), UTC))}


def thing(scene: Scene, name: str) -> tuple[str, str]:
    namespace, _, thing = scene.seen.things_of[path(name)][0].partition("/")
    return namespace, thing


POOLED = "pooled"
_CHECKS: JsonObject = {"healthCheck": "data.guid is defined", "readinessCheck": "data.guid is defined"}


def _provider(name: str, data: JsonObject, **spec: object) -> JsonObject:
    definition: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": THINGS, "generateName": f"{name}-"},
        "data": data,
    }
    made: JsonObject = {
        "template": {"enable": True, "definition": definition},
        "override": {"data": {"guid": "{{ guid }}"}},
        "updateFilters": [{"pathMatch": "/data/text"}],
        "lifespan": {"default": "7d", "maximum": "30d"},
        **_CHECKS,
        **spec,
    }
    return {"metadata": {"name": name}, "spec": made}


_PARAMETERS = [
    {"name": "text", "allowUpdate": True, "validation": {"openAPIV3Schema": {"type": "string"}}},
    {"name": "number", "default": {"value": 1}, "validation": {"checks": [{"name": "small", "check": "value < 10"}]}},
]
_SAID = "data.said | default('') == 'ready'"
_PROVIDERS = (
    _provider(AT_ONCE, {"text": "{{ text }}", "number": "{{ number }}"}, parameters=_PARAMETERS),
    _provider(POOLED, {"text": "the same"}),
    _provider(SAID, {"text": "the same"}, readinessCheck=_SAID),
    _provider(APPROVED, {"text": "the same"}, approval={"required": True}),
    _provider(CLOCK, {"text": "the same"}, override={"data": {"guid": "{{ guid }}", "text": "{{ now() }}"}}),
)
