"""A machine's health to the second, its mark, and the whole fleet's silence."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from lb_objects import NOW, ago, condition, fleet_of, healthy, machine

from domain.decision import earliest
from domain.loadbalancers.boot_timeout import boot_deadline
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import (
    HealthState,
    Timings,
    expires_at,
    health_of,
    is_master,
    last_report,
    mark_patches,
    marked_at,
    unmet,
)
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.writes import merge

WINDOW = timedelta(seconds=180)
SECOND = timedelta(seconds=1)


def born(**span: float) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": ago(**span)}}


def replaced(type_: str, status: str, **times: str) -> list[dict[str, Any]]:
    """A healthy machine's conditions with one of them otherwise."""
    return [condition(type_, status, **times) if each["type"] == type_ else each for each in healthy()]


# --- ready ---


def test_a_machine_with_fresh_true_conditions_is_ready() -> None:
    found = health_of(machine(conditions=healthy()), NOW)
    assert (found.state, found.ready, found.why) == (HealthState.READY, True, "")


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ([], "no conditions set"),
        (healthy()[:2], "required condition EnvoyUpToDate not present on machine"),
        (replaced("EnvoyReady", "False"), "condition EnvoyReady is in status False with reason: R"),
        (replaced("ConfigReady", "Unknown"), "condition ConfigReady is in status Unknown with reason: R"),
        (replaced("EnvoyUpToDate", "True", beat=ago(seconds=181)), "condition EnvoyUpToDate heartbeat is stale"),
        (replaced("EnvoyUpToDate", "True", beat="yesterday"), "condition EnvoyUpToDate heartbeat is stale"),
    ],
)
def test_a_machine_is_not_ready_for_the_first_reason_found(conditions: list[Any], why: str) -> None:
    assert unmet(machine(conditions=conditions), NOW, WINDOW, stable=False) == why
    assert not health_of(machine(conditions=conditions), NOW).ready


def test_keepalived_has_no_part_in_being_ready() -> None:
    without = [each for each in healthy() if each["type"] != "KeepalivedMaster"]
    assert health_of(machine(conditions=without), NOW).ready
    assert not is_master(machine(conditions=without))
    assert is_master(machine(conditions=healthy(master=True)))


def test_a_report_counts_for_three_minutes_to_the_second() -> None:
    of = machine(conditions=healthy(beat=ago(seconds=0)))
    expires = expires_at(of)
    assert expires == NOW + WINDOW + SECOND
    assert health_of(of, NOW + WINDOW).ready
    assert not health_of(of, expires).ready
    assert health_of(of, NOW).next_change is None, "the watcher holds it"


# --- boot ---


def test_a_new_machine_may_be_silent_for_ten_minutes_to_the_second() -> None:
    of = machine(**born(minutes=9, seconds=59))
    deadline = NOW + SECOND
    assert boot_deadline(of) == deadline
    found = health_of(of, NOW)
    assert (found.state, found.mark, found.next_change) == (HealthState.BOOTING, None, deadline)
    then = health_of(of, deadline)
    assert (then.state, then.mark, then.next_change) == (
        HealthState.MARKED,
        deadline,
        deadline + timedelta(minutes=2),
    )


@pytest.mark.parametrize(("text", "minutes"), [("3m", 3), ("1h", 60), ("soon", 10), ("300", 10), ("", 10), ("0", 0)])
def test_a_machine_can_be_given_another_time_to_boot(text: str, minutes: int) -> None:
    of = machine(metadata={"creationTimestamp": ago(), "annotations": {"yawol.stackit.cloud/creationTimeout": text}})
    assert boot_deadline(of) == NOW + timedelta(minutes=minutes)


def test_a_machine_that_reports_some_conditions_only_is_marked_at_once() -> None:
    of = machine(conditions=healthy()[:1], **born(minutes=1))
    assert health_of(of, NOW).state is HealthState.MARKED


def test_an_installation_can_set_the_times() -> None:
    quick = Timings(boot=timedelta(seconds=20), grace=timedelta(seconds=5))
    found = health_of(machine(**born(seconds=20)), NOW, quick)
    assert (found.state, found.next_change) == (HealthState.MARKED, NOW + timedelta(seconds=5))
    strict = Timings(window=timedelta(seconds=60))
    of = machine(conditions=healthy(beat=ago(seconds=61)))
    assert (health_of(of, NOW).state, health_of(of, NOW, strict).state) == (HealthState.READY, HealthState.MARKED)
    assert expires_at(of, strict) == NOW


