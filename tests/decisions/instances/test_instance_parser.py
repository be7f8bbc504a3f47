"""The parser: every type of event, every way they travel, and everything that hostile senders may put into a body."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instance_scenes import (
    ACCOUNT,
    EXAMPLES,
    GROUP,
    ID,
    KEY,
    REGION,
    T0,
    at,
    envelope,
    health,
    health_detail,
    hook_detail,
    message,
    state_change,
)

from domain.instances.event_parser import Events, parse
from domain.instances.event_record import fold, opened
from domain.instances.events import EventKind, InstanceEvent, InstanceState
from domain.instances.message_unwrapping import Ignored, Invalid, message_of

TOKEN = "0befcbdb-6ecd-498a-9ff7-ae9b54447cd6"
EVENT_ID = "0f0e6d1c-8a9b-4a53-9d55-6b6a3a1d0001"


def read(body: Any, **changes: Any) -> tuple[InstanceEvent, ...]:
    parsed = parse(message(body, **changes))
    assert isinstance(parsed, Events), parsed
    return parsed.events


def only(body: Any, **changes: Any) -> InstanceEvent:
    (event,) = read(body, **changes)
    return event


def invalid(body: Any, **changes: Any) -> str:
    parsed = parse(message(body, **changes))
    assert isinstance(parsed, Invalid), parsed
    return parsed.reason


def ignored(body: Any, **changes: Any) -> str:
    parsed = parse(message(body, **changes))
    assert isinstance(parsed, Ignored), parsed
    return parsed.reason


# --- the types of events ---


@pytest.mark.parametrize("state", list(InstanceState))
def test_a_state_change_is_read(state: InstanceState) -> None:
    assert only(state_change(state.value)) == InstanceEvent(
        event_id=EVENT_ID,
        kind=EventKind.STATE,
        account=ACCOUNT,
        region=REGION,
        instance_id=ID,
        time=T0,
        received_at=at(3),
        state=state,
        message_id="m-1",
    )


@pytest.mark.parametrize("action", ["terminate", "stop", "hibernate"])
@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("EC2 Spot Instance Interruption Warning", EventKind.SPOT),
        ("EC2 Capacity Reservation Instance Interruption Warning", EventKind.CAPACITY_RESERVATION),
    ],
)
def test_a_notice_is_read_and_its_irregular_arn_is_not(type_: str, kind: EventKind, action: str) -> None:
    detail = {"instance-id": ID, "instance-action": action}
    event = only(envelope("aws.ec2", type_, detail, resources=[f"arn:aws:ec2:eu-central-1a:instance/{ID}"]))
    assert (event.kind, event.action, event.account, event.region) == (kind, action, ACCOUNT, REGION)


def test_a_recommendation_to_rebalance_is_read() -> None:
    event = only(envelope("aws.ec2", "EC2 Instance Rebalance Recommendation", {"instance-id": ID}))
    assert (event.kind, event.instance_id) == (EventKind.REBALANCE, ID)


@pytest.mark.parametrize(
    ("type_", "transition", "kind"),
    [
        ("EC2 Instance-launch Lifecycle Action", "LAUNCHING", EventKind.LAUNCHING),
        ("EC2 Instance-terminate Lifecycle Action", "TERMINATING", EventKind.TERMINATING),
    ],
)
def test_a_lifecycle_action_is_read(type_: str, transition: str, kind: EventKind) -> None:
    event = only(envelope("aws.autoscaling", type_, hook_detail(transition, Destination="WarmPool")))
    assert (event.kind, event.group, event.instance_id) == (kind, GROUP, ID)
    assert event.hook is not None
    assert (event.hook.name, event.hook.token, event.hook.metadata) == ("drain", TOKEN, "x")
    assert event.hook.transition == transition.lower()
    assert event.hook.returns_to_warm_pool


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        ("EC2 Instance Launch Successful", EventKind.LAUNCH_OK),
        ("EC2 Instance Launch Unsuccessful", EventKind.LAUNCH_FAILED),
        ("EC2 Instance Terminate Successful", EventKind.TERMINATE_OK),
        ("EC2 Instance Terminate Unsuccessful", EventKind.TERMINATE_FAILED),
    ],
)
@pytest.mark.parametrize("instance", [ID, "", None])
def test_a_result_of_auto_scaling_is_read_even_without_an_instance(type_: str, kind: EventKind, instance: Any) -> None:
    detail = {
        "StatusCode": "InProgress",
        "StatusMessage": "no capacity",
        "AutoScalingGroupName": GROUP,
        "Details": {"Availability Zone": "eu-central-1a"},
        "EC2InstanceId": instance,
    }
    event = only(envelope("aws.autoscaling", type_, detail))
    assert (event.kind, event.group, event.instance_id) == (kind, GROUP, instance or "")
    assert event.detail == "no capacity"


def test_a_health_event_is_read() -> None:
    event = only(health())
    assert (event.kind, event.instance_id) == (EventKind.HEALTH_SCHEDULED, ID)
    assert event.health is not None
    assert event.health.start == datetime(2026, 5, 18, 12, tzinfo=UTC)
    assert event.health.updated == datetime(2026, 5, 4, 6, tzinfo=UTC)
    assert (event.health.communication, event.health.status, event.health.entity_status) == (
        "01b0aaf09a",
        "upcoming",
        "PENDING",
    )
    assert event.degraded == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sat, 05 Jun 2016 15:10:09 GMT", datetime(2016, 6, 5, 15, 10, 9, tzinfo=UTC)),  # the weekday is wrong
        ("Sun, 5 Jun 2016 15:10:09 GMT", datetime(2016, 6, 5, 15, 10, 9, tzinfo=UTC)),
        ("2016-06-05T15:10:09Z", datetime(2016, 6, 5, 15, 10, 9, tzinfo=UTC)),
        ("2016-06-05T15:10:09.123+02:00", datetime(2016, 6, 5, 13, 10, 9, 123000, tzinfo=UTC)),
        ("soon", None),
        (17, None),
        ("Sat, 05 Jun 99999 15:10:09 GMT", None),
        ("9999-12-31T12:00:00Z", None),  # nothing can be added to it
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_dates_of_health_come_in_many_spellings(text: Any, expected: datetime | None) -> None:
    event = only(health(startTime=text, endTime=text))
    assert event.health is not None
    assert (event.health.start, event.health.end) == (expected, expected)
    assert event.degraded == (() if expected else ("end", "start"))


def test_an_empty_end_is_no_end() -> None:
    event = only(health(endTime=""))
    assert event.health is not None
    assert event.health.end is None
    assert event.degraded == ()


@pytest.mark.parametrize(
    ("code", "category", "kind"),
    [
        ("AWS_EC2_INSTANCE_RETIREMENT_EXPEDITED", "scheduledChange", EventKind.HEALTH_SCHEDULED),
        ("AWS_EC2_SOMETHING_NEW_SCHEDULED", "scheduledChange", EventKind.HEALTH_SCHEDULED),
        ("AWS_EC2_OPERATIONAL_ISSUE", "issue", EventKind.HEALTH_OTHER),
        ("AWS_EC2_INSTANCE_STOP_SCHEDULED", "accountNotification", EventKind.HEALTH_OTHER),
    ],
)
def test_only_dated_changes_are_scheduled(code: str, category: str, kind: EventKind) -> None:
    assert only(health(eventTypeCode=code, eventTypeCategory=category)).kind is kind


# --- the ways they travel, as numbered in the parser's contract ---


def sns(text: Any, **changes: Any) -> dict[str, Any]:
    return {"Type": "Notification", "MessageId": "n", "TopicArn": "arn:aws:sns:x:1:t", "Message": text, **changes}


def test_sns_wraps_the_envelope_as_text() -> None:
    plain = only(state_change())
    wrapped = only(sns(json.dumps(state_change())))
    assert wrapped == plain.model_copy(update={"topic": "arn:aws:sns:x:1:t"})
    assert only(sns(json.dumps(sns(json.dumps(state_change()))))) == wrapped
    assert only(sns(json.dumps(state_change()), TopicArn=7)) == plain


def test_what_is_wrapped_three_times_is_not_opened() -> None:
    assert invalid(sns(json.dumps(sns(json.dumps(sns(json.dumps(state_change()))))))) == "wrapped too often"


@pytest.mark.parametrize("text", [None, 7, {}, "{", "7"])
def test_what_sns_wraps_has_to_be_an_object(text: Any) -> None:
    assert invalid(sns(text))


@pytest.mark.parametrize("type_", ["SubscriptionConfirmation", "UnsubscribeConfirmation"])
def test_a_confirmation_is_passed_over(type_: str) -> None:
    assert ignored({"Type": type_, "SubscribeURL": "https://evil.example"}) == "sns-confirmation"


def test_auto_scaling_sends_hooks_by_itself() -> None:
    extra = {
        "RequestId": "r-1",
        "Time": "2026-05-04T10:00:00.123Z",
        "Service": "AWS Auto Scaling",
        "AccountId": ACCOUNT,
    }
    event = only(hook_detail() | extra)
    assert (event.kind, event.event_id, event.time) == (EventKind.TERMINATING, f"r-1.{TOKEN}", T0)
    assert (event.account, event.region, event.degraded) == (ACCOUNT, REGION, ())


def test_the_test_message_of_auto_scaling_is_passed_over() -> None:
    assert ignored({"Event": "autoscaling:TEST_NOTIFICATION", "AccountId": ACCOUNT}) == "autoscaling-test"
    assert ignored({"LifecycleTransition": "autoscaling:TEST_NOTIFICATION"}) == "autoscaling-test"
    inside = envelope(
        "aws.autoscaling", "EC2 Instance-launch Lifecycle Action", {"Event": "autoscaling:TEST_NOTIFICATION"}
    )
    assert ignored(inside) == "autoscaling-test"


def test_a_bare_detail_is_a_state_change() -> None:
    event = only({"instance-id": ID, "state": "stopped"})
    assert (event.event_id, event.time, event.state) == ("m-1", at(3), InstanceState.STOPPED)
    assert event.degraded == ("account", "envelope", "id", "region", "time")


@pytest.mark.parametrize("wrap", [lambda one: {"Records": [{"body": json.dumps(each)} for each in one]}, list])
def test_batches_are_taken_apart(wrap: Any) -> None:
    events = read(wrap([state_change("running", "i-1", id="a"), state_change("stopped", "i-2", id="b")]))
    assert [event.key for event in events] == ["a/i-1", "b/i-2"]


def test_parts_without_ids_have_ids_of_their_own() -> None:
    events = read([state_change("running", id=...), state_change("stopped", id=...)])
    assert [event.event_id for event in events] == ["m-1.0", "m-1.1"]


def test_an_unreadable_part_hides_no_other() -> None:
    parsed = parse(message([state_change("no state"), state_change(), {"Type": "SubscriptionConfirmation"}, 7]))
    assert isinstance(parsed, Events)
    assert len(parsed.events) == 1
    assert parsed.invalid == ("state is not one of EC2's six", "not an object")
    assert parsed.ignored == ("sns-confirmation",)


def test_the_same_event_has_the_same_key() -> None:
    assert only(state_change(), message_id="m-1").key == only(state_change(), message_id="m-2").key


def test_pages_and_backup_copies_of_health_have_one_key() -> None:
    pages = [
        health(communicationId=f"01b0-{page}", page=str(page), backupEvent=copy) | {"id": f"e{page}{copy}"}
        for page, copy in ((1, "false"), (2, "false"), (1, "true"))
    ]
    backup = health(communicationId="01b0", backupEvent="true") | {"id": "other"}
    assert {only(each).key for each in [*pages, backup]} == {f"health/{ACCOUNT}/01b0/{ID}/20260518T120000"}


@pytest.mark.parametrize(
    "change",
    [
        {"startTime": "Tue, 19 May 2026 12:00:00 GMT"},
        {"endTime": "Mon, 18 May 2026 14:00:00 GMT"},
        {"statusCode": "closed"},
        {"affectedEntities": [{"entityValue": ID, "status": "RESOLVED"}]},
    ],
)
def test_what_moves_or_withdraws_it_is_news_even_in_the_same_communication(change: dict[str, Any]) -> None:
    assert only(health(**change)).key != only(health()).key


def test_health_speaks_of_the_account_and_region_affected() -> None:
    event = only(health(affectedAccount="999999999999", eventRegion="us-east-1"))
    assert (event.account, event.region) == ("999999999999", "us-east-1")
    assert event.key.startswith("health/999999999999/")


def test_an_entity_speaks_of_its_own_account() -> None:
    entities = [{"entityValue": "i-1", "awsAccountId": "999999999999"}, {"entityValue": "i-2", "awsAccountId": "none"}]
    found = read(health(affectedEntities=entities))
    assert [(event.instance_id, event.account) for event in found] == [("i-1", "999999999999"), ("i-2", ACCOUNT)]


@pytest.mark.parametrize(
    ("source", "type_", "reason"),
    [
        ("aws.ec2", "AWS API Call via CloudTrail", "unknown-type"),
        ("aws.autoscaling", "EC2 Auto Scaling Instance Refresh Started", "unknown-type"),
        ("aws.events", "Scheduled Event", "unknown-source"),
        ("my.app", "EC2 Instance State-change Notification", "unknown-source"),
    ],
)
def test_what_is_not_known_is_passed_over_by_a_bounded_reason(source: str, type_: str, reason: str) -> None:
    assert ignored(envelope(source, type_, {"instance-id": ID, "state": "running"})) == reason


@pytest.mark.parametrize("detail", [..., None, [], 7, "text", '"text"', "{", "[]"])
def test_a_detail_that_is_no_object_is_invalid(detail: Any) -> None:
    assert invalid(state_change(detail=detail)) == "detail is not an object"


def test_a_detail_may_be_the_text_of_an_object() -> None:
    assert only(state_change(detail=json.dumps({"instance-id": ID, "state": "running"}))).state is InstanceState.RUNNING


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("", "state is missing"),
        (None, "state is missing"),
        (7, "state is missing"),
        ("run", "state is not one of EC2's six"),
        ("running ", "state is not one of EC2's six"),
    ],
)
def test_a_state_is_one_of_six(state: Any, reason: str) -> None:
    assert invalid(state_change(state)) == reason


def test_a_state_may_be_shouted() -> None:
    assert only(state_change("Shutting-Down")).state is InstanceState.SHUTTING_DOWN


@pytest.mark.parametrize("instance", ["", None, 7, [], "i 1", "i-1/../i-2", "i-\n", "x" * 65, "i-\u00fc", "\ud800"])
def test_an_instance_has_a_usable_id(instance: Any) -> None:
    assert invalid(state_change("running", instance)) == "instance-id is not an instance id"


def test_an_envelope_may_have_three_fields_only() -> None:
    body = {name: state_change()[name] for name in ("source", "detail-type", "detail")}
    event = only(body)
    assert (event.event_id, event.account, event.region, event.time) == ("m-1", ACCOUNT, REGION, at(3))
    assert event.degraded == ("account", "id", "region", "time")


def test_the_last_substitute_of_an_id_is_the_body() -> None:
    one, other = (only(state_change(state, id=...), message_id="") for state in ("running", "stopped"))
    assert one.event_id != other.event_id
    assert one == only(state_change("running", id=...), message_id="")


@pytest.mark.parametrize(
    "body",
    [state_change(account="999999999999"), hook_detail(AccountId="999999999999", source=...)],
    ids=["through EventBridge", "sent by Auto Scaling itself"],
)
def test_an_event_of_another_account_than_its_queue_is_foreign(body: dict[str, Any]) -> None:
    assert ignored(body) == "foreign"
    assert only(body, others=frozenset({"999999999999"})).account == "999999999999", "the queue is shared"
    assert ignored(body, others=frozenset({"888888888888"})) == "foreign", "it is shared with others"


@pytest.mark.parametrize("field", ["account", "region"])
@pytest.mark.parametrize("value", [7, "1234567890A", "eu central", "a/b", [], "\u0661" * 12])
def test_an_invalid_account_or_region_is_not_replaced(field: str, value: Any) -> None:
    assert invalid(state_change(**{field: value})) == f"{field} is not valid"


@pytest.mark.parametrize("time", ["yesterday", 7, None, "", "2026-05-04T10:06:00Z", "2026-04-01T00:00:00Z", "9" * 100])
def test_a_time_that_cannot_be_is_the_transports(time: Any) -> None:
    event = only(state_change(time=time))
    assert (event.time, event.degraded) == (at(3), ("time",))


@pytest.mark.parametrize("updated", ["Fri, 31 Dec 8999 12:00:00 GMT", "2026-05-04T10:05:06Z"])
def test_an_update_from_the_future_does_not_stand_against_later_ones(updated: str) -> None:
    first = only(health(lastUpdatedTime=updated))
    assert first.health is not None
    assert (first.health.updated, first.degraded) == (None, ("updated",))
    closed = only(health(statusCode="closed", lastUpdatedTime="2026-05-04T10:01:00Z", time="2026-05-04T10:01:00Z"))
    known = fold(fold(opened(KEY, T0), first), closed)
    assert [each.notice.status for each in known.planned.values()] == ["closed"]


def test_a_time_within_what_clocks_differ_by_is_believed() -> None:
    assert only(state_change(time="2026-05-04T10:04:00Z")).time == at(240)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "not JSON"),
        ("<html></html>", "not JSON"),
        ("null", "not an object"),
        ('"text"', "not an object"),
        ("7", "not an object"),
        ("[]", "an empty batch"),
        ("{}", "source is missing"),
        ('{"Records": []}', "an empty batch"),
    ],
)
def test_what_is_no_event_is_invalid(body: str, reason: str) -> None:
    assert invalid(body) == reason


def test_a_byte_order_mark_is_passed_over() -> None:
    assert only("\ufeff" + json.dumps(state_change())) == only(state_change())


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ('{"a":' * 100_000, "nested too deep"),
        ('{"source": ' + "9" * 5000 + "}", "a number too long"),
        ('{"source": NaN}', "NaN is not a number"),
        ('{"source": -Infinity}', "-Infinity is not a number"),
        ("[[[[" + json.dumps(state_change()) + "]]]]", "wrapped too often"),
        ("[" + "7," * 1001 + "7]", "a batch too large"),
    ],
)
def test_hostile_json_ends_in_a_named_reason(body: str, reason: str) -> None:
    assert invalid(body) == reason


def test_lone_surrogates_reach_nobody() -> None:
    detail = hook_detail(NotificationMetadata="a\ud800b", Origin="\udfff")
    event = only(envelope("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", detail, id="\ud800"))
    assert event.hook is not None
    assert event.hook.metadata == "a?b"
    assert event.model_dump_json().encode()
    assert only('{"instance-id": "i-1", "state": "running", "x": "\ud800"}').instance_id == "i-1"


def test_of_a_doubled_key_the_last_counts() -> None:
    assert only('{"instance-id": "i-1", "state": "running", "state": "stopped"}').state is InstanceState.STOPPED


def test_a_body_larger_than_sqs_carries_is_not_read() -> None:
    assert invalid(json.dumps(state_change()) + " " * (1 << 20)) == "too large"
    assert invalid('"' + "\u00fc" * (1 << 19) + '"') == "too large"


def test_the_canonical_event_is_small() -> None:
    long = "\U0001f600" * 1000
    detail = hook_detail(
        AutoScalingGroupName="\u00fc" * 256,
        LifecycleHookName="h" * 256,
        LifecycleActionToken="t" * 128,
        EC2InstanceId="i" * 64,
        NotificationMetadata=long,
        Origin=long,
        Destination=long,
    )
    whole = envelope("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", detail, id="e" * 128)
    biggest = only(sns(json.dumps(whole), TopicArn="t" * 500), message_id="m" * 128)
    assert len(biggest.model_dump_json().encode()) <= 2048
    reported = only(health(eventArn=long, communicationId="c" * 200, statusCode=long, eventTypeCode="C" * 256))
    assert len(reported.model_dump_json().encode()) <= 2048


@pytest.mark.parametrize("instance", ["i-abcd1111", "i-0a1b2c3d4e5f60718", "fake_7", "x" * 64])
def test_ids_of_any_shape_are_taken(instance: str) -> None:
    assert only(state_change("running", instance)).instance_id == instance


def test_a_message_keeps_its_attributes() -> None:
    received = {
        "Body": json.dumps(state_change()),
        "MessageId": "m-9",
        "ReceiptHandle": "r",
        "Attributes": {"SentTimestamp": "1777888803000", "ApproximateReceiveCount": "3"},
        "MessageAttributes": {
            "ERROR_CODE": {"StringValue": "NO_PERMISSIONS", "DataType": "String"},
            "B": {"BinaryValue": b"x", "DataType": "Binary"},
        },
    }
    taken = message_of(received, ACCOUNT, REGION, at(9))
    assert (taken.sent_at, taken.receives, taken.receipt_handle) == (at(3), 3, "r")
    assert taken.attributes == {"ERROR_CODE": "NO_PERMISSIONS"}
    assert isinstance(parse(taken), Events)


def test_unknown_fields_are_passed_over() -> None:
    assert only(state_change() | {"replay-name": "r", "ingestion-time": "t"}) == only(state_change())


def entity(value: Any, status: str = "PENDING") -> dict[str, Any]:
    return {"entityValue": value, "status": status}


def test_each_instance_of_a_health_event_is_an_event() -> None:
    entities = [
        entity("i-1"),
        entity("vol-1"),
        entity(f"arn:aws-cn:ec2:cn-north-1:{ACCOUNT}:instance/i-2"),
        entity("arn:aws:ec2:eu-central-1a:instance/i-3"),
        entity("arn:aws:ec2:eu-central-1a:volume/vol-2"),
        entity("i-1"),
    ]
    events = read(health(affectedEntities=[*entities, 7, entity(7)]))
    assert [event.instance_id for event in events] == ["i-1", "i-2", "i-3"]
    assert len(read(health(affectedEntities=[entity(f"i-{number}") for number in range(3000)]))) == 3000


def test_what_is_no_instance_is_counted() -> None:
    parsed = parse(message(health(affectedEntities=[entity("i-1"), entity("vol-1"), entity("subnet-1")])))
    assert isinstance(parsed, Events)
    assert parsed.ignored == ("other-entity", "other-entity")


def test_a_host_is_an_event_of_its_own() -> None:
    hosts = [entity("h-1"), entity(f"arn:aws:ec2:{REGION}:{ACCOUNT}:dedicated-host/h-2")]
    found = read(health(affectedEntities=hosts))
    assert [(event.host, event.instance_id) for event in found] == [("h-1", ""), ("h-2", "")]


@pytest.mark.parametrize("entities", [[], ..., None, "text", [entity("vol-1")]])
def test_a_health_event_without_instances_is_passed_over(entities: Any) -> None:
    body = envelope("aws.health", "AWS Health Event", health_detail(affectedEntities=entities), resources=[])
    assert ignored(body) == "no-instance"


def test_without_entities_the_envelopes_resources_count() -> None:
    assert only(health(affectedEntities=...)).instance_id == ID


def test_a_health_event_of_another_service_is_passed_over() -> None:
    assert ignored(health(service="RDS")) == "other-service"


@pytest.mark.parametrize("field", ["AutoScalingGroupName", "LifecycleHookName", "LifecycleActionToken"])
@pytest.mark.parametrize("value", [..., "", 7, "a\nb", "x" * 600])
def test_names_that_calls_are_made_with_are_taken_whole_or_not_at_all(field: str, value: Any) -> None:
    detail = hook_detail(**{field: value})
    assert field in invalid(envelope("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", detail))


def test_an_action_that_is_not_known_is_invalid() -> None:
    detail = {"instance-id": ID, "instance-action": "explode"}
    assert "instance-action" in invalid(envelope("aws.ec2", "EC2 Spot Instance Interruption Warning", detail))
    transition = hook_detail(LifecycleTransition="autoscaling:EC2_INSTANCE_FLYING")
    assert "LifecycleTransition" in invalid(
        envelope("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", transition)
    )


# --- nothing raises ---

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
WORDS = [
    "source",
    "detail-type",
    "detail",
    "Records",
    "body",
    "Message",
    "Type",
    "id",
    "time",
    "account",
    "region",
    "resources",
    "LifecycleTransition",
    "instance-id",
    "state",
    "instance-action",
    "Event",
]
VALUES = [
    "aws.ec2",
    "aws.autoscaling",
    "aws.health",
    "EC2 Instance State-change Notification",
    "AWS Health Event",
    "Notification",
    "running",
    ID,
    "EC2 Instance-terminate Lifecycle Action",
    T0.isoformat(),
]
SHAPES = [
    state_change(),
    health(),
    envelope("aws.autoscaling", "EC2 Instance-terminate Lifecycle Action", hook_detail()),
]


@EXAMPLES
@given(st.text() | JSON.map(json.dumps) | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_no_text_raises(body: str) -> None:
    assert isinstance(parse(message(body)), Events | Ignored | Invalid)


@EXAMPLES
@given(st.dictionaries(st.sampled_from(WORDS), st.sampled_from(VALUES) | JSON))
def test_nothing_that_looks_like_an_event_raises(body: dict[str, Any]) -> None:
    assert isinstance(parse(message(body)), Events | Ignored | Invalid)


@EXAMPLES
@given(st.sampled_from(SHAPES), st.data())
def test_no_event_with_one_field_replaced_raises(shape: dict[str, Any], data: st.DataObject) -> None:
    outer = data.draw(st.booleans())
    target = shape if outer else shape["detail"]
    changed = target | {data.draw(st.sampled_from(sorted(target))): data.draw(JSON)}
    parsed = parse(message(changed if outer else shape | {"detail": changed}))
    assert isinstance(parsed, Events | Ignored | Invalid)
    if isinstance(parsed, Events):
        assert all(len(event.model_dump_json().encode()) <= 2048 for event in parsed.events)
        assert all(event.time <= at(5) + timedelta(minutes=5) for event in parsed.events)
