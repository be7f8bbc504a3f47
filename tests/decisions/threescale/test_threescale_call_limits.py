"""What one tenant of 3scale may take of a worker where it gives no answers."""

from __future__ import annotations

from datetime import timedelta

import pytest
from guarded_calls import Clock, call, refusal, silence

from activities.circuit_breaker import CHOSEN_SECONDS, PAUSE
from activities.threescale.call_limits import Guard
from activities.threescale.slot_backoff import COME_BACK
from activities.threescale.tenant_concurrency import Share
from engine.errors import Throttled


def test_while_one_call_tries_a_silent_tenant_objects_stay_away_as_for_a_pause() -> None:
    """A call may take its whole time-out, and a caller comes back with a pass."""
    clock = Clock()
    guard = Guard("3scale at https://a.example.com", 8, clock=clock)
    silence(guard, clock)
    clock.now += PAUSE.total_seconds()
    with guard.calling():
        delay = refusal(guard, clock).delay

    assert delay is not None
    assert PAUSE * 0.5 <= delay <= PAUSE * 1.5


def test_at_the_end_of_a_pause_one_comes_back_and_the_others_after_it() -> None:
    """Fifty objects of one silent tenant that came at once took the processor from those of the others."""
    clock = Clock()
    guard = Guard("3scale at https://a.example.com", 8, clock=clock)
    silence(guard, clock)
    delays = [refusal(guard, clock).delay or timedelta(0) for _ in range(50)]

    assert delays[0] == PAUSE
    assert PAUSE * 1.5 <= min(delays[1:]) < max(delays[1:]) <= PAUSE * 2.5


def test_a_caller_some_seconds_later_may_try_too() -> None:
    """A caller that was given the end of the pause may have been woken before, and be another now."""
    clock = Clock()
    guard = Guard("3scale at https://a.example.com", 8, clock=clock)
    silence(guard, clock)
    refusal(guard, clock)
    clock.now += CHOSEN_SECONDS

    assert refusal(guard, clock).delay == PAUSE - timedelta(seconds=CHOSEN_SECONDS)


async def test_a_caller_without_an_answer_is_no_sign_that_slots_get_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("activities.threescale.tenant_concurrency.MOST_WAITING", 0)
    clock = Clock()
    share = Share("https://a.example.com", 2, clock=clock)
    async with share.slot():
        clock.now += 10
        silence(share.guard, clock, times=1)
        async with share.slot():
            pass
        async with share.slot():
            still = await _refused(share)
        call(share.guard, clock)
        async with share.slot():
            pass
        async with share.slot():
            answered = await _refused(share)

    assert still >= timedelta(seconds=20)
    assert answered <= COME_BACK * 1.5


async def test_a_caller_without_a_slot_stays_away_for_as_long_as_none_was_freed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("activities.threescale.tenant_concurrency.MOST_WAITING", 0)
    clock = Clock()
    share = Share("https://a.example.com", 1, clock=clock)
    async with share.slot():
        soon = await _refused(share)
        clock.now += 20
        later = await _refused(share)

    assert COME_BACK * 0.5 <= soon <= COME_BACK * 1.5
    assert timedelta(seconds=10) <= later <= timedelta(seconds=31)


async def _refused(share: Share) -> timedelta:
    with pytest.raises(Throttled) as refused:
        async with share.slot():
            raise AssertionError("there is one slot")
    assert refused.value.delay is not None
    return refused.value.delay
