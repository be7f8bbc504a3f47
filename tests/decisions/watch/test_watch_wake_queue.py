"""The queue of wakes: coalesced, retried, never dropped."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from waiting import PATIENT

from domain.identity import Key
from starters.watch.wake_queue import LONGEST_DELAY, REST, WakeQueue


def key(name: str, kind: str = "K") -> Key:
    return Key(kind=kind, namespace="n", name=name, uid=name)


class Temporal:
    """Takes wakes; can be made slow or made to refuse."""

    def __init__(self) -> None:
        self.woken: Counter[str] = Counter()
        self.refuse: Callable[[Key], bool] = lambda _: False
        self.open = asyncio.Event()
        self.open.set()
        self.arrived = asyncio.Event()

    async def wake(self, key: Key) -> None:
        self.arrived.set()
        await self.open.wait()
        if self.refuse(key):
            raise ConnectionError("refused")
        self.woken[key.name] += 1


@asynccontextmanager
async def draining(queue: WakeQueue, wakers: int = 3) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run(wakers))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_key_put_twice_is_woken_once() -> None:
    temporal = Temporal()
    queue = WakeQueue(temporal.wake)
    queue.put_all([key("a"), key("a"), key("b")])
    async with draining(queue):
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
    assert temporal.woken == {"a": 1, "b": 1}
    assert len(queue) == 0


async def test_a_key_put_while_its_wake_is_sent_is_woken_again() -> None:
    temporal = Temporal()
    queue = WakeQueue(temporal.wake)
    temporal.open.clear()
    async with draining(queue):
        queue.put(key("a"))
        await asyncio.wait_for(temporal.arrived.wait(), 5)
        queue.put(key("a"))
        acknowledged = asyncio.create_task(queue.acknowledged())
        temporal.open.set()
        await asyncio.wait_for(acknowledged, PATIENT)
    assert temporal.woken == {"a": 2}


async def test_a_refused_wake_is_sent_until_it_is_taken() -> None:
    temporal = Temporal()
    left = Counter({"a": 3})

    def refuse(key: Key) -> bool:
        left[key.name] -= 1
        return left[key.name] >= 0

    temporal.refuse = refuse
    queue = WakeQueue(temporal.wake)
    async with draining(queue):
        queue.put(key("a"))
        await asyncio.wait_for(queue.acknowledged(), 10)
    assert temporal.woken == {"a": 1}


async def test_a_key_that_is_always_refused_blocks_no_other() -> None:
    temporal = Temporal()
    temporal.refuse = lambda key: key.name == "bad"
    queue = WakeQueue(temporal.wake)
    async with draining(queue, wakers=1):
        queue.put(key("bad"))
        for name in "abcdef":
            queue.put(key(name))
        async with asyncio.timeout(5):
            while len(temporal.woken) < 6:  # noqa: ASYNC110 - polls
                await asyncio.sleep(0.01)
    assert len(queue) == 1
    assert "bad" not in temporal.woken


async def test_a_later_item_is_not_waited_for() -> None:
    temporal = Temporal()
    temporal.refuse = lambda key: key.name == "later"
    queue = WakeQueue(temporal.wake)
    async with draining(queue):
        queue.put(key("a"))
        acknowledged = asyncio.create_task(queue.acknowledged())
        await asyncio.sleep(0)
        queue.put(key("later"))
        await asyncio.wait_for(acknowledged, PATIENT)


async def test_lag_is_the_age_of_the_oldest_key_of_the_kind() -> None:
    clock = [0.0]
    queue = WakeQueue(Temporal().wake, clock=lambda: clock[0])
    assert queue.oldest_age("Old") == 0
    queue.put(key("a", "Old"))
    clock[0] += 1
    queue.put(key("b", "Young"))
    assert (queue.oldest_age("Old"), queue.oldest_age("Young")) == (1, 0)
    assert (queue.length("Old"), queue.length("Young"), queue.length("None")) == (1, 1, 0)


async def test_a_held_key_is_woken_once_when_its_time_is_over() -> None:
    temporal, over = Temporal(), asyncio.Event()
    queue = WakeQueue(temporal.wake, on_woken=lambda woken: over.set() if woken == key("a") else None)
    async with draining(queue):
        queue.put(key("a"))
        queue.hold(key("a"), 3.0)
        queue.put(key("a"))
        queue.put(key("b"))
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
        assert temporal.woken == {"b": 1}
        assert len(queue) == 1, "a checkpoint must not leave it out"
        await asyncio.wait_for(over.wait(), PATIENT)
    assert temporal.woken == {"a": 1, "b": 1}
    assert len(queue) == 0


async def test_an_urgent_item_ends_the_hold() -> None:
    temporal = Temporal()
    queue = WakeQueue(temporal.wake)
    async with draining(queue):
        queue.hold(key("a"), 60)
        queue.hold(key("a"), 60)
        queue.put_now(key("a"))
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
    assert temporal.woken == {"a": 1}
    assert len(queue) == 0


async def test_a_burst_for_one_key_is_one_wake_at_once_and_one_after_its_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starters.watch.wake_queue.REST", 2.0)
    temporal = Temporal()
    queue = WakeQueue(temporal.wake)
    async with draining(queue):
        for _ in range(20):
            queue.put(key("a"))
            await asyncio.sleep(0.001)
        assert temporal.woken == {"a": 1}
        assert len(queue) == 1, "a checkpoint must not leave it out"
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
    assert temporal.woken == {"a": 2}
    assert len(queue) == 0


async def test_a_key_that_is_held_while_it_rests_is_woken_when_the_hold_is_over() -> None:
    temporal = Temporal()
    queue = WakeQueue(temporal.wake)
    async with draining(queue):
        queue.put(key("a"))
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
        queue.put(key("a"))
        queue.hold(key("a"), 60)
        await asyncio.sleep(2 * REST)
        assert temporal.woken == {"a": 1}
        queue.put_now(key("a"))
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
    assert temporal.woken == {"a": 2}


async def test_urgent_items_go_first() -> None:
    order: list[str] = []

    async def wake(key: Key) -> None:
        order.append(key.name)

    queue = WakeQueue(wake)
    queue.put_all([key("a"), key("b"), key("deleted")])
    queue.put(key("retried"), urgent=True)
    queue.put(key("deleted"), urgent=True)
    async with draining(queue, wakers=1):
        await asyncio.wait_for(queue.acknowledged(), PATIENT)
    assert order == ["retried", "deleted", "a", "b"]


async def test_a_key_rests_for_as_long_as_its_wake_took(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    temporal = Temporal()
    queue = WakeQueue(temporal.wake, clock=lambda: clock[0])
    rests: list[float] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda seconds, *_: rests.append(seconds))
    temporal.open.clear()
    async with draining(queue):
        for took in (0.0, REST / 4, 60 * REST):
            queue.put(key(str(took)))
            async with asyncio.timeout(5):
                await temporal.arrived.wait()
            clock[0] += took
            temporal.open.set()
            async with asyncio.timeout(5):
                await queue.acknowledged()
            temporal.open.clear()
            temporal.arrived.clear()
    assert rests == pytest.approx([REST, REST * 3 / 4, LONGEST_DELAY])
