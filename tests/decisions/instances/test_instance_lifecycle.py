"""What is done about an instance: labels always, reactions by policy, and only what AWS bears out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from instance_scenes import (
    EXAMPLES,
    GROUP,
    ID,
    KEY,
    at,
    deleting_all,
    event,
    facts,
    hook,
    machine,
    observed,
    owner,
    record,
    scheduled,
    spot,
    state,
)

from domain.instances.actions import (
    AskInstance,
    BeatHook,
    Because,
    CordonNode,
    CountRefuted,
    DeleteOwner,
    EmptyNode,
    EndHook,
    Notify,
    ReleaseNode,
)
from domain.instances.constants import EVENTS_ANNOTATION, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.ec2_answers import answered
from domain.instances.event_record import (
    InstanceRecord,
    cordoned,
    fold,
    heartbeat_sent,
    hook_ended,
    hooks_confirmed,
    refuted,
)
from domain.instances.event_verification import Facts, Question, ScheduledEvent
from domain.instances.events import EventKind, InstanceEvent
from domain.instances.hook_timeouts import HookTiming
from domain.instances.instance_lifecycle import InstancePhase, InstanceWork, decide_instance, work_for_instance
from domain.instances.interruption_policy import CauseSort, Channel, Reaction, ReactionPolicy
from domain.instances.machine_labels import interruption_label, label_patch, recalled
from domain.instances.notices import about, about_node
from domain.instances.observed import InstanceMemory, InstanceWorld
from domain.instances.resources import AWSMachinePool, Machine
from domain.resource import ObjectMeta
from domain.runner import State
from domain.writes import merge

DAY = 24 * 3600
MACHINE: dict[str, Any] = {"key": KEY.lifecycle, "namespace": "clusters", "name": "m-0", "uid": "u-m"}
NODE: dict[str, Any] = {"key": KEY.lifecycle, "namespace": "clusters", "cluster": "", "node": "node-0"}
SPOT = Because(sort="spot", since=at(4))
PAUSED = {"annotations": {"cluster.x-k8s.io/paused": "true"}}
OUR_PAUSE = {"annotations": {"perdure.dev/paused": "true"}}
DRAINING = ReactionPolicy(terminating_hook=Reaction.DRAIN, launching_hook=True, reboot=Reaction.DRAIN)


def work(known: InstanceRecord, seconds: float, **changes: Any) -> InstanceWork:
    return work_for_instance(observed(known, **changes), at(seconds))


def effects(done: InstanceWork) -> list[str]:
    return [each.activity.removeprefix("instances.") for each in done.steps if not isinstance(each, AskInstance)]


def questions_of(done: InstanceWork) -> tuple[Question, ...]:
    return next((each.questions for each in done.steps if isinstance(each, AskInstance)), ())


def refutation(cause: str) -> CountRefuted:
    return CountRefuted(key=KEY.lifecycle, cause=cause, about=(about(machine()), about(owner())))


def labels(done: InstanceWork) -> dict[str, Any]:
    metadata: Any = done.patch.get("metadata", {})
    return dict(metadata.get("labels", {}))


# --- phases and labels ---


@pytest.mark.parametrize(
    ("events", "phase"),
    [
        ((), InstancePhase.LIVE),
        ((state("stopped", 5),), InstancePhase.STOPPED),
        ((state("stopped", 5), state("running", 9)), InstancePhase.LIVE),
        ((event(EventKind.REBALANCE, 5),), InstancePhase.LIVE),
        ((spot(5),), InstancePhase.INTERRUPTING),
        ((scheduled(5, at(DAY * 14)),), InstancePhase.MAINTENANCE_PLANNED),
        ((hook(5),), InstancePhase.HOOK_DRAINING),
        ((hook(5, destination="WarmPool"),), InstancePhase.LIVE),
        ((hook(5, "launching"),), InstancePhase.LAUNCHING),
        ((spot(4), hook(5), state("terminated", 9)), InstancePhase.GONE),
    ],
)
def test_the_phase_is_what_is_going_to_happen(events: tuple[InstanceEvent, ...], phase: InstancePhase) -> None:
    assert work(record(*events), 10).phase is phase


@pytest.mark.parametrize(
    ("seen", "launched_at", "phase"),
    [
        ({}, 9, InstancePhase.LIVE),
        ({}, 4, InstancePhase.LAUNCHING),
        # Anyone who may send to the queue can forge it, and Perdure would then complete no hook.
        ({"policy": DRAINING}, 9, InstancePhase.LAUNCHING),
        ({"tag_keys": ("k",)}, 9, InstancePhase.LAUNCHING),
    ],
    ids=["of no policy", "a later hook", "of the policy", "of a policy by tags that EC2 was not asked for"],
)
def test_a_successful_launch_ends_the_launching_hooks_that_no_policy_serves(
    seen: dict[str, Any], launched_at: float, phase: InstancePhase
) -> None:
    known = record(hook(5, "launching"), event(EventKind.LAUNCH_OK, launched_at, group=GROUP))
    world = observed(record(), **seen).recall(observed(known))
    assert work_for_instance(world, at(10)).phase is phase
    annotated = str(label_patch(machine(), world.record, at(10)))
    assert ("t-1" in annotated) is (phase is InstancePhase.LAUNCHING)


def test_a_successful_launch_ends_no_hook_while_the_policy_is_selected_by_old_tags() -> None:
    known = record(hook(5, "launching"), event(EventKind.LAUNCH_OK, 9, group=GROUP))
    before = observed(known).learn(tags={"k": "v"})
    world = observed(record(), tag_keys=("k",), chosen_by={"k": None}).recall(before)
    assert work_for_instance(world, at(10)).phase is InstancePhase.LAUNCHING


@pytest.mark.parametrize("transition", ["launching", "terminating"])
def test_a_hook_that_nobody_ends_shows_in_the_phase_for_48_hours_at_most(transition: str) -> None:
    known = record(hook(5, transition))
    assert work(known, 2 * DAY + 4).phase is not InstancePhase.LIVE
    assert work(known, 2 * DAY + 5).phase is InstancePhase.LIVE


def test_by_default_everything_is_labelled_and_nothing_else_is_done() -> None:
    known = record(spot(4), hook(5), hook(5, "launching", token="t-2"), scheduled(6, at(60)), state("terminated", 9))
    done = work(known, 20, facts=facts(15, "terminated"))
    assert effects(done) == []
    assert labels(done) == {STATE_LABEL: "terminated", INTERRUPTION_LABEL: "spot-terminate"}


def test_the_labels_are_written_once() -> None:
    known = record(spot(4))
    first = work(known, 5)
    patched = machine().model_validate(merge(machine().model_dump(mode="json"), first.patch))
    assert patched.metadata.labels == {STATE_LABEL: "running", INTERRUPTION_LABEL: "spot-terminate"}
    assert work(known, 6, machine=patched).patch == {}
    assert work(fold(known, event(EventKind.HEALTH_OTHER, 5)), 6, machine=patched).patch == {}


def test_the_patch_names_the_uid_it_is_for() -> None:
    assert work(record(), 5).patch["metadata"]["uid"] == "u-am"  # type: ignore[index]


def test_a_label_that_is_past_is_taken_away() -> None:
    labelled = machine(labels={STATE_LABEL: "running", INTERRUPTION_LABEL: "spot-terminate"})
    done = work(answered(record(spot(4)), facts(725)), 726, machine=labelled)
    assert labels(done) == {INTERRUPTION_LABEL: None}


def test_a_state_that_is_not_known_changes_no_label() -> None:
    labelled = machine(labels={STATE_LABEL: "stopped"})
    assert work(record(live_at=None), 5, machine=labelled).patch == {}


@pytest.mark.parametrize("metadata", [PAUSED, {"deletionTimestamp": "2026-05-04T09:00:00Z"}])
def test_labels_stay_true_while_cluster_api_holds_the_machine_but_nothing_is_done(metadata: dict[str, Any]) -> None:
    known = record(spot(4))
    done = work(known, 10, machine=machine(**metadata), policy=deleting_all(), facts=marked(6))
    assert labels(done)[INTERRUPTION_LABEL] == "spot-terminate"
    assert effects(done) == []
    assert "is" in done.why


def test_perdures_own_pause_stops_labels_too() -> None:
    done = work(record(spot(4)), 10, machine=machine(**OUR_PAUSE), policy=deleting_all(), facts=marked(6))
    assert (done.patch, effects(done)) == ({}, [])


def test_in_observe_mode_nothing_is_written() -> None:
    done = work(record(spot(4), hook(5)), 10, observing=True, policy=deleting_all(), facts=marked(6))
    assert (done.patch, effects(done)) == ({}, [])


# --- strangers ---


def test_an_instance_of_nobody_is_given_up_after_ten_minutes_and_never_asked_about() -> None:
    known = record(spot(4), live_at=None)
    waiting = work(known, 10, machine=None, owner=None, policy=deleting_all())
    assert (waiting.steps, waiting.patch, waiting.deadline) == ((), {}, at(604))
    closed = work(known, 604, machine=None, owner=None, policy=deleting_all())
    assert (closed.close, closed.phase) == (True, InstancePhase.UNMANAGED)


@pytest.mark.parametrize("notice", [spot(4), event(EventKind.CAPACITY_RESERVATION, 4, action="terminate")])
def test_ec2_is_asked_three_times_about_an_absent_instance_with_an_old_notice(notice: InstanceEvent) -> None:
    known, last, asked = record(notice), facts(0), []
    for seconds in range(730, 1200, 10):
        if questions_of(work(known, seconds, facts=last)):
            asked.append(seconds)
            last = facts(seconds, found=False)
            known = answered(known, last)
    done = work(known, 1200, facts=last)
    assert (asked, done.phase, done.deadline) == ([730, 790, 850], InstancePhase.NOT_FOUND, None)


def test_a_new_instance_is_asked_about_first() -> None:
    done = work(record(live_at=None), 0)
    assert (done.phase, questions_of(done)) == (InstancePhase.UNKNOWN, (Question.INSTANCE,))


def test_a_terminated_instance_is_closed_after_an_hour_of_quiet() -> None:
    known = answered(record(state("terminated", 100)), facts(130, "terminated"))
    labelled = machine(labels={STATE_LABEL: "terminated"})
    assert work(known, 200).deadline == at(3700)
    assert not work(known, 3699, machine=labelled).close
    assert work(known, 3700, machine=labelled).close
    assert not work(fold(known, state("shutting-down", 90, received_at=at(3000))), 3700, machine=labelled).close


def test_an_end_learnt_after_an_hour_is_labelled_and_handled_before_closing() -> None:
    known = answered(record(), facts(4 * 3600, "terminated"))
    policy = ReactionPolicy(terminated=Reaction.DELETE_MACHINE)
    labelled = machine(labels={STATE_LABEL: "terminated"})
    gone = owner(deletionTimestamp="2026-05-04T14:00:07Z", finalizers=["x"])
    answer = facts(4 * 3600, "terminated")
    first = work(known, 4 * 3600 + 1, policy=policy, facts=answer)
    assert (labels(first), effects(first), first.close) == ({STATE_LABEL: "terminated"}, ["delete_machine"], False)
    unsure = work(known, 4 * 3600 + 90, policy=policy, facts=answer, machine=labelled)
    assert (questions_of(unsure), unsure.close) == ((Question.INSTANCE,), False)
    done = work(known, 4 * 3600 + 9, policy=policy, facts=answer, machine=labelled, owner=gone)
    assert (done.patch, done.steps, done.close) == ({}, (), True)


def test_in_observe_mode_nothing_is_left_to_do_at_the_end() -> None:
    known = fold(answered(record(), facts(4 * 3600, "terminated")), hook(5))
    assert hooked(known, 4 * 3600 + 1, observing=True, facts=facts(4 * 3600, "terminated")).close


def test_a_hook_that_is_open_at_the_end_is_completed_before_the_close() -> None:
    known = fold(answered(record(), facts(4 * 3600, "terminated")), hook(5))
    labelled = machine(labels={STATE_LABEL: "terminated"})
    done = hooked(known, 4 * 3600 + 1, machine=labelled)
    assert (effects(done), done.close) == (["complete_hook"], False)
    ended = hook_ended(known, "t-1", at(4 * 3600 + 2))
    assert hooked(ended, 4 * 3600 + 3, machine=labelled).close


# --- reactions ---


def marked(seconds: float, **changes: Any) -> Facts:
    return facts(seconds, **({"spot": True, "spot_code": "marked-for-termination"} | changes))


def test_a_spot_notice_is_borne_out_before_the_machine_is_deleted() -> None:
    known, policy = record(spot(4)), deleting_all()
    first = work(known, 5, policy=policy)
    assert (effects(first), questions_of(first)) == ([], (Question.INSTANCE, Question.SPOT))
    done = work(known, 7, policy=policy, facts=marked(6))
    assert done.steps == (DeleteOwner(**MACHINE, cause=spot(4).key, taken=True, because=SPOT),)


def test_a_reaction_runs_once() -> None:
    gone = owner(deletionTimestamp="2026-05-04T10:00:07Z", finalizers=["x"])
    for left in (gone, None):
        done = work(record(spot(4)), 8, policy=deleting_all(), facts=marked(6), owner=left)
        assert (effects(done), questions_of(done)) == ([], ())


def test_an_answer_from_before_the_notice_proves_nothing() -> None:
    done = work(record(spot(4)), 7, policy=deleting_all(), facts=marked(3))
    assert (effects(done), questions_of(done)) == ([], (Question.INSTANCE, Question.SPOT))


def test_an_answer_to_another_question_proves_nothing() -> None:
    done = work(record(spot(4)), 7, policy=deleting_all(), facts=marked(6, asked=(Question.INSTANCE,)))
    assert (effects(done), questions_of(done)) == ([], (Question.INSTANCE, Question.SPOT))


def test_an_answer_grows_old() -> None:
    done = work(record(spot(4)), 100, policy=deleting_all(), facts=marked(6))
    assert (effects(done), questions_of(done)) == ([], (Question.INSTANCE, Question.SPOT))


def test_a_notice_that_ec2_does_not_know_of_yet_is_asked_about_every_ten_seconds() -> None:
    known, policy, answer = record(spot(4)), deleting_all(), marked(6, spot_code="fulfilled")
    waiting = work(known, 7, policy=policy, facts=answer)
    assert (effects(waiting), questions_of(waiting), waiting.deadline) == ([], (), at(16))
    assert questions_of(work(known, 16, policy=policy, facts=answer)) == (Question.INSTANCE, Question.SPOT)


def test_a_hook_by_a_clock_ahead_of_ours_is_asked_about_every_ten_seconds() -> None:
    known, asking = record(hook(60)), (Question.GROUP, Question.INSTANCE)
    assert questions_of(work(known, 10, policy=DRAINING, facts=None)) == asking
    unsure = work(known, 11, policy=DRAINING, facts=facts(10))
    assert (questions_of(unsure), unsure.deadline) == ((), at(20))
    assert questions_of(work(known, 20, policy=DRAINING, facts=facts(10))) == asking
    assert questions_of(work(known, 61, policy=DRAINING, facts=facts(58))) == asking


def test_a_notice_by_a_clock_ahead_of_ours_is_confirmed_at_once() -> None:
    world, _ = observed(record(), policy=deleting_all()).with_events([spot(60)], at(10))
    known = world.with_answer(marked(11), {})
    assert effects(work_for_instance(known, at(12))) == ["delete_machine"]


@pytest.mark.parametrize(
    "answer",
    [facts(6), marked(6, found=False), marked(70, spot_code="fulfilled")],
    ids=["no Spot instance", "no instance", "never marked"],
)
def test_a_forged_notice_is_told_and_forgotten(answer: Facts) -> None:
    seconds = (answer.at - at(0)).total_seconds() + 1
    done = work(record(spot(4)), seconds, policy=deleting_all(), facts=answer)
    assert done.steps == (refutation(spot(4).key),)
    after = work(refuted(record(spot(4)), spot(4).key, at(5)), seconds, policy=deleting_all(), facts=answer)
    assert (after.steps, labels(after)) == ((), {STATE_LABEL: "running"})


def test_hibernation_is_only_labelled() -> None:
    done = work(record(spot(4, "hibernate")), 7, policy=deleting_all(), facts=marked(6))
    assert (effects(done), labels(done)[INTERRUPTION_LABEL]) == ([], "spot-hibernate")


@pytest.mark.parametrize("kind", [EventKind.REBALANCE, EventKind.CAPACITY_RESERVATION])
@pytest.mark.parametrize("reaction", [Reaction.DELETE_MACHINE, Reaction.DRAIN])
def test_a_notice_that_ec2_cannot_confirm_is_only_labelled(kind: EventKind, reaction: Reaction) -> None:
    policy = ReactionPolicy(rebalance=reaction, capacity_reservation=reaction)
    done = work(record(event(kind, 4, action="terminate")), 7, policy=policy, facts=marked(6))
    assert (effects(done), questions_of(done)) == ([], ())
    assert labels(done)[INTERRUPTION_LABEL] in ("rebalance", "capacity-reservation")


def test_a_claim_of_termination_deletes_no_machine_of_a_running_instance() -> None:
    known = record(state("terminated", 100))
    first = work(known, 101, policy=deleting_all())
    assert (effects(first), questions_of(first)) == ([], (Question.INSTANCE,))
    forged = work(answered(known, facts(102)), 103, policy=deleting_all(), facts=facts(102))
    assert (effects(forged), labels(forged)) == ([], {STATE_LABEL: "running"})
    true = facts(102, "terminated")
    assert effects(work(answered(known, true), 103, policy=deleting_all(), facts=true)) == ["delete_machine"]


UNMADE_POOL = AWSMachinePool.model_validate(
    {"metadata": {"name": "p"}, "spec": {"providerIDList": [f"aws:///{KEY.region}a/{KEY.instance_id}"]}}
)


@pytest.mark.parametrize("pool", [None, UNMADE_POOL], ids=["no pool", "a pool that names no group"])
def test_an_unknown_instance_proves_nothing_if_the_account_may_be_another(
    pool: AWSMachinePool | None,
) -> None:
    policy = ReactionPolicy(terminated=Reaction.DELETE_MACHINE)
    forged = record(state("terminated", 100), live_at=None)
    world = InstanceWorld(
        key=KEY.lifecycle,
        known=InstanceMemory(record=forged),
        machine=machine(),
        owner=owner(),
        pool=pool,
        policy=policy,
    )
    for seconds in (101, 120, 161):
        unknown = facts(seconds, found=False)
        world = world.with_answer(unknown, {})
        assert effects(work_for_instance(world, at(seconds + 1))) == []
    assert world.record.refuted == 1
    settled = work_for_instance(world, at(400))
    assert (effects(settled), questions_of(settled)) == ([], ()), "it is not asked about for ever"


def test_that_ec2_does_not_know_an_instance_proves_its_end_in_its_own_account() -> None:
    policy = ReactionPolicy(terminated=Reaction.DELETE_MACHINE)
    unknown = facts(102, found=False)
    reported = record(state("terminated", 100), live_at=None)
    by_identity = work(answered(reported, unknown), 103, policy=policy, facts=unknown, account_known=True)
    assert effects(by_identity) == ["delete_machine"]
    found_before = record(state("terminated", 100))
    assert effects(work(answered(found_before, unknown), 103, policy=policy, facts=unknown)) == ["delete_machine"]


def test_deleting_the_machine_comes_before_draining() -> None:
    policy = ReactionPolicy(spot=Reaction.DELETE_MACHINE, reboot=Reaction.DRAIN)
    reboot = scheduled(3, at(100), "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", end=at(200))
    answer = marked(6, scheduled=(REBOOT,))
    assert effects(work(record(reboot, spot(4)), 7, policy=policy, facts=answer)) == ["delete_machine"]
    assert effects(work(record(reboot), 7, policy=policy, facts=answer)) == ["cordon"]


def test_draining_for_spot_ends_with_the_notice() -> None:
    done = work(record(spot(4)), 7, policy=ReactionPolicy(spot=Reaction.DRAIN), facts=marked(6))
    assert done.steps == (CordonNode(**NODE, cause=spot(4).key, machine="m-0", taken=True, because=SPOT),)
    known = cordoned(record(spot(4)), spot(4).key, "node-0")
    begun = work(known, 8, policy=ReactionPolicy(spot=Reaction.DRAIN), facts=marked(6))
    assert begun.steps == (EmptyNode(**NODE, cause=spot(4).key, until=at(124), because=SPOT),)


def test_of_two_drains_the_one_with_less_time_comes_first() -> None:
    reboot = scheduled(3, at(DAY), "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED")
    known = cordoned(record(reboot, spot(4)), "arn:h@" + str(int(at(DAY).timestamp())), "node-0")
    policy = ReactionPolicy(spot=Reaction.DRAIN, reboot=Reaction.DRAIN)
    answer = marked(6, scheduled=(REBOOT,))
    (marking,) = work(known, 7, policy=policy, facts=answer).steps
    assert isinstance(marking, CordonNode)
    assert (marking.cause, marking.taken) == (spot(4).key, True)
    (drain,) = work(cordoned(known, spot(4).key, "node-0"), 8, policy=policy, facts=answer).steps
    assert isinstance(drain, EmptyNode)
    assert (drain.cause, drain.until) == (spot(4).key, at(124))


def test_a_drain_that_has_begun_goes_on_without_asking_again() -> None:
    known = cordoned(record(spot(4)), spot(4).key, "node-0")
    done = work(known, 90, policy=ReactionPolicy(spot=Reaction.DRAIN), facts=marked(6))
    assert (effects(done), questions_of(done)) == (["drain"], ())
    drained = cordoned(record(spot(4)), spot(4).key, "node-0", at(80))
    assert effects(work(drained, 90, policy=ReactionPolicy(spot=Reaction.DRAIN), facts=marked(6))) == []


@pytest.mark.parametrize(
    ("reaction", "done_then"), [(Reaction.DRAIN, "cordon"), (Reaction.DELETE_MACHINE, "delete_machine")]
)
def test_a_drain_that_only_the_annotation_tells_of_proves_nothing(reaction: Reaction, done_then: str) -> None:
    """Anybody who may edit the AWSMachine can write the annotation; EC2 is asked again."""
    begun = cordoned(record(spot(4)), spot(4).key, "node-0")
    patch: Any = label_patch(machine(), begun, at(5))
    noted = {name: patch["metadata"][name] for name in ("labels", "annotations")}
    known = recalled(record(), ObjectMeta(annotations=noted["annotations"]))
    policy = ReactionPolicy(spot=reaction)
    done = work(known, 9, policy=policy)
    assert effects(done) == []
    assert Question.SPOT in questions_of(done)
    assert effects(work(known, 9, policy=policy, facts=marked(8))) == [done_then]
    assert label_patch(machine(**noted), known, at(9)) == {}, "what is recalled is not written again"


def test_an_instance_that_runs_well_after_its_notice_is_asked_about() -> None:
    done = work(record(spot(4)), 730)
    assert questions_of(done) == (Question.INSTANCE,)
    assert questions_of(work(record(spot(4)), 700)) == ()
    assert questions_of(work(record(event(EventKind.REBALANCE, 4)), 730)) == (), "AWS gives no end for it"
    assert work(record(spot(4)), 200).deadline == at(724)


@pytest.mark.parametrize(("seconds", "expected"), [(126, []), (600, []), (726, ["uncordon"])])
def test_a_node_drained_for_spot_is_used_again_only_well_after_the_notice(seconds: int, expected: list[str]) -> None:
    drained = cordoned(record(spot(4)), spot(4).key, "node-0", at(80))
    seen = facts(seconds - 1, spot=True, spot_code="marked-for-termination")
    policy = ReactionPolicy(spot=Reaction.DRAIN)
    assert effects(work(answered(drained, seen), seconds, policy=policy, facts=seen)) == expected


def test_an_event_alone_does_not_withdraw_a_spot_notice() -> None:
    drained = cordoned(record(spot(4)), spot(4).key, "node-0", at(80))
    reported = fold(drained, state("running", 130))
    assert effects(work(reported, 140, policy=ReactionPolicy(spot=Reaction.DRAIN))) == []


# --- scheduled events ---

STOP = ScheduledEvent(code="instance-stop")
REBOOT = ScheduledEvent(code="system-reboot")


def test_a_scheduled_event_is_acted_upon_a_day_before_its_date() -> None:
    start = 14 * DAY
    known, policy = record(scheduled(5, at(start))), deleting_all()
    early = work(known, 10, policy=policy)
    assert (effects(early), questions_of(early), early.deadline) == ([], (), at(13 * DAY))
    due = work(known, 13 * DAY, policy=policy)
    assert (effects(due), questions_of(due)) == ([], (Question.INSTANCE, Question.STATUS))
    answer = facts(13 * DAY, scheduled=(STOP,))
    assert effects(work(known, 13 * DAY + 1, policy=policy, facts=answer)) == ["delete_machine"]


@pytest.mark.parametrize(
    ("scheduled_events", "expected"),
    [
        ((STOP,), ["delete_machine"]),
        ((), ["count_refuted"]),
        ((REBOOT,), ["count_refuted"]),
        ((ScheduledEvent(code="instance-stop", description="[Canceled] stop"),), ["count_refuted"]),
        ((ScheduledEvent(code="instance-stop", description="[Completed] stop"),), ["count_refuted"]),
    ],
)
def test_a_scheduled_event_is_borne_out_by_ec2s_own_list(
    scheduled_events: tuple[ScheduledEvent, ...], expected: list[str]
) -> None:
    known = record(scheduled(5, at(2 * DAY)))
    answer = facts(DAY + 10, scheduled=scheduled_events)
    assert effects(work(known, DAY + 11, policy=deleting_all(), facts=answer)) == expected


@pytest.mark.parametrize(
    ("seconds", "listed", "expected"),
    [(905, (), ["count_refuted"]), (905, (STOP,), []), (600, (), [])],
    ids=["not listed", "listed", "EC2 may be late"],
)
@pytest.mark.parametrize("paused", [False, True])
def test_a_scheduled_event_that_ec2_does_not_list_is_not_labelled_for_long(
    seconds: int, listed: tuple[ScheduledEvent, ...], expected: list[str], paused: bool
) -> None:
    known = record(scheduled(5, at(9 * DAY)))
    held = machine(**PAUSED) if paused else machine()
    answer = facts(seconds, scheduled=listed)
    done = work(known, seconds + 1, machine=held, facts=answer)
    assert effects(done) == expected
    if expected:
        (step,) = done.steps
        assert isinstance(step, CountRefuted)
        after = refuted(known, step.cause, at(1))
        assert INTERRUPTION_LABEL not in labels(work(after, seconds + 2, machine=held, facts=answer))
        world = InstanceWorld(key=KEY.lifecycle, known=InstanceMemory(record=after), machine=held)
        later = STOP.model_copy(update={"id": "e-1", "not_before": at(9 * DAY)})
        answered = world.with_answer(facts(seconds + 600, scheduled=(later,)), {})
        assert interruption_label(answered.record, at(seconds + 601)) == "scheduled-stop", "EC2 lists it after all"


def test_an_event_that_is_moved_is_acted_upon_by_its_new_date() -> None:
    known = record(scheduled(5, at(2 * DAY)), scheduled(6, at(9 * DAY)))
    done = work(known, DAY + 10, policy=deleting_all(), facts=facts(DAY + 9, scheduled=(STOP,)))
    assert (effects(done), done.deadline) == ([], at(8 * DAY))


def test_an_event_that_was_refuted_is_believed_again_with_another_date() -> None:
    first = scheduled(5, at(2 * DAY))
    known = record(first)
    step = work(known, DAY + 11, policy=deleting_all(), facts=facts(DAY + 10)).steps[0]
    assert isinstance(step, CountRefuted)
    moved = fold(refuted(known, step.cause, at(1)), scheduled(DAY + 20, at(3 * DAY)))
    assert effects(work(moved, 2 * DAY + 9, policy=deleting_all(), facts=facts(2 * DAY + 8, scheduled=(STOP,)))) == [
        "delete_machine"
    ]


@pytest.mark.parametrize("withdrawn", [{"status": "closed"}, {"entity_status": "RESOLVED"}])
def test_an_event_that_is_withdrawn_before_its_date_drains_nothing(withdrawn: dict[str, str]) -> None:
    known = record(scheduled(5, at(2 * DAY)), scheduled(6, at(2 * DAY), **withdrawn))
    done = work(known, DAY + 10, policy=deleting_all(), facts=facts(DAY + 9, scheduled=(STOP,)))
    assert (done.steps, done.phase) == ((), InstancePhase.LIVE)


def test_an_expedited_event_is_acted_upon_at_once() -> None:
    known = record(scheduled(5, at(9 * DAY), "PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED"))
    answer = facts(7, scheduled=(ScheduledEvent(code="instance-retirement"),))
    assert effects(work(known, 8, policy=deleting_all(), facts=answer)) == ["delete_machine"]


def test_a_forged_expedited_event_brings_no_reaction_forward() -> None:
    """EC2 lists the true event, which is weeks away."""
    known = record(scheduled(5, None, "PERSISTENT_INSTANCE_RETIREMENT_EXPEDITED"))
    listed = (ScheduledEvent(id="e-1", code="instance-retirement", not_before=at(14 * DAY)),)
    world = observed(known, policy=deleting_all()).with_answer(facts(7, scheduled=listed), {})
    assert effects(work_for_instance(world, at(8))) == []
    later = world.with_answer(facts(1000, scheduled=listed), {})
    (refuting,) = work_for_instance(later, at(1001)).steps
    assert isinstance(refuting, CountRefuted)
    due = refuting.fold(later, None).with_answer(facts(13 * DAY, scheduled=listed), {})
    assert effects(work_for_instance(due, at(13 * DAY + 1))) == ["delete_machine"]


@pytest.mark.parametrize("code", ["BRAND_NEW_SCHEDULED", "DEDICATED_HOST_ACCESSREVOKED_SCHEDULED"])
def test_a_type_that_nobody_knows_is_never_acted_upon(code: str) -> None:
    known = record(scheduled(5, at(60), code))
    done = work(known, 10, policy=deleting_all(), facts=facts(9, scheduled=(STOP, REBOOT)))
    assert (effects(done), done.phase) == ([], InstancePhase.MAINTENANCE_PLANNED)


def test_an_event_without_a_readable_date_is_only_told() -> None:
    known = record(scheduled(5, None))
    done = work(known, 10, policy=deleting_all(), facts=facts(9, scheduled=(STOP,)))
    assert (effects(done), labels(done)[INTERRUPTION_LABEL]) == ([], "scheduled-stop")


def test_a_node_stays_cordoned_while_the_same_notice_is_told_under_another_id() -> None:
    policy = ReactionPolicy(spot=Reaction.DRAIN)
    reported, again = (spot(5, id_=each) for each in ("a", "b"))
    drained = cordoned(record(reported), reported.key, "node-0", at(9))
    doubled = fold(drained, again)
    assert effects(work(doubled, 20, policy=policy, facts=marked(15))) == []
    restarted = fold(fold(doubled, state("stopped", 30)), state("running", 40))
    assert effects(work(restarted, 50, policy=policy, facts=marked(45))) == []
    outlived = facts(727, spot=True, spot_code="fulfilled")
    assert effects(work(answered(restarted, outlived), 728, policy=policy, facts=outlived)) == ["uncordon"]


def test_a_node_drained_for_a_reboot_is_used_again_afterwards() -> None:
    reboot = scheduled(5, at(100), "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED", end=at(200))
    first = work(record(reboot), 10, policy=DRAINING, facts=facts(9, scheduled=(REBOOT,)))
    assert effects(first) == ["cordon"]
    step = first.steps[0]
    assert isinstance(step, CordonNode)
    known = cordoned(record(reboot), step.cause, "node-0", at(50))
    assert effects(work(known, 150, policy=DRAINING)) == []
    assert work(known, 150, policy=DRAINING).deadline == at(200)
    asked_before = facts(9, scheduled=(REBOOT,))
    assert work(known, 200, policy=DRAINING, facts=asked_before).steps == (ReleaseNode(**NODE),)


@pytest.mark.parametrize("end", [at(DAY + 100), at(60)], ids=["at its start", "before its start"])
def test_a_notice_that_ends_no_later_than_it_starts_lasts_for_a_day(end: datetime) -> None:
    """Else the Node of an instance that AWS is about to reboot is used again, or is never drained."""
    known = record(scheduled(5, at(DAY + 100), CODE, end=end))
    answer = facts(109, scheduled=(REBOOT,))
    (cordon,) = work(known, 110, policy=DRAINING, facts=answer).steps
    assert isinstance(cordon, CordonNode)
    drained = cordoned(known, cordon.cause, "node-0", at(200))
    assert effects(work(drained, DAY + 200, policy=DRAINING, facts=answer)) == []
    assert effects(work(drained, 2 * DAY + 100, policy=DRAINING, facts=answer)) == ["uncordon"]


def test_a_node_is_used_again_only_once_ec2_lists_its_retirement_no_more() -> None:
    """AWS may retire it days after the date."""
    known = record(scheduled(5, at(DAY + 100)))
    policy, answer = ReactionPolicy(ending=Reaction.DRAIN), facts(109, scheduled=(STOP,))
    (cordon,) = work(known, 110, policy=policy, facts=answer).steps
    assert isinstance(cordon, CordonNode)
    drained, late = cordoned(known, cordon.cause, "node-0", at(200)), 5 * DAY
    assert effects(work(drained, late, policy=policy, facts=facts(late - 1, scheduled=(STOP,)))) == []
    listed = STOP.model_copy(update={"id": "e-1", "not_before": at(DAY + 100)})
    lost = observed(cordoned(record(), "ec2:e-1@x", "node-0", at(200)), policy=policy)
    lost = lost.with_answer(facts(late - 1, scheduled=(listed,)), {})
    assert effects(work_for_instance(lost, at(late))) == [], "known from EC2 only, after a lost workflow"
    over = observed(drained, policy=policy).with_answer(facts(late - 1), {})
    assert effects(work_for_instance(over, at(late))) == ["uncordon"], "it is no forged event either"


CODE = "INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
LATER = at(30 * DAY)


@pytest.mark.parametrize(
    ("reported", "listed"),
    [
        ((scheduled(60, at(100), CODE, status="closed"),), ()),
        ((scheduled(60, LATER, CODE),), (LATER,)),
        ((state("stopping", 60), state("stopped", 61), state("running", 62)), ()),
    ],
    ids=["withdrawn", "moved", "restarted"],
)
def test_a_node_is_used_again_once_ec2_confirms_the_end_of_its_event(
    reported: tuple[InstanceEvent, ...], listed: tuple[datetime, ...]
) -> None:
    """A forged message could have it used again before its reboot."""
    reboot = REBOOT.model_copy(update={"id": "e-1", "not_before": at(100)})
    first, lists = scheduled(5, at(100), CODE), {"scheduled": (reboot,)}
    (cordon,) = work(record(first), 10, policy=DRAINING, facts=facts(9, **lists)).steps
    assert isinstance(cordon, CordonNode)
    known = cordoned(record(first), cordon.cause, "node-0", at(50))
    for each in reported:
        known = fold(known, each)
    unsure = work(known, 70, policy=DRAINING, facts=facts(9, **lists))
    assert (effects(unsure), questions_of(unsure)) == ([], (Question.INSTANCE, Question.STATUS))
    world = observed(known, policy=DRAINING)
    forged = work_for_instance(world.with_answer(facts(71, **lists), {}), at(72))
    assert (effects(forged), questions_of(forged)) == ([], ())
    true = facts(71, scheduled=tuple(reboot.model_copy(update={"not_before": each}) for each in listed))
    assert effects(work_for_instance(world.with_answer(true, {}), at(72))) == ["uncordon"]


@pytest.mark.parametrize(
    ("told", "listed"),
    [
        (scheduled(60, at(100), CODE, arn="arn:late", status="closed"), ()),
        (scheduled(60, LATER, CODE, arn="arn:late"), (LATER,)),
    ],
    ids=["over", "moved"],
)
def test_ec2_is_asked_at_once_where_health_contradicts_its_earlier_answer(
    told: InstanceEvent, listed: tuple[datetime, ...]
) -> None:
    """Health's notice of the event may be minutes late, and the news of its end come first."""
    reboot = REBOOT.model_copy(update={"id": "e-1", "not_before": at(100)})
    found = observed(record(), policy=DRAINING).with_answer(facts(9, scheduled=(reboot,)), {})
    (cordon,) = work_for_instance(found, at(10)).steps
    assert isinstance(cordon, CordonNode)
    known = fold(cordoned(found.record, cordon.cause, "node-0", at(50)), told)
    unsure = work(known, 61, policy=DRAINING, facts=facts(9, scheduled=(reboot,)))
    assert (effects(unsure), questions_of(unsure)) == ([], (Question.INSTANCE, Question.STATUS))
    answer = facts(61, scheduled=tuple(reboot.model_copy(update={"not_before": each}) for each in listed))
    sure = work_for_instance(observed(known, policy=DRAINING).with_answer(answer, {}), at(62))
    assert (effects(sure), questions_of(sure)) == (["uncordon"], ())


