"""Hands events over to workflows: one hand-over per instance at a time, the most urgent instance first.

    event ──► not served here ──────────────────────────────────────────────────────────────────► foreign
       └────► not in the index ─────────────────────────────────────────────────────────────────► unknown
       └────► its group ──► results of launches and terminations; at most two wakes a second ──┐
       └────► its instance ──► gathered with its other events ─────────────────────────────────┴► the workflow's answer

If there is no answer in time, the event is *unavailable* and its message is kept. While hand-overs fail (`troubled`),
pollers pause, because each receive brings a message closer to the dead letters.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from domain.instances.event_handover import Handled, Outcome, Taken, worst
from domain.instances.event_routing import group_of, instance_of, on_host
from domain.instances.event_urgency import by_instance, urgency
from domain.instances.events import InstanceEvent
from domain.instances.machine_pool_labels import GroupRecord, fold_result
from domain.instances.workflow_ids import GroupKey, InstanceKey
from starters.events import metrics
from starters.events.machine_index import Index

# Maximum events per hand-over; at two kilobytes each, far below Temporal's limit for a payload.
MOST_EVENTS = 100
# Seconds between two wakes of a group, so that a scale-in of hundreds of instances takes a few passes.
GROUP_REST_SECONDS = 0.5
# Concurrent hand-overs of routine events while a backlog is being read.
ROUTINE_WHILE_READING = 2
# So many failures in a row are not caused by a single workflow.
TROUBLE_AFTER = 3
# Seconds for which routine events are held back while a backlog is read.
LONGEST_SECONDS = 10.0
# Seconds from the start of one such wait to the start of the next, so that routine events keep five sixths of the time
# under a lasting flood.
PERIOD_SECONDS = 60.0

# Hands events over to an instance's workflow; for `receives` see `domain.instances.event_handover.update_id`.
HandOverCall = Callable[[InstanceKey, Sequence[InstanceEvent], int], Awaitable[Taken]]
# Passes on results of launches and terminations, and wakes the group's workflow.
WakeGroup = Callable[[GroupKey, GroupRecord], Awaitable[None]]

logger = logging.getLogger(__name__)


class ReadAhead:
    """Prefers reading a queue's backlog to handing over routine events: the last message may be the most urgent.

    The preference lasts while every receive is full, but at most ten seconds per minute.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = -PERIOD_SECONDS + clock()
        self._behind = False

    def received(self, *, full: bool) -> None:
        now = self._clock()
        if not full:
            self._behind = False
        elif now >= self._began + PERIOD_SECONDS:
            self._behind, self._began = True, now

    @property
    def lasts(self) -> bool:
        return self._behind and self._clock() < self._began + LONGEST_SECONDS


@dataclass
class _Waiting:
    events: dict[str, InstanceEvent] = field(default_factory=dict)
    answers: dict[str, list[asyncio.Future[Handled]]] = field(default_factory=dict)
    receives: int = 1

    @property
    def urgency(self) -> int:
        return urgency(tuple(self.events.values()))

    def add(self, event: InstanceEvent, receives: int, answer: asyncio.Future[Handled]) -> None:
        self.events.setdefault(event.key, event)
        self.answers.setdefault(event.key, []).append(answer)
        self.receives = max(self.receives, receives)

    def take(self, most: int) -> _Waiting:
        taken = _Waiting(receives=self.receives)
        for key in tuple(self.events)[:most]:
            taken.events[key], taken.answers[key] = self.events.pop(key), self.answers.pop(key)
        return taken


