"""Passes over objects that others write as well: made again, on what is there now, when a write was refused so."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from domain.identity import Key
from engine.errors import Conflict

# Somebody writes to the same objects all the time: leave the pass to the next wake.
MOST_CONFLICTS = 5

T = TypeVar("T")

log = logging.getLogger(__name__)


async def until_undisturbed(key: Key, attempt: Callable[[int], Awaitable[T]]) -> T:
    """What the first attempt gives whose writes nobody has come before; attempts are numbered from 0.

    Raises:
        Conflict: none of several was.
    """
    for number in range(MOST_CONFLICTS):
        try:
            return await attempt(number)
        except Conflict as conflict:
            log.info("%s: %s", key, conflict.message)
    raise Conflict(f"{key.path}: changed by others {MOST_CONFLICTS} times while it was looked at", code="Busy")
