"""How many tasks a worker takes at once: fewer while it is slow or late, more again when it is not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from workers.adaptive_concurrency import LATE, Limit, PacedSlots, Permit

ORDINARY, STICKY = (cast("Any", SimpleNamespace(is_sticky=sticky)) for sticky in (False, True))


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def of(permit: Any) -> Any:
    return SimpleNamespace(permit=permit, slot_info=None)


def test_slow_tasks_bring_the_limit_down_to_one_and_quick_ones_up_to_the_most() -> None:
    limit, now = Limit(12, longest=1.0), 0.0
    found = []
    for _ in range(12):
        limit.ended(now, now + 2, late=0.0)
        now += 2
        found.append(int(limit))
    assert found[:4] == [8, 5, 4, 2]
    assert found[-1] == 1
    for _ in range(100):
        limit.ended(now, now + 0.1, late=0.0)
    assert int(limit) == 12


def test_tasks_that_ran_side_by_side_bring_it_down_once() -> None:
    limit = Limit(12, longest=1.0)
    for number in range(12):
        limit.ended(0.0, 5.0 + number / 10, late=0.0)
    assert int(limit) == 8


def test_a_late_event_loop_brings_it_down_however_quick_the_task_was() -> None:
    limit = Limit(50)
    limit.ended(0.0, 100.0, late=0.0)
    assert int(limit) == 50, "what waits for a cloud may take long"
    limit.ended(0.0, 0.1, late=2 * LATE)
    assert int(limit) == 35


def test_work_that_may_wait_for_other_systems_gets_some_room() -> None:
    limit = Limit(50, 6)
    for second in range(20):
        limit.ended(second, second + 0.5, late=2 * LATE)
    assert int(limit) == 6


async def test_a_poll_needs_a_slot_and_waits_for_one() -> None:
    slots = PacedSlots(Limit(2))
    first, second = [await slots.reserve_slot(ORDINARY) for _ in range(2)]
    assert slots.try_reserve_slot(ORDINARY) is None
    third = asyncio.create_task(slots.reserve_slot(ORDINARY))
    for permit in (first, second):
        slots.mark_slot_used(of(permit))
    await asyncio.sleep(0)
    assert not third.done(), "nothing is fetched that cannot be begun"
    slots.release_slot(of(first))
    assert isinstance(await asyncio.wait_for(third, 10), Permit)


async def test_with_a_limit_of_one_neither_queue_of_workflow_tasks_keeps_the_other_waiting() -> None:
    slots = PacedSlots(Limit(1))
    ordinary, sticky = await slots.reserve_slot(ORDINARY), await slots.reserve_slot(STICKY)
    assert [slots.try_reserve_slot(each) for each in (ORDINARY, STICKY)] == [None, None]
    slots.mark_slot_used(of(sticky))
    assert slots.try_reserve_slot(STICKY) is None
    slots.release_slot(of(ordinary))
    assert slots.try_reserve_slot(ORDINARY) is None, "one task is under way"
    slots.release_slot(of(sticky))
    assert slots.try_reserve_slot(ORDINARY) is not None


async def test_a_task_reports_how_long_it_took_and_how_late_the_loop_was() -> None:
    clock = Clock()
    slots = PacedSlots(Limit(12), clock)
    permit = await slots.reserve_slot(ORDINARY)
    slots.mark_slot_used(of(permit))
    slots.release_slot(of(permit))
    clock.now += 1.0  # the loop comes to it a second later
    await asyncio.sleep(0)
    assert int(slots.limit) == 8