# --- lifecycle hooks ---

WAITING = {"group": GROUP, "lifecycle": "Terminating:Wait"}
HOOK: dict[str, Any] = {"key": KEY.lifecycle, "group": GROUP, "hook": "drain", "token": "t-1"}
TIMINGS = {"drain": HookTiming()}


def hooked(known: InstanceRecord, seconds: float, **changes: Any) -> InstanceWork:
    whole = {"policy": DRAINING, "timings": TIMINGS, "facts": facts(seconds - 1, **WAITING)}
    return work(known, seconds, **(whole | changes))


def test_a_terminating_instance_is_drained_then_its_hook_completed() -> None:
    known = record(hook(5))
    draining = hooked(known, 10)
    assert effects(draining) == ["cordon"]
    drained = cordoned(known, hook(5).key, "node-0", at(60))
    assert hooked(drained, 70).steps == (
        EndHook(**HOOK, outcome="CONTINUE", because=Because(sort="hook", since=at(5))),
    )
    assert hooked(hook_ended(drained, "t-1", at(71)), 80).steps == (), "nor is its Node used again"


def test_heartbeats_go_out_every_five_minutes_while_it_drains() -> None:
    known = cordoned(record(hook(0)), hook(0).key, "node-0")
    assert effects(hooked(known, 299)) == ["drain"]
    assert hooked(known, 299).deadline == at(300)
    due = hooked(known, 300)
    assert BeatHook(**HOOK) in due.steps
    after = hooked(heartbeat_sent(known, "t-1", at(300)), 301)
    assert (effects(after), after.deadline) == (["drain"], at(600))


