"""How long an initialisation waits before it terminates its instance."""

from __future__ import annotations

import pytest

from activities.aws.boot_times import LONGEST_UNKNOWN_SECONDS, LONGEST_WAIT_SECONDS, BootTimes, Unknown

REGION, OTHER = "eu-west-1", "us-east-1"


def test_one_launch_is_described_and_the_others_wait_for_it() -> None:
    boots = BootTimes()
    assert boots.wait(REGION, 100, 100) is Unknown.DESCRIBE
    assert boots.wait(REGION, 100, 101) is Unknown.ASK_AGAIN
    assert boots.wait(OTHER, 101, 101) is Unknown.ASK_AGAIN
    boots.described(REGION, 4)
    assert boots.wait(REGION, 100, 104) == pytest.approx(5)
    assert boots.wait(OTHER, 101, 104) == pytest.approx(5)


def test_the_next_launch_is_described_if_the_first_does_not_run() -> None:
    boots = BootTimes()
    assert boots.wait(REGION, 100, 100) is Unknown.DESCRIBE
    boots.described(REGION, None)
    assert boots.wait(OTHER, 101, 101) is Unknown.DESCRIBE


def test_a_launch_is_described_if_that_of_another_one_takes_long() -> None:
    boots = BootTimes()
    assert boots.wait(REGION, 100, 100) is Unknown.DESCRIBE
    assert boots.wait(OTHER, 101, 101 + LONGEST_UNKNOWN_SECONDS) is Unknown.DESCRIBE
    assert boots.wait(OTHER, 102, 101 + LONGEST_UNKNOWN_SECONDS) is Unknown.ASK_AGAIN


def test_a_description_that_finds_nothing_keeps_what_is_known() -> None:
    boots = BootTimes()
    boots.described(REGION, 4)
    boots.described(REGION, None)
    assert boots.wait(REGION, 0, 0) == pytest.approx(5)


def test_a_region_without_a_time_of_its_own_waits_as_long_as_the_slowest() -> None:
    boots = BootTimes()
    boots.described("a", 2)
    boots.described("b", 8)
    assert boots.wait(REGION, 0, 0) == pytest.approx(10)
    boots.described(REGION, 4)
    assert boots.wait(REGION, 0, 0) == pytest.approx(5)


@pytest.mark.parametrize(
    ("known", "terminated_after", "then"),
    [
        pytest.param(4, 5, 10, id="twice as long"),
        pytest.param(None, 0, 2, id="two seconds at least"),
        pytest.param(40, 5, 50, id="never shorter than before"),
    ],
)
def test_an_instance_terminated_before_it_ran_gives_the_next_one_more_time(
    known: float | None, terminated_after: float, then: float
) -> None:
    boots = BootTimes()
    boots.described(REGION, known)
    boots.terminated_early(REGION, terminated_after)
    assert boots.wait(REGION, 0, 0) == pytest.approx(then)


def test_instances_that_take_long_are_described() -> None:
    boots = BootTimes()
    boots.described(REGION, LONGEST_WAIT_SECONDS)
    assert boots.wait(REGION, 0, 0) is Unknown.DESCRIBE
    boots.described(REGION, 4)
    assert boots.wait(REGION, 0, 0) == pytest.approx(5)