class Dispatcher:
    """Hands events over to workflows. `doubtful`: whether the index may be incomplete. `at_once` limits concurrent
    hand-overs, `patience` is the timeout of a hand-over.
    """

    def __init__(
        self,
        index: Index,
        places: Collection[tuple[str, str]],
        hand_over: HandOverCall,
        wake_group: WakeGroup,
        *,
        doubtful: Callable[[], bool] = lambda: False,
        at_once: int = 32,
        patience: timedelta = timedelta(seconds=30),
    ) -> None:
        self._index = index
        self._places = places
        self._hand_over = hand_over
        self._wake_group = wake_group
        self._doubtful = doubtful
        self._at_once = at_once
        self._patience = patience.total_seconds()
        self._waiting: dict[InstanceKey, _Waiting] = {}
        self._order: list[tuple[int, int, InstanceKey]] = []
        self._serial = itertools.count()
        self._telling: dict[InstanceKey, asyncio.Task[None]] = {}
        self._groups: dict[GroupKey, asyncio.Task[bool]] = {}
        self._ended: dict[GroupKey, GroupRecord] = {}  # results for groups that have yet to be woken
        self._woken_at: dict[GroupKey, float] = {}
        self._reads: dict[str, ReadAhead] = {}
        self._failures = 0
        self.trouble = ""

    @property
    def troubled(self) -> bool:
        """Whether all recent hand-overs failed, so that no more messages should be received."""
        return self._failures >= TROUBLE_AFTER

    async def outcome(self, event: InstanceEvent, receives: int = 1) -> Handled:
        if (event.account, event.region) not in self._places:
            return Handled(event=event, outcome=Outcome.FOREIGN)
        group = group_of(event)
        parts = on_host(event, self._index.on_host(event.host)) if event.host else (event,)
        known = [(key, each) for each in parts if (key := instance_of(each)) is not None and self._known(each)]
        ours_group = group is not None and self._index.has_group(group)
        if not known and not ours_group:
            return self._unknown(event)
        deliveries = [self._delivered(key, each, receives) for key, each in known]
        if group is not None and ours_group:
            deliveries.append(self._group(event, group))
        answers = [await each for each in deliveries] if len(deliveries) == 1 else await asyncio.gather(*deliveries)
        answer = worst(answers)
        return answer.model_copy(update={"event": event}) if answer.event is not event else answer

    def received(self, queue: str, *, full: bool) -> None:
        self._reads.setdefault(queue, ReadAhead()).received(full=full)
        self._begin()

    async def close(self) -> None:
        """Cancel the hand-overs in progress. All pending events are reported as unavailable."""
        tasks = [*self._telling.values(), *self._groups.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for waiting in self._waiting.values():
            _answer(waiting, {})
        self._waiting.clear()

    # Ownership.

    def _known(self, event: InstanceEvent) -> bool:
        return self._index.knows(event) or self._index.remembers(event.instance_id)

    def _unknown(self, event: InstanceEvent) -> Handled:
        outcome = Outcome.UNAVAILABLE if self._doubtful() else Outcome.UNKNOWN
        return Handled(event=event, outcome=outcome, may_appear=self._index.may_appear)

    # Instances.

    async def _delivered(self, key: InstanceKey, event: InstanceEvent, receives: int) -> Handled:
        answer: asyncio.Future[Handled] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(key, _Waiting())
        before = waiting.urgency if waiting.events else None
        waiting.add(event, receives, answer)
        if key not in self._telling and before != (now := waiting.urgency):
            heapq.heappush(self._order, (now, next(self._serial), key))
        self._begin()
        return await answer

    def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        while self._order and len(self._telling) < self._room(self._order[0][0]):
            _, _, key = heapq.heappop(self._order)
            if key in self._waiting and key not in self._telling:
                self._telling[key] = loop.create_task(self._tell(key))

    def _room(self, urgency_: int) -> int:
        many = len(self._waiting) > 2 * self._at_once
        if urgency_ and many and any(each.lasts for each in self._reads.values()):
            return min(ROUTINE_WHILE_READING, self._at_once)
        return self._at_once

    async def _tell(self, key: InstanceKey) -> None:
        # Let the instance's other events of the same receive join.
        await asyncio.sleep(0)
        waiting = self._waiting[key]
        batch = waiting.take(MOST_EVENTS)
        if not waiting.events:
            del self._waiting[key]
        try:
            await self._tell_batch(key, batch)
        finally:
            del self._telling[key]
            if key in self._waiting:
                heapq.heappush(self._order, (self._waiting[key].urgency, next(self._serial), key))
            self._begin()

    async def _tell_batch(self, key: InstanceKey, batch: _Waiting) -> None:
        events = by_instance(batch.events.values())[key]
        try:
            async with asyncio.timeout(self._patience):
                taken = await self._hand_over(key, events, batch.receives)
        except asyncio.CancelledError:
            _answer(batch, {})
            raise
        except Exception as error:  # no error may lose a message
            self._failed(key, error)
            _answer(batch, {})
            return
        outcomes = {name: self._settled(batch.events[name], outcome) for name, outcome in taken.outcomes.items()}
        answered = Outcome.UNAVAILABLE not in outcomes.values()
        self._failures = 0 if answered else self._failures + 1
        self.trouble = "" if answered else "the Kubernetes API, or AWS, gives workflows no answer"
        metrics.HAND_OVERS.labels("taken" if answered else "unavailable").inc()
        # Workers may learn of a new AWSMachine later than this index.
        may_appear = taken.may_appear or any(self._index.knows(event) for event in events)
        _answer(batch, outcomes, may_appear=may_appear)

    def _settled(self, event: InstanceEvent, outcome: Outcome) -> Outcome:
        # The result of a launch or termination is for the group, so it does not wait for the instance's object.
        result = bool(event.group) and not event.kind.hook
        done = result or self._index.remembers(event.instance_id)
        return Outcome.STALE if outcome is Outcome.UNKNOWN and done else outcome

    def _failed(self, key: InstanceKey | GroupKey, error: Exception) -> None:
        self._failures += 1
        message = "no answer in time" if isinstance(error, TimeoutError) else f"{type(error).__name__}: {error}"
        self.trouble = f"the workflow {key} could not be reached: {message}"
        metrics.HAND_OVERS.labels("failed").inc()
        if self._failures in (1, 10) or self._failures % 100 == 0:
            logger.warning("%s (%d failures in a row); the messages stay in the queue", self.trouble, self._failures)

    # Groups.

    async def _group(self, event: InstanceEvent, group: GroupKey) -> Handled:
        if group not in self._groups:
            self._groups[group] = asyncio.get_running_loop().create_task(self._woken(group))
            self._ended[group] = GroupRecord()
        self._ended[group] = fold_result(self._ended[group], event)
        woken = await asyncio.shield(self._groups[group])
        return Handled(event=event, outcome=Outcome.APPLIED if woken else Outcome.UNAVAILABLE)

    async def _woken(self, group: GroupKey) -> bool:
        """Wake the group, once for all concurrent callers. Returns whether that succeeded."""
        rest = self._woken_at.get(group, 0.0) + GROUP_REST_SECONDS - time.monotonic()
        if rest > 0:
            await asyncio.sleep(rest)
        del self._groups[group]
        ended = self._ended.pop(group)
        self._woken_at.pop(group, None)
        self._woken_at[group] = time.monotonic()
        while len(self._woken_at) > 1000:
            del self._woken_at[next(iter(self._woken_at))]
        try:
            async with asyncio.timeout(self._patience):
                await self._wake_group(group, ended)
        except Exception as error:
            self._failed(group, error)
            return False
        metrics.GROUP_WAKES.inc()
        return True


def _answer(batch: _Waiting, outcomes: dict[str, Outcome], *, may_appear: bool = False) -> None:
    for name, waiting in batch.answers.items():
        outcome = outcomes.get(name, Outcome.UNAVAILABLE)
        for number, answer in enumerate(waiting):
            doubled = number > 0 and outcome is Outcome.APPLIED
            result = Outcome.DUPLICATE if doubled else outcome
            if not answer.done():
                appears = may_appear and result is Outcome.UNKNOWN
                answer.set_result(Handled(event=batch.events[name], outcome=result, may_appear=appears))