def test_a_short_hook_has_its_heartbeat_at_half_its_timeout() -> None:
    timing = HookTiming(heartbeat_timeout=at(60) - at(0))
    done = hooked(cordoned(record(hook(0)), hook(0).key, "node-0"), 10, timings={"drain": timing})
    assert done.deadline == at(30)


@pytest.mark.parametrize("transition", ["launching", "terminating"])
def test_the_times_of_a_hook_that_is_waited_for_are_asked_for_at_once(transition: str) -> None:
    lifecycle = "Pending:Wait" if transition == "launching" else "Terminating:Wait"
    held = hooks_confirmed(record(hook(5, transition)), facts(5, group=GROUP, lifecycle=lifecycle))
    known = cordoned(held, hook(5).key, "node-0")
    asking = (Question.GROUP, Question.INSTANCE)
    assert questions_of(hooked(known, 6, timings={}, facts=None)) == asking
    assert questions_of(hooked(known, 6, timings={"another": HookTiming()}, facts=facts(4))) == asking
    assert questions_of(hooked(known, 6, facts=None)) == ()


def test_the_times_of_a_hook_that_aws_does_not_know_are_not_asked_for_for_ever() -> None:
    waits = facts(6, group=GROUP, lifecycle="Pending:Wait")
    known = hooks_confirmed(record(hook(5, "launching")), waits)
    first = hooked(known, 7, timings={}, facts=waits)
    assert (questions_of(first), first.deadline) == ((), at(16))
    assert questions_of(hooked(known, 16, timings={}, facts=facts(6))) == (Question.GROUP, Question.INSTANCE)
    assert questions_of(hooked(known, 200, timings={}, facts=facts(65))) == ()
    assert questions_of(hooked(known, 200, timings={}, facts=facts(65, asked=(Question.INSTANCE,)))) != ()


