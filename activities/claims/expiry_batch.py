"""Claims that expire together: all are marked for deletion before finalizers are dropped, since users see the marks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from domain.claims.marks import Name

LET_GO_AT_ONCE = 16
# Seconds. A claim that cannot be marked in this time is left to its own workflow.
LONGEST_ASKING = 10.0
# Seconds for which a claim delays the others at most.
LONGEST_WAIT = 5.0


class ExpiryBatch:
    def __init__(self, arrived: Callable[[], None]) -> None:
        """`arrived` is called when a claim begins to wait."""
        self._arrived = arrived
        self._members: set[Name] = set()
        self._asked: set[Name] = set()
        self._everyone_asked = asyncio.Event()
        self._everyone_asked.set()
        self._places = asyncio.Semaphore(LET_GO_AT_ONCE)

    def join(self, claim: Name) -> None:
        self._members.add(claim)

    def leave(self, claim: Name) -> None:
        self._members.discard(claim)
        self._asked.discard(claim)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> set[Name]:
        return set(self._members)

    @property
    def asking(self) -> int:
        return len(self._members) - len(self._asked)

    @property
    def asked(self) -> int:
        return len(self._asked)

    @property
    def is_gathering(self) -> bool:
        return not self._everyone_asked.is_set()

    def gathers(self) -> None:
        self._everyone_asked.clear()

    def is_asked(self) -> None:
        """Called when all claims are marked: `LET_GO_AT_ONCE` of them drop their finalizers at a time."""
        self._everyone_asked.set()

    @asynccontextmanager
    async def asks(self, claim: Name) -> AsyncIterator[None]:
        """The context in which a claim of the batch is ended; `TimeoutError` if it could not be marked in time."""
        async with asyncio.timeout(LONGEST_ASKING) as limit:
            token = _asked_here.set(_Asked(self, claim, limit))
            try:
                yield
            finally:
                _asked_here.reset(token)

    @asynccontextmanager
    async def lets_go(self, claim: Name) -> AsyncIterator[None]:
        """The context in which a member drops finalizers, when it is its turn."""
        if claim in self._members:
            self._asked.add(claim)
        if self.is_gathering:
            self._arrived()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT):
                    await self._everyone_asked.wait()
        try:
            async with self._places:
                yield
        except Exception:  # changed meanwhile: it has to be marked again
            self._asked.discard(claim)
            raise


@dataclass(frozen=True)
class _Asked:
    batch: ExpiryBatch
    claim: Name
    limit: asyncio.Timeout


_asked_here: ContextVar[_Asked | None] = ContextVar("asked_here", default=None)


@asynccontextmanager
async def behind_the_others() -> AsyncIterator[None]:
    """The context in which the current task drops finalizers; outside a batch it does not wait."""
    asked = _asked_here.get()
    if asked is None:
        yield
        return
    asked.limit.reschedule(None)
    try:
        async with asked.batch.lets_go(asked.claim):
            yield
    except Exception:
        asked.limit.reschedule(asyncio.get_running_loop().time() + LONGEST_ASKING)
        raise
