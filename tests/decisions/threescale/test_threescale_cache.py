"""How a worker finds 3scale objects in its informer cache, and what it does when that is behind."""

from __future__ import annotations

import gc
import weakref
from typing import Any, cast

import pytest
from memory_kube import MemoryKube

from activities.threescale.cache import ThreescaleCache
from domain.threescale import BACKEND, PRODUCT
from domain.threescale.resources import Backend, Product, Tenant
from engine.kube import KubeApi, informer_cache
from engine.kube.informer_cache import Store


class Ground:
    """Objects in memory, and a worker's cache of them."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.cache = ThreescaleCache(cast("KubeApi", self.kube), cast("Store", self.kube))

    async def backend(self, name: str, **spec: Any) -> None:
        await self.kube.create(BACKEND, {"metadata": {"name": name}, "spec": {"name": name, **spec}}, "shop")


@pytest.fixture
def ground() -> Ground:
    return Ground()


async def test_an_object_is_found_by_its_name_its_system_name_and_what_it_refers_to(ground: Ground) -> None:
    await ground.backend("store", systemName="stock")
    spec = {"name": "goods", "systemName": "goods", "backendUsages": {"stock": {"path": "/"}}}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "goods"}, "spec": spec}, "shop")
    assert [each.metadata.name for each in ground.cache.named(Backend, "Backend/shop/stock")] == ["store"]
    assert ground.cache.get(Backend, "shop", "stock") is None
    assert ground.cache.get(Backend, "shop", "store") is not None
    assert [each.metadata.name for each in ground.cache.referring(Product, "Backend/shop/stock")] == ["goods"]


async def test_an_object_that_is_renamed_or_goes_is_found_no_more(ground: Ground) -> None:
    await ground.backend("store", systemName="stock")
    await ground.kube.patch(BACKEND, "shop", "store", {"spec": {"systemName": "other"}})
    assert ground.cache.named(Backend, "Backend/shop/stock") == ()
    assert [each.metadata.name for each in ground.cache.named(Backend, "Backend/shop/other")] == ["store"]
    parsed = weakref.ref(ground.cache.named(Backend, "Backend/shop/other")[0])
    assert parsed() is not None
    await ground.kube.delete(BACKEND, "shop", "store")
    assert ground.cache.named(Backend, "Backend/shop/other") == ()
    gc.collect()
    assert parsed() is None, "it is not remembered"


async def test_an_unreadable_object_is_not_found_and_blocks_no_other(ground: Ground) -> None:
    await ground.backend("odd", systemName=["x"])
    await ground.backend("store", systemName="stock")
    assert ground.cache.get(Backend, "shop", "odd") is None
    assert ground.cache.get(Backend, "shop", "store") is not None


async def test_a_query_for_one_kind_is_not_answered_by_another(ground: Ground) -> None:
    """All products of a tenant refer to its Secret, as does the Tenant."""
    spec = {"name": "other", "systemName": "other"}
    await ground.kube.create(PRODUCT, {"metadata": {"name": "other"}, "spec": spec}, "shop")
    assert ground.cache.referring(Tenant, "Secret/shop/threescale-provider-account") == ()
    assert len(ground.cache.referring(Product, "Secret/shop/threescale-provider-account")) == 1


async def test_a_pass_lists_what_its_cache_does_not_reach(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream may hang for a minute before it is known to."""
    monkeypatch.setattr(informer_cache, "LONGEST_BEHIND", 0.01)
    await ground.backend("store", systemName="stock")
    mirror = ground.cache.mirrors[BACKEND.name]
    version = mirror.newest
    mirror.entries.clear()
    await ground.cache.reached({})
    assert ground.cache.get(Backend, "shop", "store") is None
    await ground.cache.reached({BACKEND.name: version})
    assert ground.cache.get(Backend, "shop", "store") is not None
    assert mirror.position == version