@pytest.mark.parametrize(
    ("timing", "seconds"),
    [
        (HookTiming(), 48 * 3600 - 60),
        (HookTiming(heartbeat_timeout=at(60) - at(0)), 6000 - 60),
        (HookTiming(global_timeout=at(7200) - at(0)), 7200 - 60),
    ],
)
def test_the_hook_is_completed_shortly_before_auto_scaling_times_out(timing: HookTiming, seconds: float) -> None:
    known = heartbeat_sent(cordoned(record(hook(0)), hook(0).key, "node-0"), "t-1", at(seconds - 20))
    assert "complete_hook" not in effects(hooked(known, seconds - 1, timings={"drain": timing}))
    assert effects(hooked(known, seconds, timings={"drain": timing})) == ["complete_hook"]


def test_half_of_a_hooks_time_is_left_to_drain_whatever_the_margin() -> None:
    policy = DRAINING.model_copy(update={"hook_margin": at(3600) - at(0)})
    timing = {"drain": HookTiming(heartbeat_timeout=at(30) - at(0))}
    known = heartbeat_sent(cordoned(record(hook(0)), hook(0).key, "node-0"), "t-1", at(1490))
    assert "complete_hook" not in effects(hooked(known, 1499, policy=policy, timings=timing))
    assert effects(hooked(known, 1500, policy=policy, timings=timing)) == ["complete_hook"]


