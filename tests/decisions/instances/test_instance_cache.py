"""What is known of instances' objects is waited for while a stream is broken, and not read meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from memory_kube import MemoryKube

from activities.instances import cache as cache_module
from activities.instances.cache import InstanceCache
from domain.instances import AWS_MACHINE_POOL, NODE
from domain.instances.resources import AWSMachinePool
from domain.instances.workflow_ids import GroupKey
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.reflector import Followed


class _Mirror:
    """A mirror that was listed, and whose stream runs or does not."""

    def __init__(self, followed: Followed) -> None:
        self.followed = followed
        self.listed = True
        self.trouble = ""
        self.running = asyncio.Event()

    def __len__(self) -> int:
        return 0

    def listen(self, listener: Callable[..., None]) -> None:
        return

    async def current(self) -> None:
        await self.running.wait()


class _Store:
    def __init__(self) -> None:
        self.mirrors: list[_Mirror] = []

    def follow(self, followed: Followed, indexes: object = None) -> _Mirror:
        self.mirrors.append(_Mirror(followed))
        return self.mirrors[-1]


async def test_who_looks_while_a_stream_is_broken_goes_on_as_soon_as_it_runs() -> None:
    store = _Store()
    known = InstanceCache(None, store)  # type: ignore[arg-type]
    await known.ready()
    broken = store.mirrors[0]
    broken.trouble = "503"
    looking = asyncio.create_task(known.ready())
    await asyncio.sleep(0.05)
    assert not looking.done()
    broken.trouble = ""
    broken.running.set()
    async with asyncio.timeout(1):
        await looking


async def test_a_stream_that_stays_broken_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "STREAM_BACK", 0.05)
    store = _Store()
    known = InstanceCache(None, store)  # type: ignore[arg-type]
    store.mirrors[1].trouble = "503"
    with pytest.raises(Unavailable, match="has a broken watch: 503"):
        await known.ready()


async def test_a_stream_of_nodes_that_stays_broken_is_told_where_nodes_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cache_module, "STREAM_BACK", 0.05)
    store = _Store()
    known = InstanceCache(None, store, nodes=True)  # type: ignore[arg-type]
    next(each for each in store.mirrors if each.followed.kind == NODE).trouble = "503"
    with pytest.raises(Unavailable, match="Node has a broken watch: 503"):
        await known.ready()


async def test_streams_that_come_back_one_after_another_share_one_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look with three of them is part of a workflow task as well."""
    monkeypatch.setattr(cache_module, "STREAM_BACK", 0.4)
    store = _Store()
    known = InstanceCache(None, store)  # type: ignore[arg-type]
    loop = asyncio.get_running_loop()
    for mirror, back in zip(store.mirrors[:3], (0.2, 0.55, 0.9), strict=True):
        mirror.trouble = "503"
        loop.call_later(back, mirror.running.set)
    with pytest.raises(Unavailable, match="has a broken watch: 503"):
        await known.ready()


async def test_a_group_s_pools_are_found_without_reading_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = MemoryKube()
    known = InstanceCache(cast(KubeApi, kube), cast(Store, kube))
    arn = "arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:26e7:autoScalingGroupName/"
    for name, group in (("b", "g1"), ("a", "g1"), ("c", "g2"), ("d", "")):
        spec = {"providerID": arn + group} if group else {}
        await kube.create(AWS_MACHINE_POOL, {"metadata": {"name": name}, "spec": spec}, "ns")
    await kube.create(AWS_MACHINE_POOL, {"metadata": {"name": "odd"}, "spec": {"providerID": 7}}, "ns")
    read: list[Any] = []
    validate = AWSMachinePool.model_validate
    monkeypatch.setattr(AWSMachinePool, "model_validate", lambda obj: read.append(obj) or validate(obj))

    def pools_of(group: str) -> list[str]:
        key = GroupKey(account="123456789012", region="eu-central-1", group=group)
        found = known.pools_of(key)
        assert all(each.group == key for each in found)
        return [each.metadata.name for each in found]

    assert pools_of("g1") == ["a", "b"]
    assert len(read) == 2
    await kube.patch(AWS_MACHINE_POOL, "ns", "b", {"spec": {"providerID": arn + "g2"}})
    await kube.patch(AWS_MACHINE_POOL, "ns", "d", {"spec": {"providerID": arn + "g3"}})
    await kube.delete(AWS_MACHINE_POOL, "ns", "a")
    assert (pools_of("g1"), pools_of("g2"), pools_of("g3")) == ([], ["b", "c"], ["d"])
