"""How many calls one OpenStack project may have in a time, on a clock of the test's own."""

from __future__ import annotations

import pytest
from guarded_calls import Clock, call, refusal

from activities.openstack.call_limits import SAVED_SECONDS, Guard
from domain.loadbalancers.refused_calls import SPENT


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard("project shop", 3, 10, clock=clock)


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
