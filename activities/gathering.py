"""Several calls at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def gathered(each: Iterable[Awaitable[T]]) -> list[T]:
    """All of them, however one ends; the first failure is raised when all have ended."""
    outcomes = await asyncio.gather(*each, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
