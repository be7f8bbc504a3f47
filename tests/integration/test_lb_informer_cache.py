"""What a worker reads of load balancers from its informer cache, on a real API server: no request, nothing missed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from waiting import eventually

from activities.loadbalancers.cache import LoadBalancerCache
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, text

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

SPEC = {"selector": {}, "infrastructure": {"authSecretRef": {}, "flavor": {}, "image": {}}}
TEMPLATE = {
    "infrastructure": {"authSecretRef": {}, "flavor": {}, "image": {}},
    "portID": "p",
    "loadBalancerRef": {"name": "web", "namespace": "n"},
}


class CountedCache:
    """The worker's cache, and how often the API server is asked."""

    def __init__(self, api: KubeApi, store: Store) -> None:
        self.cache = LoadBalancerCache(api, store)
        self.requests = 0
        self._fresh = self.cache.fresh
        self.cache.fresh = self._counted  # type: ignore[method-assign]

    async def _counted(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        self.requests += 1
        return await self._fresh(kind, namespace, name)

    async def own(self, key: Key, version: str = "", **seen: str) -> LoadBalancer | None:
        view = await self.cache.view(seen, fresh=False)
        return await view.own(LoadBalancer, key, version)


@pytest.fixture
async def asked(kube: KubeApi) -> AsyncIterator[CountedCache]:
    async with Store(kube) as store:
        found = CountedCache(kube, store)
        await eventually(lambda: trusted(found), "the mirrors are complete")
        yield found


async def trusted(requested: CountedCache) -> bool:
    return all(requested.cache.mirror(kind) is not None for kind in (LOAD_BALANCER, LOAD_BALANCER_SET))


async def made(kube: KubeApi, namespace: str) -> tuple[Key, str]:
    """Its key and its version."""
    body = {"metadata": {"name": f"web-{uuid4().hex[:6]}"}, "spec": SPEC}
    found = LoadBalancer.model_validate(await kube.create(LOAD_BALANCER, body, namespace))
    return found.key, found.metadata.resource_version


@pytest.mark.usefixtures("patient")
async def test_an_object_that_has_woken_a_pass_is_read_without_a_request(
    asked: CountedCache, kube: KubeApi, namespace: str
) -> None:
    key, version = await made(kube, namespace)
    found = await asked.own(key, LoadBalancer=version)
    assert found is not None
    assert found.metadata.uid == key.uid
    labels = {"of": key.name}
    body = {
        "metadata": {"name": f"{key.name}-set", "labels": labels},
        "spec": {"selector": {}, "template": {"labels": labels, "spec": TEMPLATE}},
    }
    created = await kube.create(LOAD_BALANCER_SET, body, namespace)
    seen = {LOAD_BALANCER_SET.name: text(created, "metadata", "resourceVersion")}
    view = await asked.cache.view(seen, fresh=False)
    assert not view.fresh
    (found_set,) = await view.all(LoadBalancerSet, namespace, labels)
    assert found_set.metadata.name == f"{key.name}-set"
    assert asked.requests == 0


@pytest.mark.usefixtures("patient")
async def test_an_object_that_the_cache_does_not_have_yet_is_requested(
    asked: CountedCache, kube: KubeApi, namespace: str
) -> None:
    """Else a lifecycle would end that has just begun."""
    key, version = await made(kube, namespace)
    assert await asked.own(key, LoadBalancer=version) is not None
    asked.cache.mirrors[LOAD_BALANCER.name].entries.pop((namespace, key.name), None)
    assert await asked.own(key) is not None
    assert asked.requests == 1


async def test_an_object_older_than_it_was_left_is_asked_for(
    asked: CountedCache, kube: KubeApi, namespace: str
) -> None:
    key, version = await made(kube, namespace)
    assert await asked.own(key, LoadBalancer=version) is not None
    left = await kube.patch(LOAD_BALANCER, namespace, key.name, {"spec": {"replicas": 3}})
    found = await asked.own(key, text(left, "metadata", "resourceVersion"))
    assert found is not None
    assert found.spec.replicas == 3


async def test_a_recreated_object_of_the_same_name_is_another(
    asked: CountedCache, kube: KubeApi, namespace: str
) -> None:
    key, _ = await made(kube, namespace)
    assert await asked.own(key.model_copy(update={"uid": "former"})) is None


@pytest.mark.usefixtures("patient")
async def test_a_write_of_a_pass_is_known_at_once(asked: CountedCache, kube: KubeApi, namespace: str) -> None:
    key, version = await made(kube, namespace)
    assert await asked.own(key, LoadBalancer=version) is not None
    answer = await kube.patch(LOAD_BALANCER, namespace, key.name, {"spec": {"replicas": 5}})
    asked.cache.wrote(key, LOAD_BALANCER, answer)
    found = await asked.own(key)
    assert found is not None
    assert found.spec.replicas == 5
    assert asked.requests == 0
