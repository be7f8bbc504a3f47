"""What a worker knows of 3scale objects: how they are found, who is woken once more by what came late, Events."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from memory_kube import MemoryKube

from activities.threescale import known as module
from activities.threescale.known import Known
from domain.identity import Key
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.resources import Backend, Product, Tenant
from engine.kube import KubeApi
from engine.kube.store import Store

READER = Key(kind="Product", namespace="shop", name="goods", uid="1")
OTHER = Key(kind="Product", namespace="shop", name="somebody", uid="3")


class Ground:
    """Objects in memory, and who was woken."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.woken: list[str] = []
        self.known = Known(cast("KubeApi", self.kube), cast("Store", self.kube), self._wake)

    async def _wake(self, key: Key) -> None:
        self.woken.append(key.name)

    async def backend(self, name: str, **spec: Any) -> None:
        await self.kube.create(BACKEND, {"metadata": {"name": name}, "spec": {"name": name, **spec}}, "shop")

    async def told(self) -> list[str]:
        while self.known._tasks:
            await asyncio.gather(*self.known._tasks)
        return self.woken


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Ground:
    monkeypatch.setattr(module, "ANSWERED", 0.0)
    return Ground()


async def test_an_object_is_found_by_its_name_its_system_name_and_what_it_refers_to(ground: Ground) -> None:
    await ground.backend("store", systemName="stock")
    spec = {"name": "goods", "systemName": "goods", "backendUsages": {"stock": {"path": "/"}}}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "goods"}, "spec": spec}, "shop")
    view = ground.known.view(READER)
    assert [each.metadata.name for each in view.named(Backend, "Backend/shop/stock")] == ["store"]
    assert view.get(Backend, "shop", "stock") is None
    assert view.get(Backend, "shop", "store") is not None
    assert [each.metadata.name for each in view.referring(Product, "Backend/shop/stock")] == ["goods"]


async def test_an_object_that_is_renamed_or_goes_is_found_no_more(ground: Ground) -> None:
    await ground.backend("store", systemName="stock")
    await ground.kube.patch(BACKEND, "shop", "store", {"spec": {"systemName": "other"}})
    view = ground.known.view(READER)
    assert view.named(Backend, "Backend/shop/stock") == ()
    assert [each.metadata.name for each in view.named(Backend, "Backend/shop/other")] == ["store"]
    await ground.kube.delete(BACKEND, "shop", "store")
    assert view.named(Backend, "Backend/shop/other") == ()
    assert not ground.known._topics


async def test_one_that_cannot_be_read_is_not_found_and_stands_in_nobodys_way(ground: Ground) -> None:
    await ground.backend("odd", systemName=["x"])
    await ground.backend("store", systemName="stock")
    assert ground.known.view(READER).get(Backend, "shop", "odd") is None
    assert ground.known.view(READER).get(Backend, "shop", "store") is not None


async def test_who_asked_for_what_comes_late_is_woken_once_more_and_nobody_else(ground: Ground) -> None:
    ground.known.view(READER).named(Backend, "Backend/shop/stock")
    other = READER.model_copy(update={"name": "other", "uid": "2"})
    ground.known.view(other).named(Backend, "Backend/shop/elsewhere")
    await ground.backend("store", systemName="stock")
    assert await ground.told() == ["goods"]


SHOWN = {"status": {"backendId": 4}}
UNSHOWN = {"metadata": {"finalizers": ["backend.capabilities.3scale.net/finalizer"], "labels": {"a": "b"}}}


@pytest.mark.parametrize(("change", "woken"), [(SHOWN, ["goods"]), (UNSHOWN, [])], ids=["ids", "finalizer"])
async def test_only_what_others_see_of_an_object_is_news(ground: Ground, change: Any, woken: list[str]) -> None:
    await ground.backend("store", systemName="stock")
    ground.known.view(READER).named(Backend, "Backend/shop/stock")
    await ground.kube.patch(BACKEND, "shop", "store", change, subresource="status" if "status" in change else "")
    assert await ground.told() == woken


