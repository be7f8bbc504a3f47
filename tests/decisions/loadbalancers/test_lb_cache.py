"""How a worker finds load balancers' objects: by their labels, in the informer cache, or on the API server."""

from __future__ import annotations

from typing import Any, cast

import pytest
from lb_objects import machine
from memory_kube import MemoryKube

from activities.loadbalancers.cache import LoadBalancerCache, View
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube import KubeApi
from engine.kube import informer_cache as store_module
from engine.kube.api import WatchEvent
from engine.kube.informer_cache import Store
from engine.kube.reflector import Followed

MANY = 20
COMMON = {"app": "balancer"}
MACHINES = Followed(LOAD_BALANCER_MACHINE)


class Worker:
    """What it holds of an API server in memory, and how often that was asked for a list."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        self.cache = self.another()
        self.kube.follow(MACHINES).listed = True
        self.lists = 0
        listed = self.kube.list

        async def counted(*of: Any, **how: Any) -> Any:
            self.lists += 1
            return await listed(*of, **how)

        self.kube.list = counted  # type: ignore[method-assign]

    def another(self) -> LoadBalancerCache:
        return LoadBalancerCache(cast(KubeApi, self.kube), cast(Store, self.kube))

    async def view(self, **seen: str) -> View:
        return await self.cache.view(seen, fresh=False)

    async def made(self, name: str, namespace: str = "lbs", **labels: str) -> None:
        body = machine(name).model_dump(mode="json", by_alias=True)
        body["metadata"] = {"name": name, "labels": labels}
        await self.kube.create(LOAD_BALANCER_MACHINE, body, namespace)

    async def labelled(self, name: str, **labels: Any) -> None:
        await self.kube.patch(LOAD_BALANCER_MACHINE, "lbs", name, {"metadata": {"labels": labels}})


async def found(view: View, namespace: str = "lbs", **labels: str) -> list[str]:
    return sorted(each.metadata.name for each in await view.all(LoadBalancerMachine, namespace, labels))


async def test_objects_are_found_by_all_the_labels_that_are_asked_for() -> None:
    worker = Worker()
    await worker.made("a", of="a", **COMMON)
    await worker.made("b", of="b", **COMMON)
    await worker.made("c", "elsewhere", of="a", **COMMON)
    for cache in (worker.cache, worker.another()):  # one begins with what is mirrored already
        view = await cache.view({}, fresh=False)
        assert await found(view, of="a") == await found(view, of="a", **COMMON) == ["a"]
        assert await found(view, **COMMON) == await found(view) == ["a", "b"]
        assert await found(view, "elsewhere", of="a") == ["c"]
        assert await found(view, of="a", app="another") == await found(view, of="c") == []
    assert worker.lists == 0


async def test_an_object_that_is_relabelled_or_goes_is_found_no_more() -> None:
    worker = Worker()
    await worker.made("a", of="a")
    await worker.labelled("a", of="b")
    view = await worker.view()
    assert await found(view, of="a") == []
    assert await found(view, of="b") == ["a"]
    await worker.kube.delete(LOAD_BALANCER_MACHINE, "lbs", "a")
    assert await found(view, of="b") == await found(view) == []


async def test_of_many_objects_only_possible_matches_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    for number in range(MANY):
        await worker.made(f"m{number}", **COMMON, of=f"m{number}")
    mirror, looked_at = worker.kube.follow(MACHINES), list[int]()
    find = mirror.find
    monkeypatch.setattr(mirror, "find", lambda *of: looked_at.append(len(find(*of))) or find(*of))
    assert await found(await worker.view(), **COMMON, of="m7") == ["m7"]
    assert looked_at == [1]


async def test_a_pass_waits_until_the_cache_shows_what_has_woken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()
    reflector = worker.kube.follow(MACHINES)
    reflector.take(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "100"}}))
    assert not (await worker.view(LoadBalancerMachine="99", Service="700")).fresh
    monkeypatch.setattr(store_module, "LONGEST_BEHIND", 0.0)
    behind = await worker.view(LoadBalancerMachine="101")
    assert behind.fresh
    await worker.made("a")
    worker.kube.follow(MACHINES).entries.clear()
    assert await found(behind) == ["a"]
    assert worker.lists == 1
