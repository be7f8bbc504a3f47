"""What is done with a message: deleted, kept, or put among the dead letters."""

from __future__ import annotations

from datetime import timedelta

import pytest
from instance_scenes import at, state

from domain.instances.event_handover import Handled, Outcome
from domain.instances.event_parser import Events
from domain.instances.events import InstanceEvent
from domain.instances.message_acknowledgement import Verdict, acknowledge, back_off
from domain.instances.message_unwrapping import Ignored, Invalid

ONE, OTHER = state("running", 0), state("stopped", 1)
NOW = at(5)


def verdict(*handled: Handled, **parts: tuple[str, ...]) -> tuple[Verdict, str]:
    handling = acknowledge(Events(events=tuple(each.event for each in handled), **parts), handled, 1, NOW)
    return handling.verdict, handling.reason


def came(outcome: Outcome, of: InstanceEvent = ONE, *, may_appear: bool = False) -> Handled:
    return Handled(event=of, outcome=outcome, may_appear=may_appear)


@pytest.mark.parametrize("outcome", [Outcome.APPLIED, Outcome.DUPLICATE, Outcome.STALE, Outcome.FOREIGN])
def test_what_is_done_with_is_deleted(outcome: Outcome) -> None:
    assert verdict(came(outcome)) == (Verdict.DELETE, outcome.value)


def test_what_is_passed_over_is_deleted_and_counted_by_its_reason() -> None:
    handling = acknowledge(Ignored(reason="unknown-type"), (), 1, NOW)
    assert (handling.verdict, handling.counts) == (Verdict.DELETE, ("unknown-type",))


def test_what_cannot_be_read_goes_to_the_dead_letters_at_its_first_receive() -> None:
    handling = acknowledge(Invalid(reason="not JSON"), (), 1, NOW)
    assert (handling.verdict, handling.reason) == (Verdict.DEAD_LETTER, "not JSON")


def test_an_event_that_was_not_handled_keeps_the_message() -> None:
    handling = acknowledge(Events(events=(ONE, OTHER)), (came(Outcome.APPLIED),), 1, NOW)
    assert (handling.verdict, handling.delay) == (Verdict.KEEP, timedelta(seconds=2))


@pytest.mark.parametrize(
    ("receives", "seconds"), [(0, 2), (1, 2), (2, 4), (5, 32), (9, 512), (10, 900), (11, 900), (10_000, 900)]
)
def test_while_a_server_does_not_answer_the_wait_doubles_up_to_a_quarter_of_an_hour(
    receives: int, seconds: int
) -> None:
    assert back_off(receives) == timedelta(seconds=seconds)


def test_the_worst_outcome_of_a_message_decides() -> None:
    assert verdict(came(Outcome.APPLIED), came(Outcome.UNAVAILABLE, OTHER))[0] is Verdict.KEEP
    assert verdict(came(Outcome.APPLIED), came(Outcome.UNKNOWN, OTHER, may_appear=True))[0] is Verdict.KEEP
    assert verdict(came(Outcome.DUPLICATE), came(Outcome.APPLIED, OTHER)) == (Verdict.DELETE, "applied")


def test_a_message_with_an_unreadable_part_is_dead_once_the_others_are_done() -> None:
    assert verdict(came(Outcome.APPLIED), invalid=("not an object",)) == (Verdict.DEAD_LETTER, "not an object")
    assert verdict(came(Outcome.UNAVAILABLE), invalid=("not an object",))[0] is Verdict.KEEP


def test_parts_that_are_passed_over_are_counted_too() -> None:
    handling = acknowledge(Events(events=(ONE,), ignored=("other-service",)), (came(Outcome.APPLIED),), 1, NOW)
    assert handling.counts == ("other-service", "applied")