async def test_what_is_asked_of_one_kind_is_not_answered_by_another(ground: Ground) -> None:
    """All products of a tenant refer to its Secret, and each looks for the Tenant that does."""
    spec = {"name": "other", "systemName": "other"}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "other"}, "spec": spec}, "shop")
    assert ground.known.view(READER).referring(Tenant, "Secret/shop/threescale-provider-account") == ()
    await ground.kube.patch(PRODUCT, "shop", "other", {"status": {"productId": 4}}, subresource="status")
    await ground.kube.create(PRODUCT, {"metadata": {"name": "third"}, "spec": {**spec, "systemName": "third"}}, "shop")
    assert await ground.told() == []


async def test_of_those_that_refer_to_the_same_only_those_are_news_that_come_or_go(ground: Ground) -> None:
    spec = {"name": "other", "systemName": "other", "backendUsages": {"stock": {"path": "/"}}}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "other"}, "spec": spec}, "shop")
    ground.known.view(READER).referring(Product, "Backend/shop/stock")
    await ground.kube.patch(PRODUCT, "shop", "other", {"status": {"productId": 4}}, subresource="status")
    assert await ground.told() == []
    await ground.kube.patch(PRODUCT, "shop", "other", {"spec": {"backendUsages": {"stock": None}}})
    assert await ground.told() == ["goods"]


async def test_another_object_of_the_same_name_is_news_to_all_who_would_find_it(ground: Ground) -> None:
    spec = {"name": "other", "systemName": "other", "backendUsages": {"stock": {"path": "/"}}}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "other"}, "spec": spec}, "shop")
    ground.known.view(READER).referring(Product, "Backend/shop/stock")
    ground.known.view(OTHER)  # whose pass writes what comes now
    found = await ground.kube.get(PRODUCT, "shop", "other")
    ground.known.learn(PRODUCT, {**found, "metadata": {**found["metadata"], "uid": "9", "resourceVersion": "99"}})
    assert await ground.told() == ["goods"]


async def test_of_those_called_alike_only_an_older_one_that_comes_late_is_news(ground: Ground) -> None:
    def backend(name: str, born: str) -> Any:
        meta = {"name": name, "namespace": "shop", "uid": name, "creationTimestamp": born, "resourceVersion": "1"}
        return {"apiVersion": BACKEND.api_version, "kind": "Backend", "metadata": meta, "spec": {"systemName": "stock"}}

    ground.known.learn(BACKEND, backend("mine", "2026-11-21T00:00:05Z"))
    reader = Key(kind="Backend", namespace="shop", name="mine", uid="mine")
    ground.known.view(reader).siblings(Backend.model_validate(backend("mine", "2026-11-21T00:00:05Z")))
    ground.known.view(OTHER)
    ground.known.learn(BACKEND, backend("younger", "2026-11-21T00:00:09Z"))
    assert await ground.told() == []
    ground.known.learn(BACKEND, backend("older", "2026-11-21T00:00:01Z"))
    assert await ground.told() == ["mine"]


async def test_a_namesake_of_the_same_tenant_is_heeded_and_one_of_another_only_comes_and_goes(ground: Ground) -> None:
    mine = Backend.model_validate({"metadata": {"name": "mine", "uid": "1"}, "spec": {"systemName": "stock"}})
    await ground.backend("store", systemName="stock")
    view = ground.known.view(READER)
    (sibling,) = view.siblings(mine)
    await ground.kube.patch(BACKEND, "shop", "store", SHOWN, subresource="status")
    assert await ground.told() == []
    view.heeded([sibling])
    await ground.kube.patch(BACKEND, "shop", "store", {"status": {"backendId": 5}}, subresource="status")
    assert await ground.told() == ["goods"]
    await ground.kube.delete(BACKEND, "shop", "store")
    assert await ground.told() == ["goods", "goods"]


async def test_what_a_pass_has_written_itself_is_no_news_to_it(ground: Ground) -> None:
    await ground.backend("store", systemName="stock")
    ground.known.view(READER).named(Backend, "Backend/shop/stock")
    obj = await ground.kube.get(BACKEND, "shop", "store")
    obj["metadata"]["resourceVersion"] = "99"
    ground.known.learn(BACKEND, obj)
    assert await ground.told() == []
