"""Claims that expire together: all are marked (their deletion is requested) before any finalizer is removed.

So users see all deletion timestamps at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from domain.claims.json_objects import Name

LET_GO_AT_ONCE = 16
# Seconds. A claim that cannot be marked in this time is left to its own workflow.
LONGEST_ASKING = 10.0
# Seconds. A marked claim waits at most this long until all other claims are marked.
LONGEST_WAIT = 5.0


class ExpiryBatch:
    def __init__(self, arrived: Callable[[], None]) -> None:
        """`arrived` is called when a claim that is being deleted begins to wait for the batch's other claims."""
        self._arrived = arrived
        self._members: set[Name] = set()
        self._marked: set[Name] = set()
        self._all_marked = asyncio.Event()
        self._all_marked.set()
        self._places = asyncio.Semaphore(LET_GO_AT_ONCE)

    def join(self, claim: Name) -> None:
        self._members.add(claim)

    def leave(self, claim: Name) -> None:
        self._members.discard(claim)
        self._marked.discard(claim)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> set[Name]:
        return set(self._members)

    @property
    def asking(self) -> int:
        return len(self._members) - len(self._marked)

    @property
    def marked(self) -> int:
        return len(self._marked)

    @property
    def is_gathering(self) -> bool:
        return not self._all_marked.is_set()

    def gathers(self) -> None:
        self._all_marked.clear()

    def all_marked(self) -> None:
        """End the wait in `lets_go`, so that the waiting tasks go on to remove finalizers."""
        self._all_marked.set()

    @asynccontextmanager
    async def asks(self, claim: Name) -> AsyncIterator[None]:
        """The context in which a claim is deleted; raises TimeoutError if its deletion is not requested in time."""
        async with asyncio.timeout(LONGEST_ASKING) as limit:
            token = _current_member.set(_Member(self, claim, limit))
            try:
                yield
            finally:
                _current_member.reset(token)

    @asynccontextmanager
    async def lets_go(self, claim: Name) -> AsyncIterator[None]:
        """The context in which a member removes finalizers; waits until the deletion of all members is requested."""
        if claim in self._members:
            self._marked.add(claim)
        if self.is_gathering:
            self._arrived()
            with suppress(TimeoutError):
                async with asyncio.timeout(LONGEST_WAIT):
                    await self._all_marked.wait()
        try:
            async with self._places:
                yield
        except Exception:  # the object has changed: its deletion has to be requested again
            self._marked.discard(claim)
            raise


@dataclass(frozen=True)
class _Member:
    batch: ExpiryBatch
    claim: Name
    limit: asyncio.Timeout


_current_member: ContextVar[_Member | None] = ContextVar("current_member", default=None)


@asynccontextmanager
async def behind_the_others() -> AsyncIterator[None]:
    """The context in which the current task removes finalizers. In a batch, the task first waits until the
    deletion of all members is requested.
    """
    member = _current_member.get()
    if member is None:
        yield
        return
    member.limit.reschedule(None)
    try:
        async with member.batch.lets_go(member.claim):
            yield
    except Exception:
        member.limit.reschedule(asyncio.get_running_loop().time() + LONGEST_ASKING)
        raise