@pytest.mark.parametrize(
    "how",
    [
        {"conditions": healthy(beat="9999-12-31T23:59:59Z")},
        {"conditions": [condition("ConfigReady", "False", since="9999-12-31T23:59:59Z"), *healthy()[1:]]},
        {
            "conditions": healthy(beat=ago(minutes=9)),
            "metadata": {"annotations": {"perdure.dev/marked-for-deletion-at": "9999-12-31T23:59:59Z"}},
        },
        {"metadata": {"annotations": {"perdure.dev/boots-since": "9999-12-31T23:59:59Z"}}},
    ],
    ids=["heartbeat", "transition", "mark", "boot"],
)
def test_the_last_day_of_the_calendar_counts_as_no_time(how: Any) -> None:
    found = health_of(machine(**how), NOW)
    assert (found.state, found.next_change) == (HealthState.MARKED, NOW + timedelta(minutes=2))


# --- the mark ---


def test_a_fault_is_given_three_minutes_to_the_second() -> None:
    of = machine(conditions=replaced("EnvoyReady", "False", since=ago(seconds=180)))
    found = health_of(of, NOW)
    assert (found.state, found.next_change) == (HealthState.RUNNING, NOW + SECOND)
    assert health_of(of, NOW + SECOND).state is HealthState.MARKED


def test_a_stale_machine_is_marked_at_once() -> None:
    found = health_of(machine(conditions=healthy(beat=ago(seconds=181))), NOW)
    assert (found.state, found.why) == (HealthState.MARKED, "condition ConfigReady heartbeat is stale")


def patched(of: LoadBalancerMachine, now: datetime) -> LoadBalancerMachine:
    """The machine after its mark was written or removed."""
    body: object = of.model_dump(mode="json")
    for patch in mark_patches(of, health_of(of, now)):
        body = merge(body, patch)
    return LoadBalancerMachine.model_validate(body)


def test_a_marked_machine_has_two_minutes_to_recover_to_the_second() -> None:
    marked = patched(machine(conditions=healthy(beat=ago(seconds=181))), NOW)
    mark = marked.status.conditions[-1]
    assert (mark.type, mark.status, mark.reason) == ("MarkedForDeletion", "True", "PendingDeletion")
    assert (mark.message, mark.last_heartbeat_time) == ("condition ConfigReady heartbeat is stale", None)
    assert marked_at(marked) == NOW
    end = NOW + timedelta(minutes=2)
    assert health_of(marked, end - SECOND).state is HealthState.MARKED
    assert health_of(marked, end).state is HealthState.CONDEMNED


def test_an_existing_mark_is_not_written_again() -> None:
    marked = patched(machine(conditions=healthy(beat=ago(seconds=181))), NOW)
    assert health_of(marked, NOW + SECOND).mark is None
    assert mark_patches(marked, health_of(marked, NOW + SECOND)) == ({}, {})


def test_a_mark_whose_times_are_unreadable_is_written_again() -> None:
    mark = condition("MarkedForDeletion", "True", since="9999-12-31T23:59:59Z")
    annotated = {"annotations": {"perdure.dev/marked-for-deletion-at": "9999-12-31T23:59:59Z"}}
    marked = patched(machine(conditions=[*healthy(beat=ago(seconds=181)), mark], metadata=annotated), NOW)
    assert marked_at(marked) == NOW
    assert health_of(marked, NOW + timedelta(minutes=2)).state is HealthState.CONDEMNED


def test_a_machine_that_recovers_loses_its_mark() -> None:
    marked = patched(machine(conditions=healthy(beat=ago(seconds=181))), NOW)
    fresh = [*healthy(), *(each.model_dump(mode="json") for each in marked.status.conditions[-1:])]
    recovered = marked.model_copy(update={"status": machine(conditions=fresh).status})
    found = health_of(recovered, NOW + SECOND)
    assert (found.state, found.unmark) == (HealthState.READY, True)
    after = patched(recovered, NOW + SECOND)
    assert marked_at(after) is None
    assert [each.type for each in after.status.conditions] == [each["type"] for each in healthy()]
    assert not health_of(after, NOW + SECOND).unmark


