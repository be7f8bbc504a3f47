"""Scheduled events that no message told of, known from EC2's own list."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from instance_scenes import at, facts, machine, record, scheduled, state

from domain.instances.constants import INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.event_record import InstanceRecord, fold
from domain.instances.event_verification import Question, ScheduledEvent
from domain.instances.interruption_causes import nearest_end
from domain.instances.machine_labels import interruption_label, label_patch
from domain.instances.periodic_resync import differs, missed_events

DATE = at(90_000)


def listed(seconds: float, *codes: str, **changes: Any) -> InstanceRecord:
    return with_scheduled(record(), seconds, *codes, **changes)


def with_scheduled(known: InstanceRecord, seconds: float, *codes: str, **changes: Any) -> InstanceRecord:
    whole = {"not_before": DATE} | changes
    events = tuple(ScheduledEvent(id=f"instance-event-{code}", code=code, **whole) for code in codes)
    for event in missed_events(known, facts(seconds, scheduled=events)):
        known = fold(known, event)
    return known


@pytest.mark.parametrize(
    ("code", "label"),
    [
        ("instance-retirement", "scheduled-retirement"),
        ("instance-stop", "scheduled-stop"),
        ("instance-reboot", "scheduled-reboot"),
        ("system-reboot", "scheduled-reboot"),
        ("system-maintenance", "scheduled-maintenance"),
        ("something-new", ""),
    ],
)
def test_what_ec2_lists_is_known_though_no_event_came(code: str, label: str) -> None:
    assert interruption_label(listed(10, code), at(11)) == label


def test_what_is_known_already_makes_no_event() -> None:
    known = listed(10, "instance-stop")
    assert with_scheduled(known, 600, "instance-stop") == known


def test_what_ec2_lists_no_more_is_withdrawn() -> None:
    known = listed(10, "instance-stop")
    assert interruption_label(with_scheduled(known, 600), at(601)) == ""
    assert interruption_label(with_scheduled(known, 600, "instance-stop", description="[Canceled] x"), at(601)) == ""
    assert with_scheduled(with_scheduled(known, 600), 900) == with_scheduled(known, 600)
    assert (
        interruption_label(with_scheduled(with_scheduled(known, 600), 900, "instance-stop"), at(901))
        == "scheduled-stop"
    )


def test_what_ec2_moves_is_moved() -> None:
    known = with_scheduled(listed(10, "instance-stop"), 600, "instance-stop", not_before=at(500_000))
    (planned,) = known.planned.values()
    assert planned.notice.start == at(500_000)


@pytest.mark.parametrize("by_health", [True, False])
def test_a_stop_and_a_start_end_what_was_planned_unless_ec2_lists_it_still(by_health: bool) -> None:
    known = record(scheduled(5, DATE)) if by_health else listed(10, "instance-stop")
    stopped = fold(known, state("stopped", 100))
    assert interruption_label(stopped, at(110)) == "scheduled-stop"
    restarted = fold(stopped, state("running", 200))
    assert interruption_label(restarted, at(210)) == ""
    assert nearest_end(restarted, at(210)) is None
    assert interruption_label(with_scheduled(restarted, 600), at(610)) == ""
    still = with_scheduled(restarted, 600, "instance-stop")
    assert interruption_label(still, at(610)) == "scheduled-stop"
    assert with_scheduled(still, 900, "instance-stop") == still
    assert interruption_label(with_scheduled(still, 900), at(910)) == ""


def test_what_health_told_of_is_left_to_health() -> None:
    known = record(scheduled(5, DATE))
    assert with_scheduled(known, 10, "instance-stop") == known
    assert len(with_scheduled(known, 10, "instance-stop", "system-reboot").planned) == 2


@pytest.mark.parametrize(
    ("code", "listed_as", "label"),
    [
        ("instance-stop", {"description": "[Canceled] x"}, ""),
        ("instance-stop", {"description": "[Completed] x", "not_before": DATE + timedelta(minutes=3)}, ""),
        # Of another date, of another kind, still to come: it is Health's to say.
        ("instance-stop", {"description": "[Canceled] x", "not_before": DATE - timedelta(days=3)}, "scheduled-stop"),
        ("instance-stop", {"description": "[Canceled] x", "not_before": None}, "scheduled-stop"),
        ("system-reboot", {"description": "[Canceled] x"}, "scheduled-stop"),
        ("instance-stop", {}, "scheduled-stop"),
    ],
)
def test_what_health_told_of_is_withdrawn_once_ec2_lists_it_as_over(
    code: str, listed_as: dict[str, Any], label: str
) -> None:
    known = record(scheduled(5, DATE))
    assert interruption_label(known, at(6)) == "scheduled-stop"
    assert interruption_label(with_scheduled(known, 600, code, **listed_as), at(601)) == label


def test_what_health_told_of_is_moved_once_ec2_lists_it_for_another_day_only() -> None:
    moved = DATE + timedelta(days=7)
    known = with_scheduled(record(scheduled(5, DATE)), 600, "instance-stop", not_before=moved)
    assert (interruption_label(known, at(601)), nearest_end(known, at(601))) == ("scheduled-stop", moved)
    shown = machine(
        labels={STATE_LABEL: "running", INTERRUPTION_LABEL: "scheduled-stop"},
        annotations=label_patch(machine(), known, at(601))["metadata"]["annotations"],  # type: ignore[index]
    )
    event = ScheduledEvent(id="instance-event-instance-stop", code="instance-stop", not_before=moved)
    assert not differs(shown, facts(700, scheduled=(event,)))
    assert with_scheduled(known, 900, "instance-stop", not_before=moved) == known


@pytest.mark.parametrize("start", [DATE, None])
def test_what_health_told_of_stands_while_ec2_lists_one_for_that_day_or_none(start: datetime | None) -> None:
    known = record(scheduled(5, start))
    assert with_scheduled(known, 600, "instance-stop", not_before=None) == known
    events = tuple(
        ScheduledEvent(id=f"e-{days}", code="instance-stop", not_before=DATE + timedelta(days=days)) for days in (0, 7)
    )
    answer = [each.health.arn for each in missed_events(known, facts(600, scheduled=events)) if each.health]
    assert answer == (["ec2:e-7"] if start else [])


def test_what_is_over_and_planned_anew_for_the_same_day_stands() -> None:
    known = record(scheduled(5, DATE))
    events = (
        ScheduledEvent(id="e-1", code="instance-stop", not_before=DATE, description="[Canceled] x"),
        ScheduledEvent(id="e-2", code="instance-stop", not_before=DATE),
    )
    assert missed_events(known, facts(600, scheduled=events)) == ()


def test_nothing_follows_from_what_was_not_asked() -> None:
    known = listed(10, "instance-stop")
    assert missed_events(known, facts(600, asked=(Question.INSTANCE,))) == ()
    assert missed_events(known, facts(600, found=False)) == ()