@pytest.mark.parametrize("metadata", [PAUSED, OUR_PAUSE, {"deletionTimestamp": "2026-05-04T09:00:00Z"}])
def test_a_hook_is_completed_even_where_nothing_else_may_be_done(metadata: dict[str, Any]) -> None:
    assert effects(hooked(record(hook(5)), 10, machine=machine(**metadata))) == ["complete_hook"]


def test_a_hook_that_policy_leaves_alone_is_left_alone() -> None:
    done = hooked(record(hook(5)), 400, policy=ReactionPolicy())
    assert effects(done) == []


def test_an_instance_that_returns_to_the_warm_pool_is_not_drained() -> None:
    known = record(hook(5, destination="WarmPool"))
    for wait in ("Terminating:Wait", "Warmed:Pending:Wait", "Warmed:Terminating:Wait"):
        assert effects(hooked(known, 10, facts=facts(9, group=GROUP, lifecycle=wait))) == ["complete_hook"]
    assert effects(hooked(known, 10, facts=facts(9, group=GROUP, lifecycle="InService"))) == []


def test_an_instance_without_a_node_has_nothing_to_drain() -> None:
    assert effects(hooked(record(hook(5)), 10, owner=owner(node=""))) == ["complete_hook"]


def test_a_forged_hook_drains_nothing() -> None:
    known = record(hook(5))
    waiting = hooked(known, 10, facts=facts(9, group=GROUP, lifecycle="InService"))
    assert effects(waiting) == []
    forged = hooked(known, 90, facts=facts(89, group=GROUP, lifecycle="InService"))
    assert forged.steps == (refutation(hook(5).key),)
    after = refuted(known, hook(5).key, at(90))
    assert hooked(after, 400).steps == ()
    assert hooked(after, 400).phase == "Live"
    assert "hooks" not in hooked(after, 400).patch["metadata"]["annotations"][EVENTS_ANNOTATION]
    assert effects(hooked(known, 90, facts=facts(89, group="another", lifecycle="Terminating:Wait"))) == [
        "count_refuted"
    ]


