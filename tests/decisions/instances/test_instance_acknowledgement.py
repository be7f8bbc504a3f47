"""What is done with a message: deleted, kept, or put among the dead letters; and where its events go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from instance_scenes import ACCOUNT, GROUP, ID, REGION, at, event, hook, spot, state

from domain.instances.event_delivery import Handled, Outcome, update_id
from domain.instances.event_parser import Events
from domain.instances.event_routing import by_instance, group_of, instance_of, on_host, urgency
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.message_acknowledgement import Verdict, acknowledge, back_off, dead_letter_attributes
from domain.instances.message_unwrapping import Ignored, Invalid
from domain.instances.names import GroupKey, InstanceKey

ONE, OTHER = state("running", 0), state("stopped", 1)
LONG_AGO = at(601)
NOW = at(5)


def verdict(*handled: Handled, receives: int = 1, seconds: float = 5, **parts: tuple[str, ...]) -> tuple[Verdict, str]:
    parsed = Events(events=tuple(each.event for each in handled), **parts)
    handling = acknowledge(parsed, handled, receives, at(seconds))
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


URGENT = [
    spot(0),
    hook(0),
    hook(0, "launching"),
    state("terminated", 0),
    state("shutting-down", 0),
    event(EventKind.CAPACITY_RESERVATION, 0),
]


@pytest.mark.parametrize("of", URGENT, ids=lambda each: each.event_id)
def test_an_urgent_event_of_an_unknown_instance_waits_for_its_machine(of: InstanceEvent) -> None:
    assert verdict(came(Outcome.UNKNOWN, of)) == (Verdict.KEEP, "unknown")
    longest = 7200 if of.kind is EventKind.LAUNCHING else 600
    assert verdict(came(Outcome.UNKNOWN, of), seconds=longest - 1) == (Verdict.KEEP, "unknown")
    assert verdict(came(Outcome.UNKNOWN, of), seconds=longest) == (Verdict.DELETE, "unmatched")


def test_a_launch_is_received_again_fewer_times_than_make_a_dead_letter() -> None:
    launch, at_, receives = hook(0, "launching"), 0.0, 0
    parsed = Events(events=(launch,))
    while True:
        receives += 1
        moment = launch.received_at + timedelta(seconds=at_)
        handling = acknowledge(parsed, (came(Outcome.UNKNOWN, launch),), receives, moment)
        if handling.verdict is Verdict.DELETE:
            break
        assert handling.delay <= max(timedelta(seconds=30), timedelta(seconds=at_ / 4))
        at_ += handling.delay.total_seconds()
    assert receives < 50


@pytest.mark.parametrize("of", [ONE, event(EventKind.REBALANCE, 0), event(EventKind.HEALTH_SCHEDULED, 0)])
def test_another_event_of_an_unknown_instance_waits_while_a_machine_has_none(of: InstanceEvent) -> None:
    assert verdict(came(Outcome.UNKNOWN, of)) == (Verdict.DELETE, "unmatched")
    assert verdict(came(Outcome.UNKNOWN, of, may_appear=True)) == (Verdict.KEEP, "unknown")
    assert verdict(came(Outcome.UNKNOWN, of, may_appear=True), seconds=600) == (Verdict.DELETE, "unmatched")


def test_an_unknown_instance_is_looked_for_after_15_then_30_seconds() -> None:
    parsed, handled = Events(events=(spot(0),)), (came(Outcome.UNKNOWN, spot(0)),)
    assert acknowledge(parsed, handled, 1, NOW).delay == timedelta(seconds=15)
    assert acknowledge(parsed, handled, 2, NOW).delay == timedelta(seconds=30)


def test_a_dead_letter_says_why() -> None:
    reported = dead_letter_attributes("not JSON" * 100, "m-1", "1/r/q")
    assert reported["PERDURE_QUEUE"]["StringValue"] == "1/r/q"
    assert reported["PERDURE_MESSAGE_ID"] == {"DataType": "String", "StringValue": "m-1"}
    assert len(reported["PERDURE_REASON"]["StringValue"]) == 256
    assert "PERDURE_MESSAGE_ID" not in dead_letter_attributes("x", "", "1/r/q"), "SQS refuses empty values"


# --- where events go ---


def test_an_event_goes_to_its_instance_and_wakes_its_group() -> None:
    instance, group = instance_of(hook(0)), group_of(hook(0))
    assert instance is not None
    assert group is not None
    assert instance.workflow_id == f"Ec2Instance/{ACCOUNT}/{REGION}/{ID}"
    assert group.workflow_id == f"AutoScalingGroup/{ACCOUNT}/{REGION}/{GROUP}"
    assert (instance_of(event(EventKind.LAUNCH_FAILED, 0, instance_id="")), group_of(ONE)) == (None, None)


def test_an_event_of_a_host_is_one_of_each_instance_on_it() -> None:
    of_host = event(EventKind.HEALTH_SCHEDULED, 0, instance_id="", host="h-1")
    found = on_host(of_host, {"i-2", "i-1"})
    assert [each.instance_id for each in found] == ["i-1", "i-2"]
    assert len({each.key for each in found}) == 2
    assert on_host(of_host, ()) == ()
    assert on_host(ONE, ()) == (ONE,)


def test_a_batch_is_grouped_by_instance_in_the_order_of_time_the_urgent_first() -> None:
    quiet = [state("stopped", 9, instance_id="i-q"), state("running", 2, instance_id="i-q")]
    health = event(EventKind.HEALTH_SCHEDULED, 0, instance_id="i-h")
    pressing = [state("running", 3, instance_id="i-s"), spot(1, instance_id="i-s")]
    found = by_instance([health, *quiet, quiet[0], *pressing])
    assert [key.instance_id for key in found] == ["i-s", "i-q", "i-h"]
    assert [each.time for each in found[next(iter(found))]] == [at(1), at(3)]
    assert [len(each) for each in found.values()] == [2, 2, 1]
    assert urgency([]) == 2


def test_two_accounts_never_share_an_instance() -> None:
    assert len(by_instance([ONE, state("running", 0, account="999999999999")])) == 2


def test_the_same_events_have_one_update_id_in_any_order_and_another_per_delivery() -> None:
    first, second = state("running", 0), spot(1)
    assert update_id([first, second]) == update_id([second, first, first])
    assert update_id([first]) == first.key
    assert len({update_id([first]), update_id([second]), update_id([first, second]), update_id([first], 2)}) == 4


def test_a_lifecycle_leads_back_to_its_instance_and_its_group() -> None:
    instance = InstanceKey(account=ACCOUNT, region=REGION, instance_id=ID)
    group = GroupKey(account=ACCOUNT, region=REGION, group=GROUP)
    assert InstanceKey.of(instance.lifecycle) == instance
    assert GroupKey.of(group.lifecycle) == group
