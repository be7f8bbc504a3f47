"""Waiting for what other processes or workflows do: looked at again and again, until it holds or it is too late.

Nothing here says that anything is quick: a slow machine may take as long as it takes, and only what will never come
makes a test fail. `perdure bench` measures how long things take.
"""

from __future__ import annotations

import asyncio
import inspect
import linecache
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PATIENT = 90.0
_BETWEEN_LOOKS = 0.05


def until(holds: Callable[[], Any], what: str = "", seconds: float = PATIENT) -> Any:
    """What `holds` says as soon as that is true; blocks. A failure names `what`, or the line of `holds`."""
    deadline = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:g} s: {what or _line(holds)}")
        time.sleep(_BETWEEN_LOOKS)
    return found


async def eventually(holds: Callable[[], Any], what: str | Callable[[], Any] = "", seconds: float = PATIENT) -> Any:
    """What `holds` says, or what it says when awaited, as soon as that is true; `what` may say how far it came.

    A failure names `what`, or the line of `holds`.
    """
    try:
        async with asyncio.timeout(seconds):
            while not (found := await _result_of(holds)):  # noqa: ASYNC110 - what is waited for has no events for us
                await asyncio.sleep(_BETWEEN_LOOKS)
            return found
    except TimeoutError:
        reason = what if isinstance(what, str) else await _result_of(what)
        pytest.fail(f"not within {seconds:g} s: {reason or _line(holds)}")


async def _result_of(holds: Callable[[], Any]) -> Any:
    reason = holds()
    return await reason if inspect.isawaitable(reason) else reason


def _line(holds: Callable[[], Any]) -> str:
    code = getattr(holds, "__code__", None)
    if code is None:
        return repr(holds)
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}: {line}"