@pytest.mark.parametrize("retained", [{}, {"machine": machine(**PAUSED)}], ids=["free", "paused"])
@pytest.mark.parametrize(
    ("transition", "done"),
    [("launching", owner(ready=True)), ("terminating", owner(node=""))],
    ids=["launching", "terminating"],
)
def test_a_forged_hook_is_not_completed_either(transition: str, done: Machine, retained: dict[str, Any]) -> None:
    """Auto Scaling would refuse it, and an alert would report a hook that was completed too late."""
    known, whole = record(hook(5, transition)), {"owner": done, **retained}
    elsewhere = {"group": "", "lifecycle": ""}
    unasked = hooked(known, 6, facts=None, **whole)
    assert (effects(unasked), questions_of(unasked)) == ([], (Question.GROUP, Question.INSTANCE))
    waiting = hooked(known, 10, facts=facts(9, **elsewhere), **whole)
    assert (effects(waiting), waiting.deadline) == ([], at(19))
    refuting = hooked(known, 90, facts=facts(89, **elsewhere), **whole)
    assert (effects(refuting), refuting.steps[0].cause) == (["count_refuted"], hook(5).key)  # type: ignore[attr-defined]


def test_a_confirmed_hook_is_completed_without_asking_again() -> None:
    waits = facts(6, group=GROUP, lifecycle="Pending:Wait")
    world = observed(record(hook(5, "launching")), policy=DRAINING, timings=TIMINGS).with_answer(waits, {})
    ready = world.model_copy(update={"owner": owner(ready=True)})
    assert effects(work_for_instance(ready, at(290))) == ["complete_hook"]
    unready = work_for_instance(world, at(290))
    assert (effects(unready), questions_of(unready)) == ([], ())


