"""How a worker finds load balancers' objects, and those who have read them: by one label, and not by looking at all."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from lb_objects import machine
from memory_kube import MemoryKube

from activities.loadbalancers import known as module
from activities.loadbalancers.known import Known, View, _Selection
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube import KubeApi
from engine.kube.json import JsonObject
from engine.kube.store import Followed, Store

MANY = 20
COMMON = {"app": "balancer"}


class Worker:
    """What it knows of an API server in memory, who was woken, and how often an object was looked at."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kube = MemoryKube()
        self.woken: list[str] = []
        self.looks = 0
        self.known = self.another()
        self.kube.follow(Followed(LOAD_BALANCER_MACHINE))._reflector.listed = True
        holds = _Selection.holds

        def counted(selection: _Selection, kind: str, obj: JsonObject) -> bool:
            self.looks += 1
            return holds(selection, kind, obj)

        monkeypatch.setattr(_Selection, "holds", counted)

    def another(self) -> Known:
        return Known(cast(KubeApi, self.kube), cast(Store, self.kube), self._wake)

    async def _wake(self, key: Key) -> None:
        self.woken.append(key.name)

    def view(self, name: str) -> View:
        return self.known.view(Key(kind="LoadBalancerSet", namespace="lbs", name=name, uid=name), fresh=False)

    async def made(self, name: str, namespace: str = "lbs", **labels: str) -> None:
        body = machine(name).model_dump(mode="json", by_alias=True)
        body["metadata"] = {"name": name, "labels": labels}
        await self.kube.create(LOAD_BALANCER_MACHINE, body, namespace)

    async def labelled(self, name: str, **labels: Any) -> None:
        await self.kube.patch(LOAD_BALANCER_MACHINE, "lbs", name, {"metadata": {"labels": labels}})

    async def told(self) -> list[str]:
        """Who was woken since this was asked last."""
        while self.known._tasks:
            await asyncio.gather(*self.known._tasks)
        woken, self.woken = self.woken, []
        return woken


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(module, "ANSWERED", 0.0)
    return Worker(monkeypatch)


async def found(view: View, namespace: str = "lbs", **labels: str) -> list[str]:
    return sorted(each.metadata.name for each in await view.all(LoadBalancerMachine, namespace, labels))


async def test_objects_are_found_by_all_the_labels_that_are_asked_for(worker: Worker) -> None:
    await worker.made("a", of="a", **COMMON)
    await worker.made("b", of="b", **COMMON)
    await worker.made("c", "elsewhere", of="a", **COMMON)
    for known in (worker.known, worker.another()):  # one begins with what is mirrored already
        view = known.view(Key(kind="LoadBalancerSet", namespace="lbs", name="s", uid="s"), fresh=False)
        assert await found(view, of="a") == await found(view, of="a", **COMMON) == ["a"]
        assert await found(view, **COMMON) == await found(view) == ["a", "b"]
        assert await found(view, "elsewhere", of="a") == ["c"]
        assert await found(view, of="a", app="another") == await found(view, of="c") == []


async def test_an_object_that_is_relabelled_or_goes_is_found_no_more(worker: Worker) -> None:
    await worker.made("a", of="a")
    await worker.labelled("a", of="b")
    assert await found(worker.view("s"), of="a") == []
    assert await found(worker.view("s"), of="b") == ["a"]
    await worker.kube.delete(LOAD_BALANCER_MACHINE, "lbs", "a")
    assert await found(worker.view("s"), of="b") == await found(worker.view("s")) == []
    assert not worker.known._objects


async def test_of_many_only_those_are_looked_at_that_may_be_meant(worker: Worker) -> None:
    names = [f"m{number}" for number in range(MANY)]
    for name in names:
        await worker.made(name, **COMMON, of=name)
    worker.looks = 0
    for name in names:
        assert await found(worker.view(name), **COMMON, of=name) == [name]
    assert worker.looks == MANY
    worker.looks = 0
    await worker.labelled("m7", more="x")
    assert await worker.told() == ["m7"]
    assert worker.looks <= 4  # the first who asked was filed under the label that everybody has


async def test_a_change_wakes_who_has_read_it_by_name_by_label_or_with_all_others(worker: Worker) -> None:
    await worker.made("a", of="a")
    await worker.made("b", of="b")
    for reader, labels in (("z", {"of": "a"}), ("y", {}), ("x", {"of": "b"}), ("w", {"of": "c"})):
        await worker.view(reader).all(LoadBalancerMachine, "lbs", labels)
    await worker.view("v").get(LoadBalancerMachine, "lbs", "a")
    await worker.view("u").get(LoadBalancerMachine, "lbs", "b")
    await worker.view("t").all(LoadBalancerMachine, "elsewhere", {"of": "a"})
    await worker.labelled("a", of="c")
    assert await worker.told() == ["z", "y", "w", "v"]  # as they began
    await worker.kube.delete(LOAD_BALANCER_MACHINE, "lbs", "a")
    assert await worker.told() == ["y", "w", "v"]
    await worker.made("a", of="a")
    assert await worker.told() == ["z", "y", "v"]


async def test_what_an_earlier_pass_has_read_wakes_nobody(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    await worker.made("a", of="a")
    await found(worker.view("s"), of="a")
    await found(worker.view("s"), of="a")
    worker.view("s")
    await worker.labelled("a", of="b")
    assert await worker.told() == []
    await found(worker.view("s"), of="b")
    monkeypatch.setattr(module, "MAY_HAVE_MISSED", 0.0)
    worker.view("t")
    worker.view("t")
    assert not worker.known._readers
