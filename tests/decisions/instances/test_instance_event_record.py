"""What events come to, in whatever order they arrive and however often."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from instance_scenes import EXAMPLES, GROUP, at, event, facts, hook, observed, record, scheduled, spot, state

from domain.instances.ec2_answers import answered, is_absent
from domain.instances.event_handover import Outcome
from domain.instances.event_record import (
    InstanceRecord,
    fold,
    hear,
    heartbeat_sent,
    hook_ended,
    hooks_confirmed,
    refuted,
)
from domain.instances.event_verification import Facts
from domain.instances.events import EventKind, InstanceEvent, InstanceState
from domain.instances.machine_labels import interruption_label

P, R, STOPPING, STOPPED, SHUTTING, TERMINATED = InstanceState
STORY = [P, R, STOPPING, STOPPED, P, R, SHUTTING, TERMINATED]


def fresh(*events: InstanceEvent) -> InstanceRecord:
    return record(*events, live_at=None)


def lived(known: InstanceRecord) -> dict[str, object]:
    """What is known, but for in which order it came to be known."""
    return known.model_dump(exclude={"seen", "ask_at", "only_to_check"}) | {"seen": sorted(known.seen)}


@pytest.mark.parametrize("length", range(1, len(STORY) + 1))
def test_a_story_ends_in_its_last_state(length: int) -> None:
    story = [state(each, seconds) for seconds, each in enumerate(STORY[:length])]
    assert fresh(*story).state is STORY[length - 1]
    assert fresh(*reversed(story)).state is STORY[length - 1]


@EXAMPLES
@given(st.integers(1, len(STORY)).flatmap(lambda length: st.permutations(range(length))))
def test_the_order_of_arrival_plays_no_part(order: list[int]) -> None:
    reported = fresh(*(state(STORY[index], index) for index in order))
    assert reported.state is STORY[len(order) - 1]
    assert lived(reported) == lived(fresh(*(state(STORY[index], index) for index in range(len(order)))))


MIXED = [
    state(P, 0),
    state(R, 5),
    state(STOPPED, 20),
    state(R, 40),
    state(SHUTTING, 60),
    spot(7),
    spot(9, "stop"),
    event(EventKind.REBALANCE, 6),
    hook(50),
    hook(51),
    hook(52, token="t-2"),
    hook(3, "launching", token="t-3"),
    scheduled(10, at(5000)),
    scheduled(11, at(9000)),
    scheduled(11, at(9000), status="closed", communication="c11x"),
    scheduled(12, at(9000), arn="arn:other"),
    event(EventKind.LAUNCH_OK, 5),
    event(EventKind.HEALTH_OTHER, 8),
]


@EXAMPLES
@given(st.permutations(MIXED), st.lists(st.sampled_from(MIXED), max_size=8))
def test_all_kinds_of_events_commute_and_count_once(order: list[InstanceEvent], again: list[InstanceEvent]) -> None:
    assert lived(fresh(*order, *again)) == lived(fresh(*MIXED))


@EXAMPLES
@given(st.lists(st.sampled_from(MIXED), min_size=1, max_size=12))
def test_a_doubled_event_changes_nothing(events: list[InstanceEvent]) -> None:
    known = record(*events)
    for each in events:
        assert hear(known, each) == (known, Outcome.DUPLICATE)


@EXAMPLES
@given(st.lists(st.tuples(st.sampled_from(list(InstanceState)), st.integers(0, 5)), min_size=1, max_size=6), st.data())
def test_the_order_plays_no_part_within_a_second_either(
    moves: list[tuple[InstanceState, int]], data: st.DataObject
) -> None:
    events = [state(value, second, id_=f"e{index}") for index, (value, second) in enumerate(moves)]
    assert fresh(*data.draw(st.permutations(events))).state is fresh(*events).state


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (P, R, R),
        (STOPPING, STOPPED, STOPPED),
        (SHUTTING, TERMINATED, TERMINATED),
        (R, SHUTTING, SHUTTING),
        (R, STOPPED, STOPPED),
    ],
)
def test_within_one_second_the_higher_rank_came_later(
    first: InstanceState, second: InstanceState, expected: InstanceState
) -> None:
    assert fresh(state(first, 5), state(second, 5)).state is expected
    assert fresh(state(second, 5), state(first, 5)).state is expected


@pytest.mark.parametrize("order", [(R, STOPPED), (STOPPED, R), (STOPPING, P)])
def test_a_start_and_a_stop_of_one_second_are_asked_about_at_once(order: tuple[InstanceState, InstanceState]) -> None:
    known = record(state(order[0], 100), state(order[1], 100))
    assert known.ask_at == at(100)


def test_terminated_is_for_good() -> None:
    known = record(state(TERMINATED, 50), state(SHUTTING, 60))
    assert (known.state, known.ask_at) == (TERMINATED, at(80))
    contradicted = fold(known, state(R, 70))
    assert (contradicted.state, contradicted.ask_at) == (TERMINATED, at(70))


def test_shutting_down_only_goes_to_terminated() -> None:
    known = fresh(state(SHUTTING, 50), state(STOPPED, 60))
    assert known.state is SHUTTING
    assert fold(known, state(TERMINATED, 61)).state is TERMINATED


def test_a_late_end_still_ends_and_is_asked_about_at_once() -> None:
    known = fresh(state(R, 70), state(SHUTTING, 50))
    assert (known.state, known.ask_at) == (SHUTTING, at(0))
    assert fold(record(), state(SHUTTING, 9)).state is SHUTTING


def test_an_older_state_changes_no_label_and_is_stale() -> None:
    known, outcome = hear(fresh(state(STOPPED, 50)), state(R, 40))
    assert (known.state, outcome) == (STOPPED, Outcome.STALE)


def test_a_state_at_an_unknown_time_is_asked_about_not_believed() -> None:
    known = fold(record(), state(STOPPED, 90, degraded=("time",)))
    assert (known.state, known.ask_at) == (R, at(90))
    assert fold(record(), state(TERMINATED, 90, degraded=("time",))).state is TERMINATED


def test_ec2_is_asked_once_for_many_changes_half_a_minute_after_the_first() -> None:
    known = record(state(STOPPING, 100), state(STOPPED, 110), state(P, 120))
    assert known.ask_at == at(130)
    assert answered(known, facts(130, "pending")).ask_at is None


# --- EC2's answers ---


def test_the_answer_of_ec2_wins_over_what_was_before() -> None:
    known = answered(record(state(STOPPED, 100)), facts(130, "running"))
    assert known.state is R
    assert fold(known, state(STOPPING, 99)).state is R


@pytest.mark.parametrize("late", [facts(130, "running"), facts(130, found=False)])
def test_a_late_answer_of_ec2_does_not_replace_a_newer_answer(late: Facts) -> None:
    newer = facts(160, "stopped")
    known = observed(record(), facts=facts(0)).with_answer(newer, {}).with_answer(late, {}).known
    assert known.record == answered(record(), newer)
    assert known.facts == newer


def test_a_late_answer_of_ec2_does_not_revive_a_terminated_instance() -> None:
    known = answered(record(), facts(160, "terminated"))
    assert answered(known, facts(130, "running")) == known


def test_a_forged_end_is_taken_back_and_counted() -> None:
    forged = record(state(TERMINATED, 100))
    assert (forged.state, forged.ask_at) == (TERMINATED, at(130))
    known = answered(forged, facts(130, "running"))
    assert (known.state, known.refuted) == (R, 1)
    assert answered(record(state(TERMINATED, 100)), facts(130, "terminated")).refuted == 0


def test_an_end_that_ec2_has_denied_since_is_asked_about_again_not_believed() -> None:
    known = fold(answered(record(), facts(130)), state(TERMINATED, 100, received_at=at(140)))
    assert (known.state, known.ask_at) == (R, at(140))


def test_an_event_that_overtook_the_answer_counts() -> None:
    known = answered(record(state(STOPPED, 131)), facts(130, "running"))
    assert (known.state, known.ask_at) == (STOPPED, at(161))


def test_an_event_just_before_the_answer_is_asked_about() -> None:
    known = fold(answered(record(), facts(130.5)), state(STOPPING, 130, received_at=at(133)))
    assert (known.state, known.ask_at) == (R, at(133))
    assert fold(answered(record(), facts(130.5)), state(STOPPING, 90)).ask_at is None


def test_after_an_end_an_instance_unknown_to_ec2_is_terminated() -> None:
    known = answered(record(state(SHUTTING, 100)), facts(160, found=False))
    assert (known.state, is_absent(known)) == (TERMINATED, False)


def test_without_an_end_ec2_is_asked_three_times_in_two_minutes() -> None:
    known = record(live_at=None)
    moments = []
    for _ in range(3):
        assert known.ask_at is not None
        moments.append(known.ask_at)
        assert not is_absent(known)
        known = answered(known, facts((known.ask_at - at(0)).total_seconds(), found=False))
    assert moments == [at(0), at(60), at(120)]
    assert (is_absent(known), known.ask_at) == (True, None)
    assert not is_absent(fold(known, state(R, 200)))


# --- notices, scheduled events, hooks ---


def test_a_spot_notice_outlasts_a_stop_and_a_start_that_only_events_tell_of() -> None:
    known = record(spot(100, "stop"), event(EventKind.REBALANCE, 90))
    restarted = fold(fold(known, state(STOPPED, 200)), state(R, 900))
    assert interruption_label(restarted, at(910)) == "spot-stop"
    assert interruption_label(answered(restarted, facts(911)), at(912)) == ""


@pytest.mark.parametrize("forged", [1, 9])
def test_a_forged_hibernation_does_not_replace_a_termination(forged: float) -> None:
    """A hibernation is only labelled, so the drain for the termination would end."""
    for first, second in ((spot(5), spot(forged, "hibernate")), (spot(forged, "hibernate"), spot(5))):
        known = record(first, second)
        assert known.interruptions[EventKind.SPOT].key == spot(5).key
    denied = refuted(record(spot(5)), spot(5).key, at(70))
    assert fold(denied, spot(80, "hibernate")).interruptions[EventKind.SPOT].action == "hibernate"


@EXAMPLES
@given(st.permutations([event(EventKind.REBALANCE, 90), state(STOPPED, 110), state(R, 130)]))
def test_a_restart_ends_a_recommendation_at_once_in_whatever_order_it_is_told(order: list[InstanceEvent]) -> None:
    assert interruption_label(record(*order), at(131)) == ""


def test_a_start_without_a_stop_after_the_notice_ends_none() -> None:
    known = record(state(STOPPED, 50), state(R, 60), spot(70), state(R, 80))
    assert interruption_label(known, at(90)) == "spot-terminate"


def test_a_later_notice_of_the_same_update_moves_a_scheduled_event() -> None:
    moved = scheduled(20, at(5000), updated=at(10))
    for order in ((scheduled(10, at(9000)), moved), (moved, scheduled(10, at(9000)))):
        (planned,) = record(*order).planned.values()
        assert planned.notice.start == at(5000)


def test_a_notice_outlived_is_past_once_ec2_says_so() -> None:
    known = record(spot(100), event(EventKind.REBALANCE, 90))
    assert interruption_label(answered(known, facts(150)), at(150)) == "spot-terminate"
    assert interruption_label(answered(known, facts(230)), at(230)) == "spot-terminate", "AWS may be late"
    assert interruption_label(answered(known, facts(821)), at(821)) == "rebalance"


@pytest.mark.parametrize("withdrawn", [{"status": "closed"}, {"entity_status": "RESOLVED"}])
def test_a_scheduled_event_may_be_withdrawn(withdrawn: dict[str, str]) -> None:
    known = record(scheduled(10, at(90000)))
    assert interruption_label(known, at(20)) == "scheduled-stop"
    assert interruption_label(fold(known, scheduled(20, at(90000), **withdrawn)), at(30)) == ""


def test_a_scheduled_event_ends_with_its_window() -> None:
    known = record(scheduled(10, at(1000), "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", end=at(2000)))
    assert interruption_label(known, at(1999)) == "scheduled-reboot"
    assert interruption_label(known, at(2000)) == ""


@pytest.mark.parametrize("seconds", [10, 2001], ids=["before", "after"])
def test_an_event_that_ends_an_instance_lasts_past_its_window(seconds: int) -> None:
    """AWS may be days late, and Health repeats its notices."""
    known = record(scheduled(seconds, at(1000), end=at(2000)))
    assert interruption_label(known, at(10 * 24 * 3600)) == "scheduled-stop"


def test_the_most_severe_interruption_is_shown() -> None:
    known = record(event(EventKind.REBALANCE, 1), scheduled(2, at(9000)), spot(3))
    assert interruption_label(known, at(4)) == "spot-terminate"
    assert interruption_label(refuted(known, spot(3).key, at(4)), at(4)) == "scheduled-stop"


def test_a_claim_is_refuted_once() -> None:
    known = refuted(refuted(record(), "e/i", at(1)), "e/i", at(2))
    assert (known.refuted, known.refuted_causes) == (1, ("e/i",))


def test_a_second_event_of_a_token_is_the_same_action() -> None:
    known = hook_ended(heartbeat_sent(record(hook(10)), "t-1", at(40)), "t-1", at(50))
    again = fold(known, hook(5))
    assert again.hooks["t-1"].ended_at == at(50)
    assert again.open_hooks == ()
    assert [held.action.token for held in fold(again, hook(60, token="t-2")).open_hooks] == ["t-2"]


def test_what_is_remembered_is_bounded() -> None:
    known = record()
    for number in range(600):
        known = fold(known, hook(number, token=f"t-{number}"))
        known = fold(known, scheduled(number, at(90000), arn=f"arn:{number}"))
        known = refuted(known, f"c-{number}", at(number))
    assert len(known.seen) == 256
    assert len(known.hooks) == len(known.planned) == 16
    assert len(known.refuted_causes) == 32
    assert len(known.model_dump_json()) < 64 * 1024


def test_a_confirmed_hook_is_not_displaced_by_forged_ones() -> None:
    waits = facts(2, group=GROUP, lifecycle="Terminating:Wait")
    known = hooks_confirmed(record(hook(1, token="true")), waits)
    for number in range(100):
        known = fold(known, hook(10 + number, token=f"forged-{number}"))
    assert "true" in known.hooks
    assert len(known.hooks) == 16


def test_a_hook_that_was_answered_makes_room_first() -> None:
    known = record(*(hook(number, token=f"t-{number}") for number in range(16)))
    known = hook_ended(known, "t-9", at(30))
    assert set(known.hooks) - set(fold(known, hook(40, token="t-40")).hooks) == {"t-9"}


def test_a_record_goes_through_json_unchanged() -> None:
    known = record(*MIXED)
    assert InstanceRecord.model_validate_json(known.model_dump_json()) == known


def test_what_is_heard_keeps_the_workflow_open() -> None:
    assert record(state(TERMINATED, 100)).heard_at == at(100)
    assert record(state(TERMINATED, 100), state(R, 40)).heard_at == at(100)


@pytest.mark.parametrize("place", [{"account": "999999999999"}, {"region": "us-east-1"}, {"instance_id": "i-other"}])
def test_an_event_of_another_instance_is_none_of_its_own(place: dict[str, str]) -> None:
    known = record()
    assert hear(known, state(TERMINATED, 5, **place)) == (known, Outcome.FOREIGN)
