"""The sweep over all tenants: what it may not read or write in one namespace holds up no other."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from temporalio.testing import ActivityEnvironment
from threescale_objects import NOW, after, backend

from activities.threescale.ground import Ground
from activities.threescale.sweeps import SweepActivities
from domain.threescale import THE_TENANTS
from domain.threescale.memo import Memo, remembered
from domain.threescale.passes import Memory, SweepTenants
from engine.errors import Denied
from engine.kube import KubeApi
from engine.settings import Settings

SECRET = {"adminURL": "https://x.example.com", "token": "t"}


class Namespaces:
    """An API server that shows no Secret of `closed`, and takes no write in `sealed`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def get(self, kind: object, namespace: str, name: str) -> dict[str, Any]:
        if namespace == "closed":
            raise Denied(f"get Secret {namespace}/{name}: forbidden")
        return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in SECRET.items()}}

    async def patch(self, kind: object, namespace: str, name: str, patch: object) -> dict[str, Any]:
        if namespace == "sealed":
            raise Denied(f"patch Backend {namespace}/{name}: forbidden")
        self.asked.append(namespace)
        return {}


class Empty:
    """A tenant that has nothing any more."""

    @asynccontextmanager
    async def seat(self) -> AsyncIterator[None]:
        yield

    async def read(self, read: object, *, anew: bool) -> object:
        return {"backend_apis": []}


def made(namespace: str) -> Any:
    whole = backend(meta={"namespace": namespace, "uid": namespace})
    return after(whole, remembered(whole.metadata, Memo(synced="digest")))


async def settled() -> None:
    return None


async def leads(namespace: str) -> str:
    return ""


async def test_a_namespace_that_is_closed_to_the_worker_is_told_and_the_others_are_swept() -> None:
    kube, objects = Namespaces(), [made(each) for each in ("closed", "sealed", "shop")]
    known = SimpleNamespace(settled=settled, everything=lambda *_: objects, learn=lambda *_: None)
    ground = SimpleNamespace(
        kube=cast("KubeApi", kube),
        known=known,
        settings=Settings(),
        tenants=SimpleNamespace(calls=lambda *_, insecure: Empty()),
        predecessor=SimpleNamespace(leads=leads),
    )
    look = SweepTenants(key=THE_TENANTS, memory=Memory(next_sweep=NOW))
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, started_time=NOW)
    world = await environment.run(SweepActivities(cast("Ground", ground)).sweep_tenants, look)

    assert kube.asked == ["shop"]
    assert world.decision.why == (
        "1 tenants were looked at, 2 of 3 objects differed; get Secret closed/threescale-provider-account: forbidden; "
        "patch Backend sealed/stock: forbidden"
    )
    assert world.known.next_sweep is not None
