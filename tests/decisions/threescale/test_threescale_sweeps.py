"""The sweep over all tenants: what it may not read or write in one namespace holds up no other."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from temporalio.testing import ActivityEnvironment
from threescale_objects import NOW, backend, product, remembers

from activities.threescale.drift_sweep import SweepActivities
from activities.threescale.pass_context import PassContext
from activities.threescale.secrets import Secrets
from activities.threescale.tenant_addresses import Homes
from domain.threescale import THE_TENANTS
from domain.threescale.calls import Read
from domain.threescale.observed import Memory
from domain.threescale.passes import SweepTenants, ThreescaleWorld
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
    async def slot(self) -> AsyncIterator[None]:
        yield

    async def read(self, read: object, *, fresh: bool) -> object:
        return {"backend_apis": []}


def made(namespace: str) -> Any:
    whole = backend(meta={"namespace": namespace, "uid": namespace})
    return remembers(whole, synced="digest")


async def reached(_: object) -> None:
    return None


async def leads(namespace: str) -> str:
    return ""


async def swept(kube: object, objects: list[Any], calls: Callable[..., object]) -> ThreescaleWorld:
    cache = SimpleNamespace(reached=reached, everything=lambda *_: objects, learn=lambda *_: None)
    ground = SimpleNamespace(
        kube=cast("KubeApi", kube),
        cache=cache,
        settings=Settings(),
        tenants=SimpleNamespace(calls=calls),
        operator_leads=leads,
        secrets=lambda: Secrets(cast("KubeApi", kube), Homes()),
    )
    look = SweepTenants(key=THE_TENANTS, memory=Memory(next_sweep=NOW))
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, started_time=NOW)
    return await environment.run(SweepActivities(cast("PassContext", ground)).sweep_tenants, look)


async def test_a_namespace_closed_to_the_worker_is_reported_and_the_others_are_swept() -> None:
    kube, objects = Namespaces(), [made(each) for each in ("closed", "sealed", "shop")]
    world = await swept(kube, objects, lambda *_, insecure: Empty())

    assert kube.asked == ["shop"]
    assert world.decision.why == (
        "1 tenants were compared, 2 of 3 objects differed; get Secret closed/threescale-provider-account: forbidden; "
        "patch Backend sealed/stock: forbidden"
    )
    assert world.known.next_sweep is not None


class Tokens(Namespaces):
    """Each namespace has a token of its own, by its name."""

    async def get(self, kind: object, namespace: str, name: str) -> dict[str, Any]:
        values = {**SECRET, "token": namespace}
        return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}}


class Rights(Empty):
    """A tenant that is empty, and shows lists to those tokens that may read them."""

    def __init__(self, token: str, read: list[tuple[str, str]]) -> None:
        self._token = token
        self._read = read

    async def read(self, read: object, *, fresh: bool) -> object:
        path = cast("Read", read).path
        self._read.append((self._token, path))
        if self._token == "revoked" or (path == "services" and self._token):
            raise Denied(f"GET {path}: Access denied")
        return {path: []}


async def test_a_token_or_a_list_that_is_refused_does_not_blind_the_sweep_for_the_rest() -> None:
    shop = product(product_id=5)
    objects = [made("revoked"), made("shop"), remembers(shop, synced="digest")]
    kube, read = Tokens(), list[tuple[str, str]]()
    world = await swept(kube, objects, lambda _, token, insecure: Rights(token, read))

    assert read == [
        ("revoked", "services"),
        ("shop", "services"),
        ("revoked", "backend_apis"),
        ("shop", "backend_apis"),
    ]
    assert kube.asked == ["revoked", "shop"]
    assert world.decision.why == "1 tenants were compared, 2 of 3 objects differed; GET services: Access denied"
