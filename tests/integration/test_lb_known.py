"""What a worker knows of load balancers by its mirrors, on a real API server: nothing asked for, nothing missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from waiting import eventually

from activities.loadbalancers.known import Known, View
from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from engine.kube import KubeApi
from engine.kube.json import JsonObject, text
from engine.kube.store import Store

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

SPEC = {"selector": {}, "infrastructure": {"authSecretRef": {}, "flavor": {}, "image": {}}}
TEMPLATE = {
    "infrastructure": {"authSecretRef": {}, "flavor": {}, "image": {}},
    "portID": "p",
    "loadBalancerRef": {"name": "web", "namespace": "n"},
}


class Asked:
    """The worker's mirrors, who is woken, and how often the API server is asked."""

    def __init__(self, api: KubeApi, store: Store) -> None:
        self.woken: list[Key] = []
        self.known = Known(api, store, self._woke)
        self.requests = 0
        self._fresh = self.known.fresh
        self.known.fresh = self._counted  # type: ignore[method-assign]

    async def _woke(self, key: Key) -> None:
        self.woken.append(key)

    async def _counted(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        self.requests += 1
        return await self._fresh(kind, namespace, name)

    def view(self, key: Key, *, fresh: bool = False) -> View:
        return self.known.view(key, fresh=fresh)


@pytest.fixture
async def asked(kube: KubeApi) -> AsyncIterator[Asked]:
    async with Store(kube) as store:
        found = Asked(kube, store)
        await eventually(lambda: trusted(found), "the mirrors are complete")
        yield found


async def trusted(asked: Asked) -> bool:
    return all(asked.known.mirror(kind) is not None for kind in (LOAD_BALANCER, LOAD_BALANCER_SET))


async def made(kube: KubeApi, namespace: str) -> Key:
    body = {"metadata": {"name": f"web-{uuid4().hex[:6]}"}, "spec": SPEC}
    found = await kube.create(LOAD_BALANCER, body, namespace)
    return Key(
        kind=LOAD_BALANCER.name,
        namespace=namespace,
        name=text(found, "metadata", "name"),
        uid=text(found, "metadata", "uid"),
    )


async def test_what_is_known_is_read_without_a_request(asked: Asked, kube: KubeApi, namespace: str) -> None:
    key = await made(kube, namespace)
    await eventually(lambda: mirrored(asked, key), "the mirror has it")
    found = await asked.view(key).own(LoadBalancer, "")
    assert found is not None
    assert found.metadata.uid == key.uid
    assert asked.requests == 0


async def mirrored(asked: Asked, key: Key) -> bool:
    mirror = asked.known.mirror(LOAD_BALANCER)
    return mirror is not None and mirror.get(key.namespace, key.name) is not None


async def test_what_the_mirror_does_not_have_yet_is_asked_for(asked: Asked, kube: KubeApi, namespace: str) -> None:
    """Else a lifecycle would end that has just begun."""
    key = await made(kube, namespace)
    mirror = asked.known._mirrors[LOAD_BALANCER.name]
    mirror._entries.pop((namespace, key.name), None)
    assert await asked.view(key).own(LoadBalancer, "") is not None
    assert asked.requests == 1


async def test_an_object_older_than_it_was_left_is_asked_for(asked: Asked, kube: KubeApi, namespace: str) -> None:
    key = await made(kube, namespace)
    await eventually(lambda: mirrored(asked, key), "the mirror has it")
    later = await kube.patch(LOAD_BALANCER, namespace, key.name, {"spec": {"replicas": 3}})
    mirror = asked.known._mirrors[LOAD_BALANCER.name]
    mirror._entries.pop((namespace, key.name), None)
    version = text(later, "metadata", "resourceVersion")
    found = await asked.view(key).own(LoadBalancer, version)
    assert found is not None
    assert found.spec.replicas == 3


async def test_one_made_anew_under_the_name_is_another(asked: Asked, kube: KubeApi, namespace: str) -> None:
    key = await made(kube, namespace)
    former = key.model_copy(update={"uid": "former"})
    assert await asked.view(former).own(LoadBalancer, "") is None


async def test_a_change_right_after_a_read_wakes_the_reader_once_more(
    asked: Asked, kube: KubeApi, namespace: str
) -> None:
    key = await made(kube, namespace)
    other = await made(kube, namespace)
    for each in (key, other):
        await eventually(lambda each=each: mirrored(asked, each), "the mirror has it")  # type: ignore[misc]
    labels = {"of": key.name}
    view = asked.view(key)
    await view.own(LoadBalancer, "")
    assert await view.all(LoadBalancerSet, namespace, labels) == ()
    await asked.view(other).own(LoadBalancer, "")
    asked.woken.clear()
    body = {
        "metadata": {"name": f"{key.name}-set", "labels": labels},
        "spec": {"selector": {}, "template": {"labels": labels, "spec": TEMPLATE}},
    }
    await kube.create(LOAD_BALANCER_SET, body, namespace)
    await eventually(lambda: woken(asked, key), "its reader is woken")
    assert other not in asked.woken
    (found,) = await asked.view(key).all(LoadBalancerSet, namespace, labels)
    assert found.metadata.name == f"{key.name}-set"


async def woken(asked: Asked, key: Key) -> bool:
    return key in asked.woken


async def test_what_a_pass_writes_is_known_at_once_and_wakes_nobody(
    asked: Asked, kube: KubeApi, namespace: str
) -> None:
    key = await made(kube, namespace)
    await eventually(lambda: mirrored(asked, key), "the mirror has it")
    await asked.view(key).own(LoadBalancer, "")
    asked.woken.clear()
    answer = await kube.patch(LOAD_BALANCER, namespace, key.name, {"spec": {"replicas": 5}})
    asked.known.learn(LOAD_BALANCER, answer)
    found = await asked.view(key).own(LoadBalancer, "")
    assert found is not None
    assert found.spec.replicas == 5
    await asyncio.gather(*asked.known._tasks)
    assert asked.woken == []
