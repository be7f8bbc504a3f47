"""What one account, project or tenant may take of a worker, on a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta

import pytest
from guarded_calls import HANG, Clock, call, refusal, silence

from activities.aws.call_limits import Guard as AccountGuard
from activities.call_limits import CallGuard
from activities.circuit_breaker import PAUSE, SILENCES, SILENT_SECONDS
from activities.openstack.call_limits import Guard as ProjectGuard
from activities.threescale.call_limits import Guard as TenantGuard
from engine.errors import ApiError, Denied, Throttled, Unavailable

# Each with a limit of three calls at once.
GUARDS: dict[str, Callable[[Clock], CallGuard]] = {
    "123456789012": lambda clock: AccountGuard("123456789012", 3, clock=clock),
    "project shop": lambda clock: ProjectGuard("project shop", 3, 10, clock=clock),
    "3scale at https://a.example.com": lambda clock: TenantGuard("3scale at https://a.example.com", 3, clock=clock),
}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=GUARDS)
def whom(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def guard(whom: str, clock: Clock) -> CallGuard:
    return GUARDS[whom](clock)


def test_over_the_limit_a_call_is_refused_with_a_delay_and_an_ended_one_makes_room(
    guard: CallGuard, clock: Clock, whom: str
) -> None:
    with ExitStack() as under_way:
        for _ in range(3):
            under_way.enter_context(guard.calling())
        refused = refusal(guard, clock)
        assert refused.code == guard.busy
        assert whom in refused.message
        assert refused.delay is not None
        assert guard.full_delay * 0.5 <= refused.delay <= guard.full_delay * 1.5
    call(guard, clock)


def test_several_silences_in_a_row_stop_all_calls_for_a_while(guard: CallGuard, clock: Clock) -> None:
    silence(guard, clock, SILENCES - 1)
    call(guard, clock)  # an answer: the count restarts
    silence(guard, clock)
    refused = refusal(guard, clock)
    assert (refused.code, refused.delay) == (guard.silent, PAUSE)
    clock.now += PAUSE.total_seconds() - 1
    assert refusal(guard, clock).delay == timedelta(seconds=1)
    others = refusal(guard, clock).delay
    assert others is not None
    assert timedelta(seconds=1) + guard.tried_delay * 0.5 <= others, "one tries first"


def test_after_the_pause_one_call_tries_whether_there_are_answers_again(guard: CallGuard, clock: Clock) -> None:
    silence(guard, clock)
    clock.now += PAUSE.total_seconds()
    with guard.calling():
        assert refusal(guard, clock).code == guard.silent
    with guard.calling():  # it was answered: all may call again
        call(guard, clock)
    silence(guard, clock, 1)
    call(guard, clock)


def test_a_trial_without_an_answer_pauses_again_with_the_same_message(guard: CallGuard, clock: Clock) -> None:
    silence(guard, clock)
    first = refusal(guard, clock)
    clock.now += PAUSE.total_seconds()
    silence(guard, clock, 1)
    again = refusal(guard, clock)
    assert (again.delay, again.message) == (PAUSE, first.message), "another message would be another Event"


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Unavailable("connection reset"), SILENT_SECONDS - 1),  # it breaks at once: no thread is blocked
        (Denied("AccessDenied"), HANG),
        (Throttled("RequestLimitExceeded"), HANG),
    ],
    ids=["a broken connection", "a late refusal", "a late throttling"],
)
def test_an_error_that_is_no_silence_trips_no_breaker(
    guard: CallGuard, clock: Clock, error: ApiError, seconds: float
) -> None:
    for _ in range(3 * SILENCES):
        with pytest.raises(type(error)):
            call(guard, clock, seconds, error)
    call(guard, clock)