def test_a_completion_under_way_is_not_cancelled_when_the_answer_of_aws_is_outdated() -> None:
    waits, ended = ({"group": GROUP, "lifecycle": each} for each in ("Pending:Wait", "Pending:Proceed"))
    whole: dict[str, Any] = {"policy": DRAINING, "timings": TIMINGS, "owner": owner(ready=True)}
    known = record(hook(5, "launching"))
    begun, step = State(observed(known, facts=facts(6, **waits), **whole)).step(decide_instance, at(7))
    (completion,) = (each.slot for each in step.start if isinstance(each, EndHook))
    later = begun.copy(world=observed(known, facts=facts(8, **ended), **whole))
    assert completion not in later.step(decide_instance, at(9))[1].cancel


def test_an_answer_from_before_a_hook_does_not_confirm_it() -> None:
    waits = facts(4, group=GROUP, lifecycle="Pending:Wait")
    world = observed(record(hook(5, "launching")), policy=DRAINING, owner=owner(ready=True)).with_answer(waits, {})
    assert effects(work_for_instance(world, at(6))) == []


def test_a_hook_is_asked_about_before_the_node_is_drained() -> None:
    done = hooked(record(hook(5)), 10, facts=None)
    assert (effects(done), questions_of(done)) == ([], (Question.GROUP, Question.INSTANCE))


def test_an_instance_of_a_pool_without_machines_is_drained_by_its_node() -> None:
    pool = AWSMachinePool.model_validate({"metadata": {"name": GROUP, "namespace": "clusters", "uid": "u-p"}})
    because = Because(sort="hook", since=at(5))
    done = hooked(record(hook(5)), 10, machine=None, owner=None, pool=pool, joined="node-7")
    which = NODE | {"node": "node-7", "pool": GROUP}
    assert done.steps == (CordonNode(**which, cause=hook(5).key, taken=True, because=because),)
    known = cordoned(record(hook(5)), hook(5).key, "node-7")
    begun = hooked(known, 10, machine=None, owner=None, pool=pool, joined="node-7")
    until = at(5 + 48 * 3600 - 60)
    assert begun.steps == (EmptyNode(**NODE | {"node": "node-7"}, cause=hook(5).key, until=until, because=because),)
    assert done.patch == {}


def test_a_drain_in_a_pool_without_machines_is_told_on_its_node() -> None:
    pool = AWSMachinePool.model_validate({"metadata": {"name": GROUP, "namespace": "clusters", "uid": "u-p"}})
    alone: dict[str, Any] = {"machine": None, "owner": None, "pool": pool, "joined": "node-7"}
    policy = DRAINING.model_copy(update={"name": "p", "channels": (Channel(name="a", causes=(CauseSort.HOOK,)),)})
    cordon, notify = hooked(record(hook(5)), 10, policy=policy, **alone).steps
    assert isinstance(cordon, CordonNode)
    assert isinstance(notify, Notify)
    assert (cordon.about, notify.about) == ((about_node("node-7"),), ())
    (drain,) = hooked(cordoned(record(hook(5)), hook(5).key, "node-7"), 10, policy=policy, **alone).steps[:1]
    assert isinstance(drain, EmptyNode)
    assert drain.about == (about_node("node-7"),)


@pytest.mark.parametrize(("misses", "seconds"), [(0, 48 * 3600), (3, 3600)])
def test_a_launch_that_its_pool_never_lists_is_closed(misses: int, seconds: int) -> None:
    meta = {"name": GROUP, "namespace": "clusters", "uid": "u-p"}
    pool = AWSMachinePool.model_validate({"metadata": meta})
    known = record(hook(0, "launching")).model_copy(update={"misses": misses})
    alone: dict[str, Any] = {"machine": None, "owner": None, "policy": ReactionPolicy()}
    waiting = hooked(known, seconds - 1, **alone, pool=pool)
    assert (waiting.close, waiting.deadline) == (False, at(seconds))
    assert hooked(known, seconds, **alone, pool=pool).close
    listing = {"providerIDList": [f"aws:///eu-central-1a/{ID}"]}
    listed = AWSMachinePool.model_validate({"metadata": meta, "spec": listing})
    assert not hooked(known, seconds, **alone, pool=listed).close
    planned = fold(known, scheduled(0, at(DAY * 14)))
    assert not hooked(planned, seconds, **alone, pool=pool).close
    assert not hooked(known, seconds, **alone | {"policy": DRAINING}, pool=pool).close, "its hook is completed first"


LISTED_POOL = AWSMachinePool.model_validate(
    {
        "metadata": {"name": GROUP, "namespace": "clusters", "uid": "u-p"},
        "spec": {
            "providerID": f"arn:aws:autoscaling:{KEY.region}:{KEY.account}:x:1:autoScalingGroupName/{GROUP}",
            "providerIDList": [f"aws:///eu-central-1a/{ID}"],
        },
    }
)
ALONE: dict[str, Any] = {"machine": None, "owner": None, "pool": LISTED_POOL, "joined": "node-7"}


