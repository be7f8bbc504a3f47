"""Claims' requests to the binder. Requests within a tenth of a second share one signal.

Each signal costs a workflow task, and a workflow run accepts only 10,000 signals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from domain.claims.passes import MOST_ASKED
from domain.identity import Key

GATHER_SECONDS = 0.1


class Asking:
    def __init__(self, send: Callable[[Sequence[Key]], Awaitable[None]]) -> None:
        self._send = send
        self._gathered: dict[Key, None] = {}
        self._sending: asyncio.Task[None] | None = None

    async def ask(self, claim: Key) -> None:
        """Ask the binder for a handle. Returns once the signal is sent; raises RPCError if it cannot be sent."""
        self._gathered[claim] = None
        if self._sending is None:
            self._sending = asyncio.create_task(self._after_a_moment())
        await asyncio.shield(self._sending)

    async def _after_a_moment(self) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        claims, self._gathered, self._sending = tuple(self._gathered), {}, None
        for start in range(0, len(claims), MOST_ASKED):
            await self._send(claims[start : start + MOST_ASKED])
