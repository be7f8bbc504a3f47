"""Whom a change of what was read wakes once more, and which changes are none."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from lb_objects import ago, condition, healthy, machine
from memory_kube import MemoryKube

from activities.loadbalancers.known import Known, _Selection
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER_MACHINE
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube import KubeApi
from engine.kube.store import Followed, Store

READER = Key(kind="LoadBalancerSet", namespace="lbs", name="web--shop-aaaa", uid="s")


async def woken_by(
    before: LoadBalancerMachine | None, after: LoadBalancerMachine | None, own: Any = None, **labels: str
) -> list[Key]:
    woken: list[Key] = []

    async def wake(key: Key) -> None:
        woken.append(key)

    known = Known(cast(KubeApi, None), None, wake)
    known.view(READER, fresh=False)
    known.note(READER, _Selection(LOAD_BALANCER_MACHINE.name, "lbs", labels=labels))
    sides: list[Any] = [side.model_dump(mode="json", by_alias=True) if side else None for side in (before, after)]
    known._changed(LOAD_BALANCER_MACHINE.name, *sides)
    if own is not None:
        known._learnt[(own.metadata.uid, own.metadata.resource_version)] = None
    await asyncio.gather(*known._tasks)
    return woken


async def test_a_machine_that_appears_goes_or_changes_wakes_who_has_read_its_like() -> None:
    there, unready = machine(conditions=healthy()), machine(conditions=[condition("EnvoyReady", "False")])
    assert await woken_by(None, there) == [READER]
    assert await woken_by(there, None) == [READER]
    assert await woken_by(there, unready) == [READER]


async def test_a_report_that_says_the_same_again_wakes_nobody() -> None:
    beats = [machine(conditions=healthy(beat=ago(seconds=each))) for each in (60, 30)]
    assert await woken_by(*beats) == []


async def test_another_ones_machines_wake_nobody() -> None:
    assert await woken_by(None, machine(conditions=healthy()), of="another") == []


async def test_an_own_write_that_is_watched_before_its_answer_is_read_wakes_nobody() -> None:
    written = machine(metadata={"resourceVersion": "7"})
    assert await woken_by(machine(conditions=healthy()), written, own=written) == []
    assert await woken_by(machine(conditions=healthy()), written) == [READER]


async def test_a_lifecycles_own_write_is_known_at_once_and_wakes_the_others_alone() -> None:
    kube = MemoryKube()
    mirror = kube.follow(Followed(LOAD_BALANCER_MACHINE))
    woken: list[Key] = []

    async def wake(key: Key) -> None:
        woken.append(key)

    known = Known(cast(KubeApi, kube), cast(Store, kube), wake)
    one = machine()
    for reader in (READER, one.key):
        known.view(reader, fresh=False)
        known.note(reader, _Selection(LOAD_BALANCER_MACHINE.name, "lbs", name=one.metadata.name))
    known.wrote(one.key, LOAD_BALANCER_MACHINE, one.model_dump(mode="json", by_alias=True))
    await asyncio.gather(*known._tasks)
    assert mirror.get("lbs", one.metadata.name) is not None
    assert woken == [READER]
