"""The objects, waits and counters of `perdure bench threescale`; each tenant has its own namespaces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from domain.built_in_kinds import NAMESPACE
from domain.identity import Key, Kind
from domain.model import Model
from domain.threescale import APPLICATION, BACKEND, CUSTOM_KINDS, DEVELOPER_ACCOUNT, DEVELOPER_USER, PRODUCT
from engine.kube import SECRET
from engine.kube.json import JsonObject, at, key_of, sequence, text
from engine.temporal import wake
from localcloud.bench.claims_telling import step
from localcloud.bench.laboratory import PATIENCE_SECONDS, Laboratory, laboratory
from localcloud.state import Cloud
from localcloud.threescale.contract import Ledger, TenantRecord
from localcloud.threescale.control import ThreescaleControl

HITS: JsonObject = {"friendlyName": "Hits", "unit": "hit", "description": "Number of API hits"}
_LOOK_SECONDS = 0.05
_CREATED_AT_ONCE = 16
_WOKEN_AT_ONCE = 40
_DONE = ("Synced", "Ready")


class Sizes(Model):
    products: int = 200  # d, e and l; also half as many backends, and 2.5 applications for each product
    crowd: int = 500  # j, over ten tenants
    orders: int = 20  # g
    namespaces: int = 500  # k
    idle_seconds: float = 3600.0  # l


class Scene(NamedTuple):
    lab: Laboratory
    threescale: ThreescaleControl

    def all_done(self, count: int, kinds: Iterable[Kind] = CUSTOM_KINDS, namespace: str = "") -> bool:
        found = [each for kind in kinds for each in self.lab.objects.of(kind, namespace)]
        return len(found) >= count and all(map(done, found))

    async def until(
        self, holds: Callable[[], bool], seconds: float = PATIENCE_SECONDS, *, look: float = _LOOK_SECONDS
    ) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 - see above
                await asyncio.sleep(look)

    async def tenant(self, name: str, *namespaces: str) -> TenantRecord:
        made = await asyncio.to_thread(self.threescale.add_tenant, name)
        for namespace in namespaces or (name,):
            await self.lab.kube.create(NAMESPACE, {"metadata": {"name": namespace}})
            secret: JsonObject = {
                "metadata": {"name": "threescale-provider-account"},
                "stringData": {"adminURL": made.url, "token": made.token},
            }
            await self.lab.kube.create(SECRET, secret, namespace)
        return made

    async def create(self, objects: Iterable[tuple[Kind, JsonObject]], namespace: str) -> None:
        permits = asyncio.Semaphore(_CREATED_AT_ONCE)

        async def one(kind: Kind, body: JsonObject) -> None:
            async with permits:
                await self.lab.kube.create(kind, body, namespace)

        await asyncio.gather(*(one(kind, body) for kind, body in objects))

    async def wake_all(self, namespace: str = "") -> int:
        keys = [key_of(kind.name, each) for kind in CUSTOM_KINDS for each in self.lab.objects.of(kind, namespace)]
        permits = asyncio.Semaphore(_WOKEN_AT_ONCE)

        async def one(key: Key) -> None:
            async with permits:
                await wake(self.lab.temporal, key)

        await asyncio.gather(*map(one, keys))
        return len(keys)


class Counted(NamedTuple):
    ledger: Ledger
    seconds: float


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    step("a deployment with 3scale is brought up")
    async with laboratory((Cloud.THREESCALE,), *CUSTOM_KINDS) as lab:
        with ThreescaleControl.of(lab.deployment) as threescale:
            yield Scene(lab, threescale)


async def counted(on: Scene, work: Callable[[], Awaitable[object]]) -> Counted:
    await asyncio.to_thread(on.threescale.reset_ledger)
    began = time.monotonic()
    await work()
    seconds = time.monotonic() - began
    await on.lab.quiet()
    return Counted(await asyncio.to_thread(on.threescale.ledger), seconds)


def done(obj: JsonObject) -> bool:
    observed = at(obj, "status", "observedGeneration")  # some kinds lack it
    if observed is not None and observed != at(obj, "metadata", "generation"):
        return False
    return any(_is_true(obj, type_) for type_ in _DONE)


def true_conditions(obj: JsonObject) -> str:
    return ", ".join(sorted(text(c, "type") for c in sequence(obj, "status", "conditions") if _holds(c)))


def orphan(obj: JsonObject | None) -> bool:
    return _is_true(obj, "Orphan")


def _is_true(obj: JsonObject | None, type_: str) -> bool:
    found = (each for each in sequence(obj, "status", "conditions") if text(each, "type") == type_)
    return any(map(_holds, found))


def _holds(condition: object) -> bool:
    return text(condition, "status") == "True"


# --- objects ---


def backend(name: str, address: str = "https://api.example.com") -> tuple[Kind, JsonObject]:
    spec: JsonObject = {
        "name": name,
        "systemName": name,
        "privateBaseURL": address,
        "metrics": {"hits": HITS, "bytes": {"friendlyName": "Bytes", "unit": "byte"}},
    }
    return BACKEND, {"metadata": {"name": name}, "spec": spec}


def product(name: str, *backends: str, **more: object) -> tuple[Kind, JsonObject]:
    usages: JsonObject = {each: {"path": f"/{each}"} for each in backends}
    plans: JsonObject = {each: {"published": True} for each in ("basic", "premium")}
    spec: JsonObject = {"name": name, "systemName": name, "backendUsages": usages, "applicationPlans": plans} | more
    return PRODUCT, {"metadata": {"name": name}, "spec": spec}


def example(name: str, *backends: str) -> tuple[Kind, JsonObject]:
    metrics: JsonObject = {f"m{n}": {"friendlyName": f"Metric {n}", "unit": "1"} for n in range(3)}
    methods: JsonObject = {f"t{n}": {"friendlyName": f"Method {n}"} for n in range(5)}
    rules = [rule(f"/path/{n}", f"t{n % 5}") for n in range(10)]
    plan: JsonObject = {
        "published": True,
        "setupFee": "20",
        "limits": [
            {"period": period, "value": 100, "metricMethodRef": {"systemName": f"m{n}"}}
            for n, period in enumerate(("day", "week", "month"))
        ],
        "pricingRules": [
            {"from": 1, "to": 100, "pricePerUnit": "20", "metricMethodRef": {"systemName": "m0"}},
            {
                "from": 1,
                "to": 10,
                "pricePerUnit": "15.40",
                "metricMethodRef": {"systemName": "bytes", "backend": backends[0]},
            },
        ],
    }
    gateway: JsonObject = {
        "stagingPublicBaseURL": "https://staging.example.com",
        "productionPublicBaseURL": "https://api.example.com",
        "authentication": {"userkey": {"authUserKey": "key", "credentials": "headers"}},
    }
    return product(
        name,
        *backends,
        description="The reference's example",
        deployment={"apicastSelfManaged": gateway},
        metrics=metrics,
        methods=methods,
        mappingRules=rules,
        applicationPlans={"basic": plan, "premium": plan},
    )


def rule(pattern: str, counts: str) -> JsonObject:
    return {"httpMethod": "GET", "pattern": pattern, "metricMethodRef": counts, "increment": 1}


def developer(name: str) -> list[tuple[Kind, JsonObject]]:
    user: JsonObject = {
        "username": name,
        "email": f"{name}@example.com",
        "role": "admin",
        "passwordCredentialsRef": {"name": f"{name}-password"},
        "developerAccountRef": {"name": name},
    }
    password: JsonObject = {"metadata": {"name": f"{name}-password"}, "stringData": {"password": "s3cret-enough"}}
    return [
        (SECRET, password),
        (DEVELOPER_USER, {"metadata": {"name": name}, "spec": user}),
        (DEVELOPER_ACCOUNT, {"metadata": {"name": name}, "spec": {"orgName": name}}),
    ]


def application(name: str, of: str, uses: str) -> tuple[Kind, JsonObject]:
    spec: JsonObject = {
        "accountCR": {"name": of},
        "productCR": {"name": uses},
        "applicationPlanName": "basic",
        "name": name,
        "description": name,
    }
    return APPLICATION, {"metadata": {"name": name}, "spec": spec}
