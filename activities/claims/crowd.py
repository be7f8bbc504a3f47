"""Claims that end together wait for each other: all are asked to go before the first is let go.

What a user sees of an end is that claim, handle and resource are on their way out. To drop the finalizers is two
requests of seven, for which those who are not asked yet would wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from activities.claims.known import Name

LET_GO_AT_ONCE = 16


class Crowd:
    """The claims that the binder ends now: each joins, is asked to go, waits for the others, is let go, and leaves."""

    def __init__(self) -> None:
        self._members: set[Name] = set()
        self._asked: set[Name] = set()
        self._arrived: Callable[[], None] = lambda: None
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

    def disperse(self) -> set[Name]:
        """Nobody waits any more; those who had not left."""
        self.is_asked()
        left, self._members, self._asked = self._members, set(), set()
        return left

    def gathers(self, arrived: Callable[[], None]) -> None:
        """From now on who was asked waits for the others; `arrived` is called when one begins to."""
        self._arrived = arrived
        self._everyone_asked.clear()

    def is_asked(self) -> None:
        """Everyone has been asked: they are let go, some at once."""
        self._everyone_asked.set()

    @property
    def is_gathering(self) -> bool:
        """Whether its members wait for each other."""
        return not self._everyone_asked.is_set()

    @property
    def asking(self) -> int:
        """How many are being asked."""
        return len(self._members) - len(self._asked)

    @property
    def asked(self) -> int:
        """How many have been asked, and wait or are let go."""
        return len(self._asked)

    @asynccontextmanager
    async def behind_the_others(self, claim: Name | None) -> AsyncIterator[None]:
        """For letting go of this claim and its handle; who is no member goes on."""
        if claim not in self._members:
            yield
            return
        self._asked.add(claim)
        if self.is_gathering:
            self._arrived()
            await self._everyone_asked.wait()
        async with self._places:
            yield
