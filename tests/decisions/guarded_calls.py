"""Calls under a guard, on a clock of the test's own: answered, refused, or hanging until there is no answer."""

from __future__ import annotations

import pytest

from activities.call_limits import CallGuard
from activities.circuit_breaker import SILENCES
from engine.errors import ApiError, Throttled, Unavailable

# Longer than any client waits for an answer.
HANG = 30.0


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def call(guard: CallGuard, clock: Clock, seconds: float = 0.1, error: ApiError | None = None) -> None:
    """One call that takes so long."""
    with guard.calling():
        clock.now += seconds
        if error is not None:
            raise error


def silence(guard: CallGuard, clock: Clock, times: int = SILENCES) -> None:
    """So many calls in a row without an answer."""
    for _ in range(times):
        with pytest.raises(Unavailable):
            call(guard, clock, HANG, Unavailable("read timeout"))


def refusal(guard: CallGuard, clock: Clock) -> Throttled:
    """How the guard refuses the next call."""
    with pytest.raises(Throttled) as refused:
        call(guard, clock)
    return refused.value
