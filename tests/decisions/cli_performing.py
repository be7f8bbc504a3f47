"""Commands' work on servers that a test plays: what takes the place of `starters.cli.session.perform`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from starters.cli.session import Session

Perform = Callable[[Callable[[Session], Awaitable[Any]]], Any]


def performing(opened: Session) -> Perform:
    """Does each command's work with this session."""

    def perform(work: Callable[[Session], Awaitable[Any]]) -> Any:
        async def done() -> Any:
            return await work(opened)

        return asyncio.run(done())

    return perform
