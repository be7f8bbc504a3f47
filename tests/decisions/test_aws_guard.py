"""What one AWS account may take of a worker, on a clock of the test's own and with real clients that are never sent."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta

import pytest
from botocore.credentials import ReadOnlyCredentials
from guarded_calls import HANG, Clock, call, refusal, silence

from activities.aws.clients import Caller, Clients
from activities.aws.guard import FULL_DELAY, Guard
from activities.guard import PAUSE, SILENCES, SILENT_SECONDS
from engine.errors import ApiError, Denied, Throttled, Unavailable

ACCOUNT = "123456789012"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard(ACCOUNT, 3, clock=clock)


def test_over_the_limit_a_call_is_refused_with_a_delay_and_one_that_ended_makes_room(
    guard: Guard, clock: Clock
) -> None:
    with ExitStack() as under_way:
        for _ in range(3):
            under_way.enter_context(guard.calling())
        refused = refusal(guard, clock)
        assert refused.code == "AccountBusy"
        assert ACCOUNT in refused.message
        assert refused.delay is not None
        assert FULL_DELAY * 0.5 <= refused.delay <= FULL_DELAY * 1.5
    call(guard, clock)


def test_several_silences_in_a_row_stop_all_calls_for_a_while(guard: Guard, clock: Clock) -> None:
    silence(guard, clock, SILENCES - 1)
    call(guard, clock)  # an answer: the count begins anew
    silence(guard, clock)
    refused = refusal(guard, clock)
    assert (refused.code, refused.delay) == ("AccountSilent", PAUSE)
    clock.now += PAUSE.total_seconds() - 1
    assert refusal(guard, clock).delay == timedelta(seconds=1)
    others = refusal(guard, clock).delay
    assert others is not None
    assert timedelta(seconds=1) + guard.tried_delay * 0.5 <= others, "one tries first"


def test_after_the_pause_one_call_tries_whether_there_are_answers_again(guard: Guard, clock: Clock) -> None:
    silence(guard, clock)
    clock.now += PAUSE.total_seconds()
    with guard.calling():
        assert refusal(guard, clock).code == "AccountSilent"
    with guard.calling():  # it was answered: all may call again
        call(guard, clock)


def test_a_trial_without_an_answer_pauses_again(guard: Guard, clock: Clock) -> None:
    silence(guard, clock)
    clock.now += PAUSE.total_seconds()
    silence(guard, clock, 1)
    assert refusal(guard, clock).delay == PAUSE


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (Unavailable("connection reset"), SILENT_SECONDS - 1),  # it breaks at once: nobody's thread is held
        (Denied("AccessDenied"), HANG),
        (Throttled("RequestLimitExceeded"), HANG),
    ],
    ids=["a broken connection", "a late refusal", "a late throttling"],
)
def test_what_is_no_silence_stops_nothing(guard: Guard, clock: Clock, error: ApiError, seconds: float) -> None:
    for _ in range(3 * SILENCES):
        with pytest.raises(type(error)):
            call(guard, clock, seconds, error)
    call(guard, clock)


# --- a caller with a guard ---


class Hanging(Caller):
    """A caller that waits for its credentials until it is let go, and gets none."""

    def __init__(self, most: int) -> None:
        super().__init__(Clients(), ACCOUNT, observing=False)
        self.guard = Guard(ACCOUNT, most)
        self.waiting = threading.Semaphore(0)
        self.free = threading.Event()

    def guarded(self) -> AbstractContextManager[None]:
        return self.guard.calling()

    def credential(self) -> ReadOnlyCredentials:
        self.waiting.release()
        assert self.free.wait(20)
        raise Unavailable("no answer")


def test_an_account_that_hangs_holds_no_more_threads_than_its_limit() -> None:
    caller = Hanging(most=2)
    iam = caller.client("iam", "us-east-1")
    with ThreadPoolExecutor(6) as threads:
        hanging = [threads.submit(iam.list_users) for _ in range(2)]  # type: ignore[attr-defined]
        assert all(caller.waiting.acquire(timeout=10) for _ in hanging)
        others = [threads.submit(iam.list_users) for _ in range(4)]  # type: ignore[attr-defined]
        assert {type(other.exception(10)) for other in others} == {Throttled}
        caller.free.set()
        assert {type(each.exception(10)) for each in hanging} == {Unavailable}
