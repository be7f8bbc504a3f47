"""What one OpenStack project may take of a worker, on a clock of the test's own."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import timedelta

import pytest
from guarded_calls import HANG, Clock, call, refusal, silence

from activities.guard import PAUSE, SILENCES
from activities.openstack.guard import BUSY, SAVED_SECONDS, SILENT, SPENT, Guard
from engine.errors import ApiError, Denied, Throttled, Unavailable


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard("project shop", 3, 10, clock=clock)


def test_over_the_limit_a_call_is_refused_and_one_that_ended_makes_room(guard: Guard, clock: Clock) -> None:
    with ExitStack() as under_way:
        for _ in range(3):
            under_way.enter_context(guard.calling())
        refused = refusal(guard, clock)
        assert refused.code == BUSY
        assert "project shop" in refused.message
        assert refused.delay
    call(guard, clock)


def test_a_budget_is_spent_and_grows_again(guard: Guard, clock: Clock) -> None:
    for _ in range(int(10 * SAVED_SECONDS)):
        call(guard, clock, 0)
    refused = refusal(guard, clock)
    assert refused.code == SPENT
    assert refused.delay
    clock.now += 1
    for _ in range(10):
        call(guard, clock, 0)
    assert refusal(guard, clock).code == SPENT


def test_a_long_rest_saves_no_more_than_some_seconds(guard: Guard, clock: Clock) -> None:
    clock.now += 3600
    for _ in range(int(10 * SAVED_SECONDS)):
        call(guard, clock, 0)
    assert refusal(guard, clock).code == SPENT


def test_several_silences_in_a_row_stop_all_calls_for_a_while(guard: Guard, clock: Clock) -> None:
    silence(guard, clock, SILENCES - 1)
    call(guard, clock)  # an answer: the count begins anew
    silence(guard, clock)
    refused = refusal(guard, clock)
    assert (refused.code, refused.delay) == (SILENT, PAUSE)
    clock.now += PAUSE.total_seconds() - 1
    assert refusal(guard, clock).delay == timedelta(seconds=1)
    others = refusal(guard, clock).delay
    assert others is not None
    assert timedelta(seconds=1) + guard.tried_delay * 0.5 <= others, "one tries first"


def test_after_the_pause_one_call_tries_whether_there_are_answers_again(guard: Guard, clock: Clock) -> None:
    silence(guard, clock)
    clock.now += PAUSE.total_seconds()
    with guard.calling():
        assert refusal(guard, clock).code == SILENT
    call(guard, clock)
    silence(guard, clock, 1)
    call(guard, clock)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [(Unavailable("connection reset"), 1.0), (Denied("no"), HANG), (Throttled("429"), HANG)],
    ids=["a broken connection", "a late refusal", "a late throttling"],
)
def test_what_is_no_silence_stops_nothing(guard: Guard, clock: Clock, error: ApiError, seconds: float) -> None:
    for _ in range(3 * SILENCES):
        with pytest.raises(type(error)):
            call(guard, clock, seconds, error)
    call(guard, clock)
