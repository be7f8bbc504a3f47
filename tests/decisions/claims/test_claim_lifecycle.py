"""A ResourceClaim's own lifecycle: what is done with its handle, when it ends, and when it looks again by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from claim_domain import NAMES
from claim_scenes import BOUND, NOW, claim, config_map, entry, handle, provider

from domain.claims import claim_binding
from domain.claims.claim_binding import MOST_SALTS, Created, TakeHandle, Taken
from domain.claims.claim_deleted_with_handle import ClaimEnded
from domain.claims.claim_lifecycle import ClaimRead, decide
from domain.claims.claim_preparation import Claim, Validated
from domain.claims.evaluator_interface import ClaimPlan, Fault, Halt, HandlePlan
from domain.claims.handle_evaluation import plan_handle
from domain.claims.handle_reconciliation import Evaluate, Evaluated, HandleEnded, Read, ResourceOutcome
from domain.claims.json_objects import text_at
from domain.claims.periodic_evaluation import Cadence
from domain.claims.writes import PutObject, PutStatus, Stored
from domain.decision import Decision
from domain.identity import Key
from domain.refusal import ErrorType, Refusal
from domain.resource import timestamp

Json = dict[str, Any]
KEY = Key(kind="ResourceClaim", namespace="user-ada", name="mine", uid="claim-uid")
NAMED = {"resourceHandle": {"name": "guid-b7k2q"}}
MINUTE, SLOWLY, BY_CLOCK = timedelta(seconds=60), timedelta(hours=1), timedelta(seconds=90)
CADENCE = Cadence(by_clock=BY_CLOCK, refresh=SLOWLY, faulty=MINUTE)
BROKEN = Fault(reason="ResourceForbidden", message="ConfigMap things/a: forbidden")
SOON = NOW + timedelta(seconds=1)


def ours(each: Json, **metadata: Any) -> Json:
    return {**each, "metadata": {**each["metadata"], "finalizers": [NAMES.finalizer], **metadata}}


def named(status: Json | None = None, **metadata: Any) -> Json:
    """A claim of ours that says it has a handle."""
    return ours(claim(NAMED | (status or {}), lifespan={}), **metadata)


def held(status: Json | None = None, lifespan: Json | None = None, **metadata: Any) -> Json:
    return ours(handle(status=status or {}, **BOUND, **({"lifespan": lifespan} if lifespan else {})), **metadata)


def world(of: Json | None, by: Json | None = None, **fields: Any) -> Claim:
    seen = {"now": NOW, "names": NAMES, "handle": by or {}, "claim": of, "claim_observed": of or {}}
    return Claim.of(KEY, **seen, **{"cadence": CADENCE, **fields})


def validated(of: Json, by: Json | None = None, plan: ClaimPlan | None = None, **fields: Any) -> Claim:
    """Its own object is as it has to be, unless another plan is given."""
    return world(of, by, claim_plan=plan or ClaimPlan(status=of["status"]), **fields)


def settled(of: Json, by: Json, plan: HandlePlan | None = None, **fields: Any) -> Claim:
    """Its handle is as well."""
    plan = plan or HandlePlan()
    settled_at = {"spec": by["spec"], "handle_status": plan.handle_status or by.get("status", {})}
    return validated(of, by, read=True, answer=plan.model_copy(update=settled_at), **fields)


def does(decision: Decision) -> list[str]:
    return [action.activity.removeprefix("claims.") for action in decision.actions]


GOING, LEFT_ALONE = {"deletionTimestamp": timestamp(NOW)}, {"labels": {NAMES.ignore_label: ""}}
DETACHED = {"resourceHandle": {"name": "guid-b7k2q", "detached": True}}
OVER = {"end": timestamp(NOW)}
ENDED = HandleEnded(why="it is deleted")
REFUSED = ClaimEnded(why="it has expired", refused=("ConfigMap a: forbidden",))
ANOTHERS = ours(handle(resourceClaim={"namespace": "user-bob", "name": "mine"}))
SHOWN = ("ResourceClaim status with its handle",)


@pytest.mark.parametrize(
    ("seen", "phase", "actions"),
    [
        (world(None, exists=False), "Deleted", []),
        (world(named(**LEFT_ALONE)), "Ignored", ["let_go"]),
        (world(named(**LEFT_ALONE, finalizers=["others/wait"])), "Ignored", []),
        (world(named(**GOING)), "Deleting", ["end_handles"]),
        (world(named(**GOING), end=ENDED), "Deleting", ["let_go"]),
        (world(named(**GOING), end=REFUSED), "Deleting", []),
        (world(named(**GOING, finalizers=["others/wait"]), end=ENDED), "Deleting", []),
        (world(named(**GOING, finalizers=[]), end=ENDED), "Deleted", []),
        (world(named(), held(), end=ENDED), "Deleting", []),
        (world(named(DETACHED)), "Detached", []),
        (world(named({**DETACHED, "lifespan": OVER})), "Deleting", ["delete_claim"]),
        (world(ours(claim({}, lifespan={"start": timestamp(SOON)}))), "Waiting", []),
        (world(ours(claim({}))), "Binding", ["ask_binder"]),
        (world(ours(claim({})), asked=True), "Binding", []),
        (world(named()), "Reconciling", ["find_another_handle"]),
        (world(named(), has_another=False), "Deleting", ["delete_claim"]),
        (world(named(), has_another=True), "Binding", ["put_status"]),
        (world(named(), ANOTHERS), "Binding", ["put_status"]),
        (world(named(), ANOTHERS, fresh=False), "Reconciling", ["observe_again"]),
        (world(named(), held(**GOING)), "Deleting", ["end_handle_and_claim"]),
        (world(named(), held(**GOING, **LEFT_ALONE)), "Ignored", []),
        (world(named(), held(lifespan=OVER), fresh=False), "Reconciling", ["read_claim"]),
        (world(named(), held(lifespan=OVER)), "Reconciling", ["validate_claim"]),
        (world(named(), held(), begun=({},), lost=True), "Reconciling", ["observe_again"]),
        (world(named(), begun=({},)), "Reconciling", ["take_back"]),
        (world(named(), held(**GOING), begun=({},)), "Reconciling", ["take_back"]),
        (validated(named(finalizers=[]), held()), "Reconciling", ["put"]),
        (validated(named(), held(), ClaimPlan(status={})), "Reconciling", ["put_status"]),
        (validated(named(), held(**LEFT_ALONE)), "Ignored", []),
        (validated(named(), held()), "Reconciling", ["read_resources"]),
        (validated(named(), held(), read=True), "Reconciling", ["evaluate_handle"]),
        (settled(named(), held()), "Bound", []),
        (settled(named(), held(), HandlePlan(end=NOW)), "Deleting", ["end_handle_and_claim"]),
        (settled(named(), held(), HandlePlan(end=NOW), fresh=False), "Reconciling", ["observe_again"]),
        (
            settled(named(), held(), HandlePlan(end=NOW), fresh=False, claim_read=True),
            "Deleting",
            ["end_handle_and_claim"],
        ),
        (settled(named(), held(), HandlePlan(auto_delete=True)), "Deleting", ["delete_claim"]),
        (
            settled(named(), held(), HandlePlan(auto_delete=True), fresh=False, claim_read=True),
            "Reconciling",
            ["observe_again"],
        ),
        (settled(named(), held(), HandlePlan(auto_detach=True)), "Reconciling", ["put_status"]),
        (settled(named(DETACHED), held(), HandlePlan(auto_detach=True)), "Detached", ["end_handle"]),
        (settled(named(DETACHED), held(), HandlePlan(auto_detach=True), end=ENDED), "Detached", []),
    ],
)
def test_the_claim_and_the_state_of_its_handle_decide_the_actions(seen: Claim, phase: str, actions: list[str]) -> None:
    decision = decide(seen, NOW)
    assert (decision.phase, does(decision)) == (phase, actions)


@pytest.mark.parametrize(
    ("type_", "shown"), [(ErrorType.INVALID, True), (ErrorType.DENIED, True), (ErrorType.CONFLICT, False)]
)
def test_a_lasting_refusal_of_what_a_provider_adds_is_shown_on_the_claim(type_: ErrorType, shown: bool) -> None:
    plan = ClaimPlan(status=named()["status"], labels={"team": "the blue ones"})
    seen = validated(named(), held(), plan, push=True, conditional=True)
    (write,) = decide(seen, NOW).actions
    refusal = Refusal(type=type_, message="metadata.labels: Invalid value", at=NOW)
    after = write.refuse(seen, refusal)
    assert (after.question.push, after.conditional, bool(after.refusals)) == (not shown, not shown, not shown)
    if not shown:
        return
    (status,) = decide(after, NOW).actions
    assert isinstance(status, PutStatus)
    (stalled,) = status.after["status"]["conditions"]
    assert (stalled["reason"], refusal.message in stalled["message"]) == ("ClaimRefused", True)
    # Nothing at all can be written: it is tried again like any other refused write.
    assert write.refuse(after, refusal).refusals == {write.slot: refusal}


VALUES = {**NAMED, "provider": {"name": "base", "parameterValues": {"size": "x" * 99}}}


def test_a_lasting_refusal_of_the_validated_status_is_shown_on_the_claim() -> None:
    seen = validated(named(), held(), ClaimPlan(status=VALUES), push=True)
    (write,) = decide(seen, NOW).actions
    after = write.refuse(seen, Refusal(type=ErrorType.INVALID, message="etcdserver: request is too large", at=NOW))
    (status,) = decide(after, NOW).actions
    assert isinstance(status, PutStatus)
    (stalled,) = status.after["status"].pop("conditions")
    assert (stalled["reason"], "too large" in stalled["message"]) == ("ClaimRefused", True)
    assert (status.after["status"], after.question.push) == (NAMED, False)


@pytest.mark.parametrize(
    "seen",
    [
        validated(named(finalizers=[]), held(), push=True, conditional=True),
        validated(named(), held(), ClaimPlan(status=VALUES), push=True, conditional=True),
    ],
    ids=["metadata", "status"],
)
@pytest.mark.parametrize("type_", [ErrorType.INVALID, ErrorType.DENIED, ErrorType.UNAVAILABLE])
def test_a_claim_that_cannot_be_written_expires_all_the_same(seen: Claim, type_: ErrorType) -> None:
    while does(decide(seen, NOW)) in (["put"], ["put_status"]):
        (write,) = decide(seen, NOW).actions
        assert write.slot not in seen.refusals, "it is stuck"
        seen = write.refuse(seen, Refusal(type=type_, message="refused", at=NOW))
    assert seen.refusals, "the write is tried again later"
    again, read = decide(seen, NOW).actions
    assert (again.slot in seen.refusals, read.activity) == (True, "claims.read_resources")
    seen = read.fold(seen, Read(question=seen.question))
    _, evaluate = decide(seen, NOW).actions
    assert isinstance(evaluate, Evaluate)
    assert not evaluate.question.push, "what the claim does not show as accepted stays away from the handle"
    seen = evaluate.fold(seen, Evaluated(plan=HandlePlan(end=NOW)))
    assert does(decide(seen, NOW)) == ["end_handle_and_claim"]


def test_a_first_readiness_that_cannot_be_recorded_restarts_no_lifespan() -> None:
    end, live = NOW + MINUTE, config_map("a")
    waiting = named({"lifespan": {"start": timestamp(NOW - MINUTE), "end": timestamp(end)}}, finalizers=[])
    lasts = {"default": "2m", "end": timestamp(end)}
    ready = provider(healthCheck="true", readinessCheck="true")
    answers = {"push": True, "providers": {"base": ready}, "states": (live,)}
    seen = validated(waiting, handle(entry("base", template=live), lifespan=lasts, **BOUND), **answers)
    assert plan_handle(seen.question).end == NOW + 2 * MINUTE
    (write,) = decide(seen, NOW).actions
    refused = write.refuse(seen, Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW))
    for world_now in (refused, seen.recall(refused)):
        assert plan_handle(world_now.question).end == end


@pytest.mark.parametrize("type_", [ErrorType.CONFLICT, ErrorType.ABSENT, ErrorType.THROTTLED])
def test_a_claim_that_can_be_written_soon_waits_for_that(type_: ErrorType) -> None:
    seen = validated(named(), held(), ClaimPlan(status=VALUES), push=True)
    (write,) = decide(seen, NOW).actions
    after = write.refuse(seen, Refusal(type=type_, message="refused", at=NOW))
    assert decide(after, NOW).actions == (write,)


# --- when it looks again ---


@pytest.mark.parametrize(
    ("halt", "by_clock", "after"),
    [
        (Halt.NONE, True, MINUTE),
        (Halt.NONE, False, None),
        (Halt.INVALID, True, MINUTE),
        (Halt.INVALID, False, None),
        (Halt.APPROVAL, False, None),
        (Halt.FAULT, False, MINUTE),
    ],
)
def test_a_claim_without_handle_is_observed_by_the_clock_where_that_may_help(
    halt: Halt, by_clock: bool, after: timedelta | None
) -> None:
    plan = ClaimPlan(halt=halt, by_clock=by_clock)
    seen = validated(ours(claim({})), plan=plan, binds=True, none_free=True)
    decision = claim_binding.decide(seen, NOW)
    assert (decision.deadline, does(decision)) == (None if after is None else NOW + after, [])


@pytest.mark.parametrize(
    ("by_clock", "faults", "end", "after"),
    [
        (True, (), None, BY_CLOCK),
        (False, (), None, SLOWLY),
        (False, (BROKEN,), None, MINUTE),
        (True, (), timedelta(seconds=5), timedelta(seconds=5)),
    ],
    ids=["an override that reads the clock", "what no watch reports", "a resource that was refused", "the end"],
)
def test_while_an_edit_is_not_accepted_the_handle_is_looked_after_as_ever(
    by_clock: bool, faults: tuple[Fault, ...], end: timedelta | None, after: timedelta
) -> None:
    plan = HandlePlan(by_clock=by_clock, end=None if end is None else NOW + end)
    seen = settled(named(), held(), plan, unevaluated=faults, wrote=("ResourceHandle status",))
    decision = decide(seen.model_copy(update={"claim_plan": ClaimPlan(halt=Halt.INVALID)}), NOW)
    assert (decision.phase, decision.deadline) == ("Invalid", NOW + after)
    assert ("delete" in decision.at_deadline) is (end is not None)


@pytest.mark.parametrize(
    ("plan", "after"),
    [
        (ClaimPlan(halt=Halt.INVALID, by_clock=True), MINUTE),
        (ClaimPlan(halt=Halt.FAULT, fault=BROKEN), MINUTE),
        (ClaimPlan(), SLOWLY),
    ],
    ids=["an edit that the clock refuses", "a claim that could not be validated", "nothing"],
)
def test_a_fault_of_the_claim_itself_is_observed_again_soon(plan: ClaimPlan, after: timedelta) -> None:
    decision = decide(settled(named(), held()).model_copy(update={"claim_plan": plan}), NOW)
    assert decision.deadline == NOW + after


@pytest.mark.parametrize(("later", "patient"), [(timedelta(0), True), (timedelta(seconds=2), False)])
@pytest.mark.parametrize("halt", [Halt.NONE, Halt.INVALID])
def test_an_end_that_has_come_while_it_was_settled_is_its_own_workflows(
    halt: Halt, later: timedelta, patient: bool
) -> None:
    end = {"end": timestamp(SOON)}
    seen = settled(named({"lifespan": end}), held(lifespan=end), HandlePlan(end=SOON))
    decision = decide(seen.model_copy(update={"claim_plan": ClaimPlan(halt=halt)}), NOW + later)
    assert decision.deadline == SOON
    assert (decision.patience > timedelta(0)) is patient


# --- an edit that is refused ---


@pytest.mark.parametrize("corrected", [True, False])
def test_an_edit_refused_by_old_statuses_is_validated_again_on_new_ones(corrected: bool) -> None:
    seen = settled(named(), held({"ready": True}), HandlePlan(handle_status={"ready": True}))
    refused = ClaimPlan(status=named()["status"], halt=Halt.INVALID)
    seen = seen.model_copy(update={"claim_plan": refused, "handle_before": held()})
    (again,) = decide(seen, NOW).actions
    assert (again.activity, again.handle) == ("claims.validate_claim", held({"ready": True}))  # type: ignore[attr-defined]
    after = again.fold(seen, Validated(plan=ClaimPlan(status=named()["status"]) if corrected else refused))
    assert does(decide(after, NOW)) == ["read_resources"]
    after = after.model_copy(update={"read": True, "answer": seen.answer})
    decision = decide(after, NOW)
    assert (decision.phase, does(decision)) == ("Ready" if corrected else "Invalid", [])


def test_a_refusal_is_reported_once_it_is_shown_and_when_it_changes() -> None:
    errors: Json = {**NAMED, "provider": {"validationErrors": ["Parameter size is immutable."]}}
    refused = ClaimPlan(status=errors, halt=Halt.INVALID)
    assert decide(validated(named(), held(), refused), NOW).notices == ()
    seen = validated(named(), held(), refused, wrote=("ResourceClaim validated status",))
    assert [(each.reason, each.message) for each in decide(seen, NOW).notices] == [
        ("ValidationFailed", "Parameter size is immutable.")
    ]
    assert decide(validated(named(errors), held(), refused), NOW).notices == ()


# --- plans ---


@pytest.mark.parametrize("halt", [Halt.NONE, Halt.FAULT])
def test_a_plan_that_is_not_carried_out_is_planned_to_its_end(halt: Halt) -> None:
    of = ours(claim({}))
    plan = ClaimPlan(status={"provider": {"name": "base"}}, halt=halt, fault=BROKEN if halt else None)
    decision = decide(validated(of, plan=plan, plans_only=True), NOW)
    assert [each.summary for each in decision.actions] == ["write validated status of ResourceClaim mine"]
    assert (decision.phase, bool(decision.planned)) == (("Stalled", False) if halt else ("Binding", True))
    seen = validated(named(), held(), ClaimPlan(status={**NAMED, "provider": {}}), plans_only=True)
    assert does(decide(seen, NOW)) == ["put_status", "read_resources"]
    creation = HandlePlan(spec={"vars": {}}, creations=((0, {"kind": "Job", "metadata": {"name": "a"}}),))
    planned = decide(seen.model_copy(update={"read": True, "answer": creation}), NOW)
    assert [*(each.summary for each in planned.actions), *planned.planned] == [
        "write validated status of ResourceClaim mine",
        "write spec of ResourceHandle guid-b7k2q",
        "create Job a",
    ]


# --- the binder ---


@pytest.mark.parametrize(
    ("seen", "phase", "actions"),
    [
        (world(None, exists=False), "Deleted", []),
        (world(named(**GOING)), "Deleted", []),
        (world(ours(claim({})), hold="paused by mia"), "Binding", []),
        (world(ours(claim({}, lifespan={"start": timestamp(SOON)}))), "Waiting", []),
        (world(ours(claim({}))), "Reconciling", ["validate_claim"]),
        (validated(claim({}), held()), "Reconciling", ["put"]),
        (validated(ours(claim({})), plan=ClaimPlan(status={"a": 1}, halt=Halt.FAULT)), "Reconciling", ["put_status"]),
        (validated(ours(claim({})), plan=ClaimPlan(status={"a": 1})), "Binding", ["take_handle"]),
        (
            validated(ours(claim({})), plan=ClaimPlan(creation={}), none_free=True),
            "Binding",
            ["create_handle"],
        ),
        (
            validated(ours(claim({})), plan=ClaimPlan(status={"a": 1}), none_free=True),
            "WaitingForHandle",
            ["put_status"],
        ),
        (validated(ours(claim({})), held()), "Reconciling", ["put_status"]),
        (validated(named(), held(**LEFT_ALONE), wrote=SHOWN), "Bound", []),
        (
            validated(named(), held(), wrote=SHOWN),
            "Reconciling",
            ["read_resources"],
        ),
        (settled(named(), held()), "Bound", []),
        (settled(named(), held(), HandlePlan(end=NOW)), "Bound", []),
        (validated(named(), begun=({},)), "Reconciling", ["take_back"]),
        (world(named(), lost=True), "Reconciling", ["observe_again"]),
    ],
)
def test_the_binder_brings_a_claim_to_its_handle_and_ends_nothing(seen: Claim, phase: str, actions: list[str]) -> None:
    decision = claim_binding.decide(seen.model_copy(update={"binds": True}), NOW)
    assert (decision.phase, does(decision)) == (phase, actions)


def test_a_handle_of_a_refused_claim_that_lost_its_status_is_named_in_it_again() -> None:
    refused = ClaimPlan(status={"provider": {"name": "base", "validationErrors": ["No such parameter b."]}})
    seen = validated(ours(claim({})), held(), refused.model_copy(update={"halt": Halt.INVALID}), binds=True)
    for _ in range(2):
        (write,) = claim_binding.decide(seen, NOW).actions
        assert isinstance(write, PutStatus)
        seen = write.fold(seen, Stored(obj=write.after))
    assert text_at(seen.claim, "status", "resourceHandle", "name") == "guid-b7k2q"
    after = claim_binding.decide(seen, NOW)
    assert (after.phase, after.deadline, after.actions) == ("Invalid", NOW, ())
    assert claim_binding.decide(seen.model_copy(update={"handle_hold": "paused"}), NOW) == after
    assert [notice.reason for notice in after.notices] == ["ValidationFailed"]


# --- what results say ---


def test_a_free_handle_that_cannot_be_had_is_passed_over_after_some_tries() -> None:
    seen = validated(ours(claim({})), plan=ClaimPlan(creation={}), binds=True)
    for passed_over in [(), (), (), ("guid-b7k2q",)]:
        (take,) = claim_binding.decide(seen, NOW).actions
        assert isinstance(take, TakeHandle)
        assert take.passed_over == passed_over
        seen = take.fold(seen, Taken(name="guid-b7k2q") if not passed_over else Taken())
    assert does(claim_binding.decide(seen, NOW)) == ["create_handle"]


def test_names_that_are_taken_again_and_again_are_a_fault() -> None:
    seen = validated(ours(claim({})), plan=ClaimPlan(creation={}), binds=True, none_free=True)
    for _ in range(MOST_SALTS):
        (create,) = claim_binding.decide(seen, NOW).actions
        seen = create.fold(seen, Created())
    assert does(claim_binding.decide(seen, NOW)) == ["put_status"]
    assert seen.validation.fault == Fault(reason="NameTaken", message="all 8 names for its handle are taken")


def test_a_new_handle_without_resources_is_reported_before_they_are_created() -> None:
    seen = validated(ours(claim({})), plan=ClaimPlan(creation={}), binds=True, none_free=True)
    (create,) = claim_binding.decide(seen, NOW).actions
    seen = create.fold(seen, Created(handle=ours(handle(entry("base"), **BOUND))))
    assert (seen.made, seen.states_known, seen.states) == (True, True, (None,))
    (write,) = claim_binding.decide(seen, NOW).actions
    assert isinstance(write, PutStatus)
    assert text_at(write.after, "status", "resourceHandle", "name") == "guid-b7k2q"


@pytest.mark.parametrize(("conditional", "following"), [(False, "create_resource"), (True, "evaluate_handle")])
def test_resources_of_a_new_handle_are_created_by_the_plan_of_its_body(conditional: bool, following: str) -> None:
    """Conditions of the claim read its status, which is written after the handle is created."""
    seen = validated(ours(claim({})), plan=ClaimPlan(creation={}), binds=True, none_free=True)
    seen = seen.model_copy(update={"conditional": conditional})
    (create,) = claim_binding.decide(seen, NOW).actions
    made = ours(handle(entry("base"), **BOUND))
    plan = HandlePlan(spec=made["spec"], creations=((0, config_map("things")),), by_objects=False)
    seen = create.fold(seen, Created(handle=made, plan=plan))
    for expected in ("put_status", "read_resources", following):
        (action,) = claim_binding.decide(seen, NOW).actions
        assert action.activity == f"claims.{expected}"
        if expected != following:
            result = Stored(obj=action.after) if isinstance(action, PutStatus) else Read(question=seen.question)
            seen = action.fold(seen, result)


@pytest.mark.parametrize(("left", "actions"), [(named(**GOING), ["end_handles"]), (named(), [])])
def test_a_claim_that_nothing_keeps_is_gone_once_it_is_deleted(left: Json, actions: list[str]) -> None:
    seen = world(named(), has_another=False)
    (delete,) = decide(seen, NOW).actions
    assert does(decide(delete.fold(seen, Stored(obj=left)), NOW)) == actions


@pytest.mark.parametrize(
    ("ended", "phase", "actions"),
    [
        (ClaimEnded(why="it has expired", claim=named(**GOING)), "Deleting", ["let_go"]),
        (REFUSED.model_copy(update={"claim": named(**GOING)}), "Deleting", []),
        (ClaimEnded(why="it has expired", claim=named()), "Deleting", []),
        (ClaimEnded(why="it has expired"), "Deleted", []),
    ],
    ids=["it ends as well", "a resource cannot be asked to go", "it lives on", "it is gone"],
)
def test_a_claim_lets_go_of_itself_once_its_handle_has_ended(ended: ClaimEnded, phase: str, actions: list[str]) -> None:
    seen = settled(named(), held(), HandlePlan(end=NOW))
    (end,) = decide(seen, NOW).actions
    decision = decide(end.fold(seen, ended), NOW)
    assert (decision.phase, does(decision)) == (phase, actions)


def test_a_claim_that_asks_for_another_end_at_its_end_is_observed_again() -> None:
    seen = world(named(), held(lifespan=OVER), fresh=False)
    (read,) = decide(seen, NOW).actions
    assert does(decide(read.fold(seen, ClaimRead()), NOW)) == ["observe_again"]
    assert does(decide(read.fold(seen, ClaimRead(claim=named())), NOW)) == ["validate_claim"]


def test_the_statuses_are_written_although_a_resource_is_refused_for_now() -> None:
    jobs = tuple((index, {"kind": "Job"}) for index in range(2))
    plan = HandlePlan(creations=jobs, handle_status={"ready": False}, faults=(BROKEN,), claim_status=NAMED)
    seen = settled(named(), held(), plan)
    assert does(decide(seen, NOW)) == ["create_resource", "create_resource"]
    failure = Refusal(type=ErrorType.UNAVAILABLE, message="the webhook does not answer", at=NOW)
    one = seen.model_copy(update={"refusals": {"resource 0": failure}})
    assert does(decide(one, NOW)) == ["create_resource", "create_resource"]
    throttled = failure.model_copy(update={"type": ErrorType.THROTTLED})
    slower = decide(one.model_copy(update={"refusals": {"resource 0": failure, "resource 1": throttled}}), NOW)
    assert (does(slower), slower.notices) == (["create_resource", "create_resource"], ())
    both = decide(one.model_copy(update={"refusals": {"resource 0": failure, "resource 1": failure}}), NOW)
    assert does(both) == ["create_resource", "create_resource", "put_status"]
    assert [notice.message for notice in both.notices] == [BROKEN.message]


@pytest.mark.parametrize("type_", [ErrorType.CONFLICT, ErrorType.INVALID])
def test_the_handles_end_restarts_only_once_the_claim_requests_it(type_: ErrorType) -> None:
    """Otherwise each pass would restart it later, because none could record the first readiness."""
    by = held(lifespan={"end": timestamp(SOON)})
    later = timestamp(NOW + MINUTE)
    moved = {**by["spec"], "lifespan": {"end": later}}
    showing = HandlePlan(spec=moved, requested_end=later, handle_status={"ready": True}, claim_status=NAMED)
    seen = validated(named(), by, read=True, answer=showing)
    (first,) = decide(seen, NOW).actions
    assert first.summary == "write requested end of ResourceClaim mine"
    refused = first.refuse(seen, Refusal(type=type_, message="no", at=NOW))
    assert [each.summary for each in decide(refused, NOW).actions] == [
        "write requested end of ResourceClaim mine",
        "write status of ResourceHandle guid-b7k2q",
    ]
    assert isinstance(first, PutObject)
    written = first.fold(seen, Stored(obj=first.after))
    (second,) = decide(written, NOW).actions
    assert second.summary == "write spec of ResourceHandle guid-b7k2q"


def test_the_statuses_are_written_again_once_a_refused_resource_is_created() -> None:
    job = {"kind": "Job", "metadata": {"name": "a"}}
    seen = settled(named(), held(), HandlePlan(creations=((0, job),), handle_status={"ready": False}))
    (create,) = decide(seen, NOW).actions
    seen = create.refuse(seen, Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW))
    write = decide(seen.model_copy(update={"begun": ()}), NOW).actions[-1]
    assert isinstance(write, PutStatus)
    seen = create.fold(write.fold(seen, Stored(obj=write.after)), ResourceOutcome(state=job))
    ready = HandlePlan(spec=seen.handle["spec"], handle_status={"ready": True})
    seen = seen.model_copy(update={"answer": ready, "refusals": {}})
    assert [each.summary for each in decide(seen, NOW).actions] == ["write status of ResourceHandle guid-b7k2q"]


def test_created_objects_are_deleted_where_the_rest_of_a_pass_is_refused() -> None:
    plan = HandlePlan(creations=((0, {"kind": "Job"}), (1, {"kind": "Job"})))
    seen = settled(named(), held(), plan, begun=({"kind": "Job"},), begun_upon=held())
    assert does(decide(seen, NOW)) == ["create_resource", "create_resource"]
    refused = seen.model_copy(
        update={"refusals": {"resource 1": Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW)}}
    )
    assert does(decide(refused, NOW)) == ["create_resource", "create_resource", "take_back"]
