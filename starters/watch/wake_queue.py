"""The queue of keys to wake. A key waits in it at most once, until Temporal has accepted its wake.

A key that is put while its wake is being sent is woken again. A failed wake is retried after 0.2 to 5 s.
A key may be:

- *held*: its wake is delayed, because another workflow may do the work;
- *gathered*: it is woken once, at the end of a burst of changes that each concern thousands of keys;
- *resting*: it was just woken, and is not woken again for 0.1 to 5 s;
- *urgent*: it is woken before other keys, because its object is deleted, or a person retries, pauses or resumes it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import chain

from opentelemetry.context import Context

from domain.identity import Key
from engine.health import LONGEST_TURN
from engine.tracing import continued, origin
from starters.watch.projection import Projection

FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0
# Minimum seconds between two wakes of a key: a burst becomes a few wakes instead of hundreds.
REST = 0.1

logger = logging.getLogger(__name__)


def is_urgent(before: Projection | None, after: Projection | None) -> bool:
    return after is None or after.deleting or (before is not None and before.levers != after.levers)


class WakeQueue:
    def __init__(
        self,
        wake: Callable[[Key], Awaitable[None]],
        on_woken: Callable[[Key], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._on_woken = on_woken
        self._waiting: dict[Key, float] = {}  # when each key was put, oldest first
        self._urgent: dict[Key, None] = {}
        self._sending: dict[Key, float] = {}
        self._delayed: dict[Key, float] = {}
        self._failures: dict[Key, int] = {}
        self._resting: dict[Key, float | None] = {}  # keys woken just now; value: when the key was put again, or None
        self.held: dict[Key, asyncio.TimerHandle] = {}
        self._gathered: list[Callable[[], Iterable[Key]]] = []
        self._origins: dict[Key, Context] = {}  # the traces that the wakes belong to
        self.arrived = asyncio.Event()
        self._barriers: list[tuple[set[Key], asyncio.Event]] = []
        self._last_turn = clock()

    def __len__(self) -> int:
        return len(self.outstanding()) + len(self.held) + bool(self._gathered)

    def put(self, key: Key, *, urgent: bool = False) -> None:
        """Queue a wake of the key. The wake is sent later if the key was just woken, or if `hold` delays the key."""
        if urgent:
            self._urgent[key] = None
        if (context := origin()) is not None:
            self._origins[key] = context
        if key in self._resting and key not in self.held:
            self._resting[key] = self._resting[key] or self._clock()
        elif key not in self._waiting and key not in self._delayed and key not in self.held:
            self._waiting[key] = self._clock()
            self.arrived.set()

    def put_all(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self.put(key)

    def put_now(self, key: Key, *, urgent: bool = False) -> None:
        if handle := self.held.pop(key, None):
            handle.cancel()
        self.put(key, urgent=urgent)

    def hold(self, key: Key, seconds: float) -> None:
        if handle := self.held.pop(key, None):
            handle.cancel()
        self._waiting.pop(key, None)
        if key in self._resting:
            self._resting[key] = None
        self.held[key] = asyncio.get_running_loop().call_later(seconds, self.put_now, key)

    def leave(self, key: Key, seconds: float) -> None:
        """Wake the key after `seconds`, unless its wake is queued already."""
        if key not in self._waiting and key not in self._delayed and not self._resting.get(key):
            self.hold(key, seconds)

    def gather(self, find: Callable[[], Iterable[Key]], seconds: float) -> None:
        """Wake the keys that `find` returns, once per burst of calls: `seconds` after the burst's first call.

        `find` is called after this wait, because references to the changed object may change during the wait.
        """
        if not self._gathered:
            asyncio.get_running_loop().call_later(seconds, self._put_gathered)
        self._gathered.append(find)

    def oldest_age(self, kind: str) -> float:
        since = [at for key, at in self.outstanding().items() if kind == key.kind]
        return self._clock() - min(since) if since else 0.0

    def stalled(self) -> Iterable[str]:
        """Why wakes have stalled: keys wait, but no wake was attempted for long. A failed wake is an attempt."""
        ago = self._clock() - max(self._last_turn, min(self._waiting.values(), default=self._last_turn))
        if self._waiting and ago > LONGEST_TURN:
            yield f"{len(self._waiting)} wakes wait, and none has been tried for {ago:.0f} s"

    def length(self, kind: str) -> int:
        return sum(key.kind == kind for key in self.outstanding())

    async def acknowledged(self) -> None:
        """Wait until Temporal has accepted the wakes of all present keys."""
        keys = set(self.outstanding())
        if keys:
            done = asyncio.Event()
            self._barriers.append((keys, done))
            await done.wait()

    async def run(self, wakers: int) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(wakers):
                group.create_task(self._drain())

    async def _drain(self) -> None:
        while True:
            key = self._next()
            if key is None:
                self.arrived.clear()
                await self.arrived.wait()
                continue
            await self.send(key)

    def _next(self) -> Key | None:
        urgent = (key for key in self._urgent if key in self._waiting)
        return next((key for key in chain(urgent, self._waiting) if key not in self._sending), None)

    async def send(self, key: Key) -> None:
        self._last_turn = began = self._clock()
        since = self._sending[key] = self._waiting.pop(key)
        self._urgent.pop(key, None)
        self._resting[key] = None
        try:
            with continued(self._origins.pop(key, None)):
                await self._wake(key)
        except Exception as error:  # whatever it is, the key must not be lost
            self._failed(key, since, error)
        else:
            self._succeeded(key)
        finally:
            self._last_turn = self._clock()
            took = self._last_turn - began
            rest = max(REST - took, min(took, LONGEST_DELAY))
            asyncio.get_running_loop().call_later(rest, self._rested, key)
            self._sending.pop(key, None)
            if key in self._waiting:
                self.arrived.set()

    def _succeeded(self, key: Key) -> None:
        self._failures.pop(key, None)
        if key not in self._waiting and not self._resting.get(key):  # else it was put again meanwhile
            self._acknowledge(key)
        if self._on_woken is not None:
            self._on_woken(key)

    def _acknowledge(self, key: Key) -> None:
        for keys, done in self._barriers:
            keys.discard(key)
            if not keys:
                done.set()
        self._barriers = [(keys, done) for keys, done in self._barriers if keys]

    def _failed(self, key: Key, since: float, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self._waiting.pop(key, None)
        self._delayed[key] = since
        delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** min(failures, 10)) * random.uniform(0.75, 1.25)  # noqa: S311
        if failures in (1, 10) or failures % 100 == 0:
            logger.warning("%s could not be woken (%d times): %s: %s", key, failures, type(error).__name__, error)
        asyncio.get_running_loop().call_later(delay, self._again, key)

    def _rested(self, key: Key) -> None:
        since = self._resting.pop(key, None)
        if since is not None and key not in self._delayed:
            self._waiting.setdefault(key, since)
            self.arrived.set()

    def _again(self, key: Key) -> None:
        self._waiting[key] = self._delayed.pop(key)
        self.arrived.set()

    def _put_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        self.put_all(dict.fromkeys(key for find in gathered for key in find()))

    def outstanding(self) -> dict[Key, float]:
        wanted_again = {key: since for key, since in self._resting.items() if since is not None}
        return {**wanted_again, **self._waiting, **self._delayed, **self._sending}
