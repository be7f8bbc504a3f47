"""The time in an activity: the attempt's start by Temporal's clock, plus the seconds that this process measured.

No decision depends on a machine's own clock.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from datetime import datetime, timedelta

from temporalio import activity

_began: ContextVar[float | None] = ContextVar("began", default=None)


def begin() -> None:
    _began.set(time.monotonic())


def now() -> datetime:
    began = _began.get()
    elapsed = time.monotonic() - began if began is not None else 0.0
    return activity.info().started_time + timedelta(seconds=elapsed)
