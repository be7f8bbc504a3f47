"""Perdure can read the events that the AWS emulator sends, with nothing filled in and nothing lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from domain.instances.event_parser import Events, parse
from domain.instances.events import EventKind, InstanceEvent, InstanceState
from domain.instances.message_unwrapping import Message
from localcloud.aws import happenings
from localcloud.aws.happenings import Group, Happening, Subject

SUBJECT = Subject(account="123456789012", region="eu-central-1", zone="eu-central-1a", instance="i-0a1b2c3d4e5f60718")
GROUP = Group(
    name="c1-mp-0", arn="arn:aws:autoscaling:eu-central-1:123456789012:autoScalingGroup:1:autoScalingGroupName/c1-mp-0"
)
AT = datetime(2026, 5, 4, 10, 11, 12, tzinfo=UTC)


def read(happening: Happening) -> tuple[InstanceEvent, ...]:
    message = Message(
        message_id="m",
        body=json.dumps(happening.envelope("e-1", AT.timestamp() + 0.7)),
        account="123456789012",
        region="eu-central-1",
        received_at=AT,
        sent_at=AT,
    )
    parsed = parse(message)
    assert isinstance(parsed, Events), parsed
    assert not any(event.degraded for event in parsed.events)
    return parsed.events


def one(happening: Happening) -> InstanceEvent:
    (event,) = read(happening)
    assert (event.event_id, event.time, event.instance_id) == ("e-1", AT, SUBJECT.instance)
    return event


@pytest.mark.parametrize("state", list(InstanceState))
def test_a_state_is_read(state: InstanceState) -> None:
    event = one(happenings.state_change(SUBJECT, state.value))
    assert (event.kind, event.state) == (EventKind.STATE, state)


def test_notices_of_spot_are_read() -> None:
    interruption = one(happenings.spot_interruption(SUBJECT, "stop"))
    assert (interruption.kind, interruption.action) == (EventKind.SPOT, "stop")
    assert one(happenings.rebalance(SUBJECT)).kind is EventKind.REBALANCE
    assert one(happenings.capacity_reservation(SUBJECT, "terminate")).kind is EventKind.CAPACITY_RESERVATION


@pytest.mark.parametrize(
    ("transition", "kind"), [("launch", EventKind.LAUNCHING), ("terminate", EventKind.TERMINATING)]
)
def test_a_lifecycle_action_is_read(transition: str, kind: EventKind) -> None:
    event = one(happenings.lifecycle_action(SUBJECT, GROUP, transition, "drain", "token-1", "said"))
    assert event.hook is not None
    assert (event.kind, event.group) == (kind, GROUP.name)
    assert (event.hook.name, event.hook.token, event.hook.metadata) == ("drain", "token-1", "said")
    assert not event.hook.returns_to_warm_pool


@pytest.mark.parametrize(
    ("transition", "failure", "kind"),
    [
        ("launch", "", EventKind.LAUNCH_OK),
        ("launch", "no capacity", EventKind.LAUNCH_FAILED),
        ("terminate", "", EventKind.TERMINATE_OK),
        ("terminate", "still attached", EventKind.TERMINATE_FAILED),
    ],
)
def test_a_result_is_read(transition: str, failure: str, kind: EventKind) -> None:
    at = AT.timestamp()
    event = one(
        happenings.activity_result(SUBJECT, GROUP, transition, began=at, ended=at, cause="asked for", failure=failure)
    )
    assert (event.kind, event.group) == (kind, GROUP.name)
    assert failure in event.detail


def test_an_event_of_health_is_read_for_each_instance() -> None:
    other = SUBJECT.model_copy(update={"instance": "i-0f9e8d7c6b5a40312"})
    start = datetime(2026, 5, 18, 12, tzinfo=UTC)
    happening = happenings.health_event(
        [SUBJECT, other],
        "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED",
        "event-1",
        "c0ffee",
        start=start.timestamp(),
        end=None,
        updated=AT.timestamp(),
        status="upcoming",
        entity_status="PENDING",
    )
    events = read(happening)
    assert [event.instance_id for event in events] == [SUBJECT.instance, other.instance]
    assert {event.kind for event in events} == {EventKind.HEALTH_SCHEDULED}
    for event in events:
        assert event.health is not None
        assert (event.health.start, event.health.status, event.health.communication) == (start, "upcoming", "c0ffee")
