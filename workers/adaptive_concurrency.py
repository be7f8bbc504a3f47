"""Limits how many tasks of a queue a process runs at once. The limit adapts, up to a configured maximum.

    a task ends in good time --> the limit grows by 1/limit           (additive increase)
    a task takes too long, or the event loop is late --> limit * 7/10 (multiplicative decrease)

The limit of workflow tasks never falls below one. The limit of activities never falls below an eighth of its maximum,
nor below four: activities that wait for another system must not block all others. A poll needs a free slot, so tasks
beyond the limit stay with Temporal.

The SDK's resource-based supplier is not used, because it measures the machine's CPU, not the process's share of it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import cast

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

DECREASE = 0.7
# Seconds: a tenth of Temporal's timeout for a workflow task. A longer timeout would be no remedy: Temporal also hands
# tasks to polls of a worker that was just killed, and the lifecycles of these tasks wait for the timeout (34 s with a
# timeout of 30 s, measured).
LONGEST_WORKFLOW_TASK = 1.0
# The first limit of workflow tasks. They share a core, so a low limit costs nothing; it grows within some dozens of
# tasks.
FIRST_WORKFLOW_TASKS = 3
# The limit of activities, which wait for other systems, never falls below its maximum divided by this, nor below
# LEAST_WAITING.
LEFT_TO_WAITING = 8
LEAST_WAITING = 4
# The event loop is late if a callback waits this many seconds. In a process with enough CPU, callbacks wait for some
# milliseconds, and at times for the parsing of a long list.
LATE = 0.25


class Limit:
    def __init__(self, most: int, least: int = 1, *, longest: float = float("inf"), first: int = 0) -> None:
        """The limit starts at `first`, or at `most` if `first` is 0.

        A task is slow after `longest` seconds. Infinity is for tasks that wait for other systems.
        """
        self._most = most
        self._least = float(min(least, most))
        self._longest = longest
        self._exact = float(min(first or most, most))
        self._decreased_at = float("-inf")

    def __int__(self) -> int:
        return int(self._exact)

    def ended(self, began: float, ended: float, late: float) -> None:
        """Adapt the limit when a task has ended. Concurrent slow tasks cause only one decrease."""
        if ended - began <= self._longest and late <= LATE:
            self._exact = min(self._most, self._exact + 1 / self._exact)
        elif began >= self._decreased_at:
            self._exact = max(self._least, self._exact * DECREASE)
            self._decreased_at = ended


class Permit(SlotPermit):
    """One slot; `began` is set when a task begins to use it."""

    def __init__(self, *, sticky: bool) -> None:
        self.sticky = sticky
        self.began: float | None = None


class PacedSlots(CustomSlotSupplier):
    """The slots of a queue; thread-safe, because Temporal's core uses them from its own threads."""

    def __init__(self, limit: Limit, clock: Callable[[], float] = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._polling: Counter[bool] = Counter()  # polls under way; True counts those of the sticky queue
        self._used = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Event()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        self._loop = asyncio.get_running_loop()
        while (permit := self.try_reserve_slot(ctx)) is None:
            self._room.clear()
            await self._room.wait()
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Reserve a slot for a poll; None if no further poll is admitted now.

        While any slot is unused, the sticky and the ordinary queue may have at least one poll each. Otherwise, with a
        limit of one, a poll of one queue would block the other queue.
        """
        with self._lock:
            limit, sticky = int(self.limit), ctx.is_sticky
            if self._used >= limit or (self._used + self._polling.total() >= limit and self._polling[sticky]):
                return None
            self._polling[sticky] += 1
            return Permit(sticky=sticky)

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        permit = cast("Permit", ctx.permit)
        with self._lock:
            permit.began = self._clock()
            self._polling[permit.sticky] -= 1
            self._used += 1

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        permit, ended = cast("Permit", ctx.permit), self._clock()
        with self._lock:
            if permit.began is None:
                self._polling[permit.sticky] -= 1
            else:
                self._used -= 1
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._released, permit.began, ended)

    def _released(self, began: float | None, ended: float) -> None:
        if began is not None:
            with self._lock:
                self.limit.ended(began, ended, late=self._clock() - ended)
        self._room.set()


def workflow_tasks(most: int, *, waiting: bool = False) -> WorkerTuner:
    """A tuner for `most` workflow tasks at once; `waiting`: whether the tasks wait for local activities."""
    limit = _waiting(most) if waiting else Limit(most, longest=LONGEST_WORKFLOW_TASK, first=FIRST_WORKFLOW_TASKS)
    return _tuner(workflows=PacedSlots(limit), local=FixedSizeSlotSupplier(most))


def activities(most: int) -> WorkerTuner:
    return _tuner(activities=PacedSlots(_waiting(most)))


def _waiting(most: int) -> Limit:
    return Limit(most, max(LEAST_WAITING, most // LEFT_TO_WAITING))


def _tuner(
    workflows: PacedSlots | None = None,
    activities: PacedSlots | None = None,
    local: FixedSizeSlotSupplier | None = None,
) -> WorkerTuner:
    none = FixedSizeSlotSupplier(1)
    return WorkerTuner.create_composite(
        workflow_supplier=workflows or none,
        activity_supplier=activities or none,
        local_activity_supplier=local or none,
        nexus_supplier=none,
    )
