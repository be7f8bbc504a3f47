"""The running activity's attempt: its number, age and cancellation. Times are the server's, never the machine's.

Effects run on threads and must not be interrupted in the middle of a step, so they check for a cancellation between
steps (`checkpoint`).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta

from temporalio import activity
from temporalio.exceptions import CancelledError

from domain.decision import Action, Earlier
from domain.refusal import WORKER_SHUTDOWN
from engine.errors import ApiError, Denied, Unavailable

# IAM and STS are eventually consistent: new objects are refused or missing for seconds, rarely minutes. The replaced
# operator waits up to 225 s for a new user.
SETTLING = timedelta(minutes=4)
_SETTLING_DELAYS = (0.5, 1, 1, 2, 2, 3, 5, 5, 10)


# How often an activity asks whether it is cancelled: each time costs the server a write.
HEARTBEAT_SECONDS = 1.0


class _Heartbeats:
    def __init__(self) -> None:
        self.due = time.monotonic() + HEARTBEAT_SECONDS


_earlier: ContextVar[Earlier | None] = ContextVar("earlier", default=None)
_heartbeats: ContextVar[_Heartbeats | None] = ContextVar("heartbeats", default=None)


def begin(action: object) -> None:
    _earlier.set(action.earlier if isinstance(action, Action) else None)
    _heartbeats.set(_Heartbeats())


def number() -> int:
    earlier = _earlier.get()
    return activity.info().attempt + (earlier.attempts if earlier else 0)


def repeated() -> bool:
    return number() > 1


def started_at() -> datetime:
    return activity.info().started_time


def since() -> datetime:
    earlier = _earlier.get()
    return earlier.since if earlier else activity.info().scheduled_time


def age() -> timedelta:
    return started_at() - since()


def growing(seconds: Sequence[float]) -> timedelta:
    """The delay after this attempt, jittered by 10%. `seconds` lists delays by attempt; the last delay repeats."""
    base = seconds[min(number(), len(seconds)) - 1]
    return timedelta(seconds=base * random.uniform(0.9, 1.1))  # noqa: S311 - spreads load, hides nothing


def settling(error: ApiError, window: timedelta = SETTLING) -> ApiError:
    """The error, made temporary (`Unavailable`) as long as the action is younger than `window`.

    Raise it `from error.__cause__`: an error that is its own cause cannot be sent to the server.
    """
    if age() >= window:
        return error
    delay = error.delay or growing(_SETTLING_DELAYS)
    message = f"{error.message} What was just created may take a moment to be visible."
    return Unavailable(message, code=error.code, delay=delay)


def definite(error: ApiError, attempts: int) -> bool:
    """Whether to report a refusal instead of retrying it: `Denied` from attempt `attempts` on, other errors always."""
    return not isinstance(error, Denied) or number() >= attempts


def checkpoint(progress: object = None) -> None:
    """Raise if the activity is cancelled: CancelledError, or Unavailable if the worker's time to drain is over."""
    _heartbeat(progress)
    if not activity.is_cancelled():
        return
    details = activity.cancellation_details()
    if details is not None and details.worker_shutdown and not details.cancel_requested:
        raise _going_away()
    raise CancelledError("cancelled between two steps")


def pause(seconds: float, progress: object = None) -> None:
    """Wait within an attempt; raises as `checkpoint` does, and Unavailable if the worker is draining."""
    checkpoint(progress)
    if activity.is_worker_shutdown():
        raise _going_away()
    activity.wait_for_cancelled_sync(seconds)
    checkpoint(progress)


def _heartbeat(progress: object = None) -> None:
    """Send a heartbeat if one is due. Temporal reports a cancellation only in answer to a heartbeat."""
    beats = _heartbeats.get()
    if beats is None or time.monotonic() >= beats.due:
        activity.heartbeat(progress)
        if beats is not None:
            beats.due = time.monotonic() + HEARTBEAT_SECONDS


def _going_away() -> Unavailable:
    return Unavailable("the worker is stopping; another worker continues", code=WORKER_SHUTDOWN)


def pause_regardless(seconds: float) -> None:
    """Wait even if cancelled, for steps that have to be finished."""
    _heartbeat()
    threading.Event().wait(seconds)