@pytest.mark.parametrize("gone", [{"value": "terminated"}, {"found": False}], ids=["terminated", "unknown"])
def test_the_lost_end_of_a_drained_instance_in_a_pool_without_machines_is_noticed(gone: dict[str, Any]) -> None:
    """No sweep includes it; its workflow would stay open for ever."""
    drained = hook_ended(cordoned(record(hook(4)), hook(4).key, "node-7", at(80)), "t-1", at(90))
    waiting = work(drained, 900, facts=facts(800), **ALONE)
    assert (effects(waiting), questions_of(waiting), waiting.deadline) == ([], (), at(DAY + 800))
    assert questions_of(work(drained, DAY + 800, facts=facts(800), **ALONE)) == (Question.INSTANCE,)
    world = observed(drained, facts=facts(800), **ALONE)
    for seconds in (DAY + 800, DAY + 900, DAY + 1000):
        world = world.with_answer(facts(seconds, **gone), {})
    assert work_for_instance(world, at(DAY + 5000)).close


def test_the_lost_end_of_a_scheduled_event_in_a_pool_without_machines_is_noticed() -> None:
    known = cordoned(record(scheduled(5, at(100))), "arn:h@" + str(int(at(100).timestamp())), "node-7", at(80))
    world = observed(known, policy=ReactionPolicy(ending=Reaction.DRAIN), facts=facts(90, scheduled=(STOP,)), **ALONE)
    asking = work_for_instance(world, at(DAY + 90))
    assert (effects(asking), questions_of(asking)) == ([], (Question.INSTANCE, Question.STATUS))
    over = work_for_instance(world.with_answer(facts(DAY + 90), {}), at(DAY + 91))
    assert effects(over) == ["uncordon"]


def test_a_hook_by_deletion_of_the_machine_is_completed_once_it_is_gone() -> None:
    policy = ReactionPolicy(terminating_hook=Reaction.DELETE_MACHINE)
    assert effects(hooked(record(hook(5)), 10, policy=policy)) == ["delete_machine"]
    deleting = owner(deletionTimestamp="2026-05-04T10:00:07Z", finalizers=["x"])
    assert effects(hooked(record(hook(5)), 10, policy=policy, owner=deleting)) == []
    assert effects(hooked(record(hook(5)), 10, policy=policy, owner=None)) == ["complete_hook"]


def test_a_launch_waits_for_its_node() -> None:
    known = record(hook(0, "launching"))
    waits = {"facts": facts(9, group=GROUP, lifecycle="Pending:Wait")}
    waiting = hooked(known, 10, **waits)
    assert (effects(waiting), waiting.deadline) == ([], at(300))
    assert effects(hooked(known, 10, owner=owner(ready=True), **waits)) == ["complete_hook"]
    assert effects(hooked(known, 900)) == ["complete_hook"]


def test_a_failed_launch_is_abandoned_only_where_that_is_wanted_and_true() -> None:
    policy = DRAINING.model_copy(update={"abandon_failed_launch": True})
    known = heartbeat_sent(record(hook(0, "launching")), "t-1", at(890))
    waits = {"group": GROUP, "lifecycle": "Pending:Wait"}
    assert effects(hooked(known, 899, policy=policy, facts=facts(898, **waits))) == []
    unasked = hooked(known, 900, policy=policy, facts=None)
    assert (effects(unasked), questions_of(unasked)) == ([], (Question.GROUP, Question.INSTANCE))
    done = hooked(known, 900, policy=policy, facts=facts(899, **waits))
    assert done.steps == (EndHook(**HOOK, outcome="ABANDON", because=Because(sort="hook", since=at(0))),)
    assert effects(hooked(known, 900, policy=policy, owner=owner(ready=True))) == ["complete_hook"]
    assert effects(hooked(known, 900, policy=policy, facts=facts(899, group=GROUP, lifecycle="InService"))) == [
        "count_refuted"
    ]


# --- always ---

EVENTS = st.one_of(
    st.builds(
        state,
        st.sampled_from(["pending", "running", "stopping", "stopped", "shutting-down", "terminated"]),
        st.integers(0, 400),
    ),
    st.builds(spot, st.integers(0, 400), st.sampled_from(["terminate", "stop", "hibernate"])),
    st.builds(hook, st.integers(0, 400), st.sampled_from(["terminating", "launching"]), st.sampled_from(["a", "b"])),
    st.builds(scheduled, st.integers(0, 400), st.integers(0, 9 * DAY).map(at)),
)
IRREVERSIBLE = (DeleteOwner, CordonNode, EmptyNode)


@EXAMPLES
@given(st.lists(EVENTS, max_size=8), st.integers(0, 2 * DAY), st.sampled_from([None, "running", "stopped"]))
def test_nothing_irreversible_is_done_on_events_alone(
    events: list[InstanceEvent], seconds: int, answer: str | None
) -> None:
    known = record(*events)
    policy = deleting_all(terminating_hook=Reaction.DRAIN, launching_hook=True, abandon_failed_launch=True)
    told = facts(seconds, answer) if answer else None
    if told is not None:
        known = answered(known, told)
    done = work(known, seconds, policy=policy, facts=told)
    assert not [each for each in done.steps if isinstance(each, IRREVERSIBLE)]
    ended = [each for each in done.steps if isinstance(each, EndHook)]
    assert not [each for each in ended if each.outcome == "ABANDON" or seconds < policy.launch_timeout.total_seconds()]


@EXAMPLES
@given(st.lists(EVENTS, max_size=8), st.integers(0, 2 * DAY))
def test_what_is_waited_for_lies_ahead_and_labels_settle(events: list[InstanceEvent], seconds: int) -> None:
    known = record(*events)
    seen = observed(known, policy=DRAINING)
    done = work_for_instance(seen, at(seconds))
    assert done.deadline is None or done.deadline > at(seconds)
    assert seen.machine is not None
    labelled = seen.machine.model_validate(merge(seen.machine.model_dump(mode="json"), done.patch))
    assert work_for_instance(seen.model_copy(update={"machine": labelled}), at(seconds)).patch == {}
    assert len(labelled.metadata.annotations.get(EVENTS_ANNOTATION, "").encode()) <= 4096


@EXAMPLES
@given(
    st.lists(EVENTS, max_size=5),
    st.integers(0, 2 * DAY),
    st.floats(0, 0.999),
    st.sampled_from([None, "running", "stopped", "terminated"]),
    st.sampled_from([ReactionPolicy(), DRAINING, deleting_all(terminating_hook=Reaction.DELETE_MACHINE)]),
)
@example([hook(1, "terminating", "a")], 0, 0.5, "running", DRAINING)  # the consumer's clock is ahead by a second
@example([spot(0, "terminate")], 210, 0.999, None, DRAINING)  # asked of EC2 at the deadline, no moment before
def test_until_the_deadline_nothing_changes_by_itself(
    events: list[InstanceEvent], seconds: int, part: float, answer: str | None, policy: ReactionPolicy
) -> None:
    known, told = record(*events), facts(seconds, answer) if answer else None
    if told is not None:
        known = answered(known, told)
    first = work(known, seconds, policy=policy, facts=told)
    end = (first.deadline - at(0)).total_seconds() if first.deadline else seconds + 90 * DAY
    later = work(known, seconds + (end - seconds) * part, policy=policy, facts=told)
    assert (later.phase, later.patch, later.close) == (first.phase, first.patch, first.close)
    if not first.steps:
        assert not later.steps
