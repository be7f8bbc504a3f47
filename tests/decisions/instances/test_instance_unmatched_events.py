"""Events of an unknown instance: how long they wait for its machine."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from instance_scenes import at, event, hook, spot, state

from domain.instances.event_handover import Handled, Outcome
from domain.instances.event_parser import Events
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.message_acknowledgement import Acknowledgement, Verdict, acknowledge


def handled(of: InstanceEvent, now: datetime, receives: int = 1, *, may_appear: bool = False) -> Acknowledgement:
    unknown = Handled(event=of, outcome=Outcome.UNKNOWN, may_appear=may_appear)
    return acknowledge(Events(events=(of,)), (unknown,), receives, now)


def verdict(of: InstanceEvent, seconds: float = 5, *, may_appear: bool = False) -> tuple[Verdict, str]:
    found = handled(of, at(seconds), may_appear=may_appear)
    return found.verdict, found.reason


ENDS = [state("terminated", 0), state("shutting-down", 0)]
NOTICES = [spot(0), hook(0), hook(0, "launching"), event(EventKind.CAPACITY_RESERVATION, 0)]
OTHERS = [state("running", 0), event(EventKind.REBALANCE, 0), event(EventKind.HEALTH_SCHEDULED, 0)]


@pytest.mark.parametrize("of", [*NOTICES, *ENDS], ids=lambda each: each.event_id)
def test_an_urgent_event_of_an_unknown_instance_waits_for_its_machine(of: InstanceEvent) -> None:
    assert verdict(of) == (Verdict.KEEP, "unknown")
    longest = 7200 if of.kind is EventKind.LAUNCHING else 600
    assert verdict(of, longest - 1) == (Verdict.KEEP, "unknown")
    assert verdict(of, longest) == (Verdict.DELETE, "unmatched")


def test_a_launch_is_received_again_fewer_times_than_make_a_dead_letter() -> None:
    launch, at_, receives = hook(0, "launching"), 0.0, 0
    while True:
        receives += 1
        handling = handled(launch, launch.received_at + timedelta(seconds=at_), receives)
        if handling.verdict is Verdict.DELETE:
            break
        assert handling.delay <= max(timedelta(seconds=30), timedelta(seconds=at_ / 4))
        at_ += handling.delay.total_seconds()
    assert receives < 50


@pytest.mark.parametrize("of", OTHERS)
def test_another_event_of_an_unknown_instance_waits_while_a_machine_has_none(of: InstanceEvent) -> None:
    assert verdict(of) == (Verdict.DELETE, "unmatched")
    assert verdict(of, may_appear=True) == (Verdict.KEEP, "unknown")
    assert verdict(of, 600, may_appear=True) == (Verdict.DELETE, "unmatched")


def test_an_unknown_instance_is_looked_for_after_15_then_30_seconds() -> None:
    assert handled(spot(0), at(5), 1).delay == timedelta(seconds=15)
    assert handled(spot(0), at(5), 2).delay == timedelta(seconds=30)
