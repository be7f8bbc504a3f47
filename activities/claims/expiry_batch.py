"""Claims that end together wait for each other: all are asked to go before the first is let go.

What a user sees of an end is that claim, handle and resource are on their way out. To drop the finalizers is two
requests of seven, for which those who are not asked yet would wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

from domain.claims.marks import Name

LET_GO_AT_ONCE = 16
# One that cannot be asked in this time is left to its own workflow.
LONGEST_ASKING = 10.0
# And it keeps the others no longer than this.
LONGEST_WAIT = 5.0


class ExpiryBatch:
    """The claims that a batch ends: each is asked to go, waits for the others, and is let go."""

    def __init__(self, arrived: Callable[[], None]) -> None:
        """`arrived` is called when one begins to wait."""
        self._arrived = arrived
        self._members: set[Name] = set()
        self._asked: set[Name] = set()
        self._everyone_asked = asyncio.Event()
        self._everyone_asked.set()
        self._places = asyncio.Semaphore(LET_GO_AT_ONCE)

    def join(self, claim: Name) -> None:
        """It is going to be asked."""
        self._members.add(claim)

    def leave(self, claim: Name) -> None:
        """It is gone, or something was wrong with it."""
        self._members.discard(claim)
        self._asked.discard(claim)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def members(self) -> set[Name]:
        """Those who have not left."""
        return set(self._members)

    @property
    def asking(self) -> int:
        """How many are being asked."""
        return len(self._members) - len(self._asked)

    @property
    def asked(self) -> int:
        """How many have been asked, and wait or are let go."""
        return len(self._asked)

    @property
    def is_gathering(self) -> bool:
        """Whether its members wait for each other."""
        return not self._everyone_asked.is_set()

    def gathers(self) -> None:
        """From now on who was asked waits for the others."""
        self._everyone_asked.clear()

    def is_asked(self) -> None:
        """Everyone has been asked: they are let go, some at once."""
        self._everyone_asked.set()

    @asynccontextmanager
    async def asks(self, claim: Name) -> AsyncIterator[None]:
        """For ending a member.

        Raises:
            TimeoutError: it could not be asked in time.
        """
        async with asyncio.timeout(LONGEST_ASKING) as limit:
            token = _asked_here.set(_Asked(self, claim, limit))
            try:
                yield
            finally:
                _asked_here.reset(token)

    @asynccontextmanager
    async def lets_go(self, claim: Name) -> AsyncIterator[None]:
        """For letting go of a member, in its turn."""
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
        except Exception:  # it was written meanwhile: it is asked once more
            self._asked.discard(claim)
            raise


@dataclass(frozen=True)
class _Asked:
    """Whom the task at hand ends as a member of a batch."""

    batch: ExpiryBatch
    claim: Name
    limit: asyncio.Timeout


_asked_here: ContextVar[_Asked | None] = ContextVar("asked_here", default=None)


@asynccontextmanager
async def behind_the_others() -> AsyncIterator[None]:
    """For letting go of what the task at hand has asked to go; a task that ends no member of a batch does not wait."""
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