def test_a_mark_that_the_agent_erased_keeps_its_moment() -> None:
    """W15."""
    stale = healthy(beat=ago(seconds=181))
    marked = patched(machine(conditions=stale), NOW)
    erased = marked.model_copy(update={"status": machine(conditions=stale).status})
    later = NOW + timedelta(seconds=90)
    found = health_of(erased, later)
    assert (found.state, found.mark, found.next_change) == (HealthState.MARKED, NOW, NOW + timedelta(minutes=2))
    assert health_of(erased, NOW + timedelta(minutes=2)).state is HealthState.CONDEMNED


def test_a_mark_that_the_agent_brought_back_goes_again() -> None:
    """W15."""
    old = {"type": "MarkedForDeletion", "status": "True", "lastTransitionTime": ago(hours=1)}
    back = machine(conditions=[*healthy(), old])
    assert health_of(back, NOW).unmark
    assert [each.type for each in patched(back, NOW).status.conditions] == [each["type"] for each in healthy()]


def test_a_mark_of_yawols_counts_from_its_own_moment() -> None:
    old = {"type": "MarkedForDeletion", "status": "True", "lastTransitionTime": ago(seconds=60)}
    taken_over = machine(conditions=[*healthy(beat=ago(minutes=5)), old])
    assert health_of(taken_over, NOW).next_change == NOW + timedelta(seconds=60)


def test_the_mark_itself_is_no_report() -> None:
    marked = patched(machine(**born(minutes=10)), NOW)
    found = health_of(marked, NOW)
    assert (found.reported, found.why) == (False, "no conditions set")
    assert last_report(marked) is None


def test_a_machine_without_a_server_is_condemned_at_once() -> None:
    of = machine(conditions=healthy(), metadata={"annotations": {"perdure.dev/given-up": "No valid host was found"}})
    found = health_of(of, NOW)
    assert (found.state, found.why, found.hopeless) == (HealthState.CONDEMNED, "No valid host was found", True)


@pytest.mark.parametrize("minutes", [0, 1, 3, 9, 10, 12, 60])
@pytest.mark.parametrize("conditions", [[], healthy(), healthy()[:1], replaced("EnvoyReady", "False", since=ago())])
def test_nothing_changes_before_the_next_change(minutes: int, conditions: list[Any]) -> None:
    of, now = patched(machine(conditions=conditions, **born(minutes=minutes)), NOW), NOW
    found = health_of(of, now)
    expiry = expires_at(of) if found.state is not HealthState.CONDEMNED else None
    change = earliest([found.next_change, expiry if expiry and expiry > now else None])
    if change is None:
        assert health_of(of, now + timedelta(days=1)).state is found.state
    else:
        assert change > now
        almost = health_of(of, change - SECOND)
        assert (almost.state, almost.ready) == (found.state, found.ready)
        then = health_of(of, change)
        assert (then.state, then.ready) != (found.state, found.ready)


# --- the fleet ---


def of_set(name: str, conditions: list[Any], **changes: Any) -> LoadBalancerMachine:
    owner = {"kind": "LoadBalancerSet", "name": name, "uid": name}
    meta = {"ownerReferences": [owner], **changes}
    return machine(f"{name}-1", conditions, metadata=meta)


def test_a_fleet_is_silent_when_no_machine_reports_any_more() -> None:
    stale = [of_set("b", healthy(beat=ago(minutes=4))), of_set("a", healthy(beat=ago(minutes=5)))]
    found = fleet_of(stale, NOW)
    assert found == Fleet(reported=2, reporting=0, scout="lbs/a")
    assert found.silent


def test_one_voice_breaks_the_silence() -> None:
    machines = [of_set("a", healthy(beat=ago(minutes=5))), of_set("b", healthy())]
    assert not fleet_of(machines, NOW).silent


def test_the_reports_of_a_machine_without_a_set_count_and_it_is_no_scout() -> None:
    alone = machine("alone", healthy(beat=ago(days=1)))
    stale = of_set("a", healthy(beat=ago(minutes=5)))
    assert fleet_of([alone, stale], NOW) == Fleet(reported=2, reporting=0, scout="lbs/a")
    assert not fleet_of([machine("alone", healthy()), stale], NOW).silent


def test_machines_that_have_never_reported_are_not_silent() -> None:
    assert not fleet_of([of_set("a", [])], NOW).silent
    assert not fleet_of([], NOW).silent


def test_a_machine_that_is_being_deleted_has_no_voice() -> None:
    machines = [of_set("a", healthy(), deletionTimestamp=ago()), of_set("b", healthy(beat=ago(minutes=5)))]
    assert fleet_of(machines, NOW).silent
