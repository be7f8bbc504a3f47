"""An Account from nothing to Creating: the permit, CreateAccount and its many answers, the limit, the zombies."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    BORN,
    NAME,
    NOW,
    account,
    activities,
    ago,
    claim_world,
    condition,
    config,
    fold,
    granted,
    present,
    refusal,
    settle,
    status_of,
    world,
    written_condition,
)
from definitions import schema_of

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM
from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.account_creation import AwaitAccount, CreateAccount, CreateRequest
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.constants import FINALIZER, OPERATOR_NAMESPACE, PAUSE_ANNOTATION
from domain.accounts.observed import AccountMemory, Permit, Verdict
from domain.accounts.resources import Account, AccountClaim
from domain.decision import Outcome
from domain.identity import Kind
from domain.refusal import ErrorType
from domain.resource import timestamp
from domain.runner import State
from domain.writes import Delete, Patch

OLD = {"creationTimestamp": ago(minutes=25)}
YOUNG = {"creationTimestamp": ago(minutes=24, seconds=59)}
NOBODY = {"ownerReferences": []}


def test_an_account_without_finalizer_and_id_gets_both_before_anything_else() -> None:
    bare = account(meta={"finalizers": ["other"], "labels": {}})
    decision = decide(world(bare, known={"permit": granted()}), NOW)
    (patch,) = decision.actions
    assert isinstance(patch, Patch)
    assert patch.patch == {
        "metadata": {"finalizers": ["other", FINALIZER], "labels": {"iamUserId": "bcd456"}},
        # as Go structs always show them
        "spec": {"awsAccountID": "", "iamUserSecret": "", "claimLink": "", "legalEntity": {"id": "", "name": ""}},
    }
    assert patch.subresource == ""
    assert patch.resource_version == "7"


@pytest.mark.parametrize("kind", [ACCOUNT, ACCOUNT_CLAIM])
def test_the_first_write_of_an_object_without_a_spec_has_all_required_fields(kind: Kind) -> None:
    bare = {"metadata": {"name": "bare", "namespace": OPERATOR_NAMESPACE, "uid": "1"}}
    of_account = decide(world(Account.model_validate(bare)), NOW)
    of_claim = decide_claim(claim_world(AccountClaim.model_validate(bare)), NOW)
    (patch,) = (of_account if kind == ACCOUNT else of_claim).actions
    assert isinstance(patch, Patch)
    spec = patch.patch["spec"]
    assert isinstance(spec, dict)
    assert {*schema_of(kind.name)["properties"]["spec"]["required"]} <= spec.keys()


def test_an_account_that_says_whose_it_is_keeps_that_in_its_first_write() -> None:
    spec = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": "entity-1", "name": "One"}}
    (patch,) = decide(world(account(meta={"labels": {}}, spec=spec)), NOW).actions
    assert isinstance(patch, Patch)
    empty = {"awsAccountID": "", "iamUserSecret": ""}
    assert patch.patch["spec"] == {**empty, "claimLink": "claim", "legalEntity": {"id": "entity-1", "name": "One"}}


def test_an_existing_id_stays_and_a_missing_one_uses_the_same_alphabet() -> None:
    labelled = account(meta={"finalizers": [], "labels": {"iamUserId": "zzz999"}})
    assert decide(world(labelled), NOW).actions[0].patch["metadata"]["labels"] == {"iamUserId": "zzz999"}  # type: ignore[attr-defined]
    named = account("my-account", meta={"labels": {}})
    label = decide(world(named), NOW).actions[0].patch["metadata"]["labels"]["iamUserId"]  # type: ignore[attr-defined]
    assert len(label) == 6
    assert set(label) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_without_a_permit_nothing_is_asked_of_aws() -> None:
    decision = decide(world(), NOW)
    assert decision.actions == ()
    assert decision.outcome is Outcome.WAITING
    assert decision.waits_for == ("Organization",)


def test_a_permit_leads_to_one_create_named_and_mailed_after_the_resource() -> None:
    permit = granted()
    decision = decide(world(known={"permit": permit}), NOW)
    (create,) = decision.actions
    assert isinstance(create, CreateAccount)
    assert (create.name, create.email) == (NAME, "osd-creds-mgmt+bcd456@redhat.com")
    assert create.until == permit.until == decision.deadline
    assert not create.search


def test_a_life_that_was_under_way_before_searches_before_it_creates() -> None:
    (create,) = decide(world(known={"permit": granted(), "inherited": True}), NOW).actions
    assert isinstance(create, CreateAccount)
    assert create.search


def test_an_expired_permit_creates_nothing() -> None:
    permit = granted(minutes=0)
    assert decide(world(known={"permit": permit}), NOW).actions == ()
    assert decide(world(known={"permit": permit}), NOW - timedelta(seconds=1)).actions != ()


def test_a_known_request_is_waited_for_and_never_asked_again() -> None:
    (wait,) = decide(world(known={"permit": granted(), "request_id": "car-1"}), NOW).actions
    assert isinstance(wait, AwaitAccount)
    assert wait.request_id == "car-1"


def test_a_request_is_waited_for_however_old_the_account_is() -> None:
    ancient = account(meta={"creationTimestamp": ago(days=3)})
    decision = decide(world(ancient, known={"request_id": "car-1"}), NOW)
    assert activities(decision) == ["aws.await_account"]


def test_a_created_account_is_recorded_in_the_spec_before_the_state() -> None:
    new = world(known={"created_account_id": AWS_ID})
    (patch,) = decide(new, NOW).actions
    assert isinstance(patch, Patch)
    assert (patch.subresource, patch.patch) == (
        "",
        {"spec": {"awsAccountID": AWS_ID, "iamUserSecret": f"{NAME}-secret"}},
    )
    recorded = world(account(spec={"awsAccountID": AWS_ID}), known={"created_account_id": AWS_ID})
    status = status_of(decide(recorded, NOW))
    assert status["state"] == "Creating"
    creating = status["conditions"][-1]
    assert creating == {
        "type": "Creating",
        "status": "True",
        "reason": "Creating",
        "message": "Creating",
        "lastProbeTime": timestamp(NOW),
        "lastTransitionTime": timestamp(NOW),
    }


def test_a_preset_id_skips_creation_with_the_words_of_the_replaced_operator() -> None:
    preset = world(account(spec={"awsAccountID": AWS_ID}))
    assert written_condition(decide(preset, NOW), "Creating")["message"] == "AWS account already created"


def test_a_claimed_account_with_a_blank_state_is_left_alone() -> None:
    decision = decide(world(account(status={"claimed": True}), known={"permit": granted()}), NOW)
    assert decision.actions == ()
    assert decision.outcome is Outcome.WAITING


@pytest.mark.parametrize("code", ["ConstraintViolationException", "ACCOUNT_LIMIT_EXCEEDED"])
def test_the_limits_of_the_organization_never_fail_an_account(code: str) -> None:
    start = world(known={"permit": granted()})
    create = decide(start, NOW).actions[0]
    after = fold(start, create, refusal(ErrorType.INVALID, code=code))
    assert after.known.permit is None
    decision = decide(after, NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())


@pytest.mark.parametrize("permit", [None, granted(minutes=0)])
@pytest.mark.parametrize("code", ["ConstraintViolationException", "ACCOUNT_LIMIT_EXCEEDED"])
def test_at_a_limit_only_aws_knows_an_account_reports_it_and_yields_after_25_minutes(
    code: str, permit: Permit | None
) -> None:
    known = {"permit": permit, "failure": code}
    young = decide(world(account(meta={"creationTimestamp": ago(minutes=24)}), known=known), NOW)
    assert (young.outcome, young.actions, young.deadline) == (Outcome.WAITING, (), NOW + timedelta(minutes=1))
    assert code in young.why
    old = {"creationTimestamp": ago(minutes=25)}
    (gone,) = decide(world(account(meta=old), known=known), NOW).actions
    assert isinstance(gone, Delete)
    assert gone.dependent is not None
    alone = decide(world(account(meta={**old, "ownerReferences": []}, spec={"accountPool": ""}), known=known), NOW)
    assert (alone.actions, alone.deadline) == ((), None)
    again = world(account(meta=old), known={**known, "permit": granted()})
    (create,) = decide(again, NOW).actions
    requested = fold(again, create, CreateRequest(request_id="car-1"))
    unknown = fold(requested, decide(requested, NOW).actions[0], refusal(ErrorType.ABSENT))
    assert decide(unknown, NOW).actions == (), "what AWS may have begun is looked for first"


@pytest.mark.parametrize("code", ["ACCOUNT_LIMIT_EXCEEDED", "INTERNAL_FAILURE", "CONCURRENT_ACCOUNT_MODIFICATION"])
def test_a_request_that_ended_for_a_passing_reason_is_asked_again_with_a_new_permit(code: str) -> None:
    start = world(known={"permit": granted(), "request_id": "car-1"})
    wait = decide(start, NOW).actions[0]
    after = fold(start, wait, refusal(ErrorType.INVALID, code=code))
    assert decide(after, NOW).outcome is Outcome.WAITING
    renewed = after.learn(permit=granted())
    assert activities(decide(renewed, NOW)) == ["aws.create_account"]


@pytest.mark.parametrize(
    "code", ["EMAIL_ALREADY_EXISTS", "INVALID_ADDRESS", "PENDING_BUSINESS_VALIDATION", "MISSING_PAYMENT_INSTRUMENT"]
)
def test_a_request_that_ended_for_good_fails_the_account_with_its_reason(code: str) -> None:
    start = world(known={"permit": granted(), "request_id": "car-1"})
    after = fold(start, decide(start, NOW).actions[0], refusal(ErrorType.INVALID, code=code))
    decision = decide(after, NOW)
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, "AccountCreationFailed")
    assert (failed["reason"], failed["message"]) == (code, "Failed to create AWS Account")


def test_a_create_that_can_never_succeed_fails_the_account() -> None:
    start = world(known={"permit": granted()})
    create = decide(start, NOW).actions[0]
    decision = decide(fold(start, create, refusal(ErrorType.INVALID, code="InvalidInputException")), NOW)
    assert status_of(decision)["state"] == "Failed"
    assert written_condition(decision, "AccountCreationFailed")["reason"] == "InvalidInputException"


@pytest.mark.parametrize("type_", [ErrorType.DENIED, ErrorType.BUG, ErrorType.CONFLICT])
def test_denials_and_bugs_do_not_fail_an_account_that_has_none_yet(type_: ErrorType) -> None:
    start = world(known={"permit": granted()})
    after = fold(start, decide(start, NOW).actions[0], refusal(type_))
    assert activities(decide(after, NOW)) == ["aws.create_account"]


def test_an_expired_permit_is_requested_again() -> None:
    start = world(known={"permit": granted()})
    after = fold(start, decide(start, NOW).actions[0], refusal(ErrorType.INVALID, code="PermitExpired"))
    assert (after.known.permit, after.refusals) == (None, {})
    assert decide(after, NOW).outcome is Outcome.WAITING


def test_a_request_that_aws_does_not_know_is_searched_for_before_another_is_made() -> None:
    start = world(known={"permit": granted(), "request_id": "car-1"})
    after = fold(start, decide(start, NOW).actions[0], refusal(ErrorType.ABSENT))
    (create,) = decide(after.learn(permit=granted()), NOW).actions
    assert isinstance(create, CreateAccount)
    assert create.search


def test_a_create_that_a_pause_has_cancelled_searches_when_it_is_resumed() -> None:
    """The cancellation may come after a lost answer, while the server waits for the next attempt."""
    start = world(known={"permit": granted()})
    state, step = State(start, dirty=False).step(decide, NOW)
    paused = start.model_copy(update={"account": account(meta={"annotations": {PAUSE_ANNOTATION: "true"}})})
    state, step = state.observing(NOW).observed(paused).step(decide, NOW)
    (slot,) = step.cancel
    _, step = state.stopped(slot).observing(NOW).observed(start).step(decide, NOW)
    (create,) = step.start
    assert isinstance(create, CreateAccount)
    assert create.search


@pytest.mark.parametrize("type_", [ErrorType.UNAVAILABLE, ErrorType.BUG])
def test_a_create_without_a_usable_answer_searches_next_time(type_: ErrorType) -> None:
    start = world(known={"permit": granted()})
    after = fold(start, decide(start, NOW).actions[0], refusal(type_))
    (create,) = decide(after, NOW).actions
    assert isinstance(create, CreateAccount)
    assert create.search


def test_a_create_that_found_the_account_needs_no_request() -> None:
    start = world(known={"permit": granted()})
    after = fold(start, decide(start, NOW).actions[0], CreateRequest(created_account_id=AWS_ID))
    assert decide(after, NOW).why == f"record AWS account {AWS_ID}"


# --- the limit, and zombies ---


def limit_reached(message: str = "the organization is at its limit") -> Permit:
    return Permit(verdict=Verdict.LIMIT_REACHED, message=message)


def test_at_the_limit_the_condition_is_written_once_and_the_state_stays_blank() -> None:
    start = world(known={"permit": limit_reached()})
    decision = decide(start, NOW)
    status = status_of(decision)
    assert "state" not in status
    pending = written_condition(decision, "Pending")
    assert pending["reason"] == "AWSAccountLimitReached"
    assert pending["message"] == "AWS account limit reached, waiting for capacity"
    after = settle(start)
    assert after.account.status.state == ""
    assert decide(after, NOW + timedelta(minutes=1)).actions == ()


@pytest.mark.parametrize("verdict", [Verdict.BUDGET_SPENT, Verdict.QUEUED])
def test_budget_and_queue_are_waited_for_without_a_condition(verdict: Verdict) -> None:
    decision = decide(world(known={"permit": Permit(verdict=verdict, message="later")}), NOW)
    assert (decision.actions, decision.why) == ((), "later")
    assert verdict.value in decision.waits_for


def test_a_zombie_is_deleted_at_25_minutes_to_the_second() -> None:
    waiting = world(known={"permit": limit_reached()})
    settled = settle(waiting)
    decision = decide(settled, NOW)
    assert decision.deadline == BORN + timedelta(minutes=25)
    assert decide(settled, BORN + timedelta(minutes=25) - timedelta(seconds=1)).actions == ()
    assert activities(decide(settled, BORN + timedelta(minutes=25))) == ["kube.delete"]


@pytest.mark.parametrize(
    ("meta", "known", "deleted"),
    [
        (OLD, {"permit": limit_reached()}, True),
        (YOUNG, {"permit": limit_reached()}, False),
        (OLD, {"permit": granted()}, False),  # the way is free: it is created, however old
        (OLD, {"permit": limit_reached(), "request_id": "car-1"}, False),
        (OLD, {"permit": limit_reached(), "created_account_id": AWS_ID}, False),
        ({**OLD, **NOBODY}, {"permit": limit_reached()}, True),  # no owner, but it names its pool
    ],
)
def test_only_a_pools_account_without_any_aws_account_is_a_zombie(
    meta: dict[str, object], known: dict[str, object], deleted: bool
) -> None:
    decision = decide(world(account(meta=meta), known=known), NOW)
    assert ("kube.delete" in activities(decision)) is deleted


def test_an_account_without_a_pool_waits_beyond_25_minutes() -> None:
    lonely = account(meta={**OLD, **NOBODY}, spec={"accountPool": ""})
    decision = decide(settle(world(lonely, known={"permit": limit_reached()})), NOW)
    assert (decision.outcome, decision.deadline, decision.actions) == (Outcome.WAITING, None, ())


@pytest.mark.parametrize("state", ["Failed", "AccountCreationFailed", "InternalError", "AuthorizationError"])
def test_a_pools_failed_account_without_an_aws_account_gives_way_to_another(state: str) -> None:
    assert activities(decide(world(account(status={"state": state})), NOW)) == ["kube.delete"]


def test_the_pool_is_notified_of_an_account_that_gives_way_to_another() -> None:
    owner = {"kind": "AccountPool", "name": "pool", "uid": "uid-pool", "controller": True}
    failed = world(account(meta={"ownerReferences": [owner]}, status={"state": "Failed"}))
    here = failed.model_copy(update={"key": failed.key.model_copy(update={"cluster": "east"})})
    (action,) = decide(here, NOW).actions
    assert isinstance(action, Delete)
    assert action.dependent is not None
    assert action.dependent.workflow_id == f"east/AccountPool/{OPERATOR_NAMESPACE}/pool/uid-pool"


@pytest.mark.parametrize(
    ("spec", "meta"),
    [({"awsAccountID": AWS_ID}, {}), ({"accountPool": ""}, NOBODY), ({"byoc": True}, {})],
    ids=["with an id", "of no pool", "of a customer"],
)
def test_other_failed_accounts_stay(spec: dict[str, Any], meta: dict[str, object]) -> None:
    failed = account(spec=spec, meta=meta, status={"state": "Failed"})
    decision = decide(world(failed), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.FAILED, ())


def test_a_zombie_is_gone_after_its_deletion() -> None:
    after = settle(world(account(status={"state": "Failed"})))
    assert not after.exists
    assert decide(after, NOW).gone


# --- what stops an account before it begins ---


@pytest.mark.parametrize("protected", [{"config": config(payer_account_ids=f"1, {AWS_ID}")}, {"protected": (AWS_ID,)}])
@pytest.mark.parametrize("state", ["", "Creating", "InitializingRegions", "PendingVerification", "Ready"])
def test_payer_and_protected_accounts_are_never_touched(protected: dict[str, object], state: str) -> None:
    payer = account(spec={"awsAccountID": AWS_ID}, status={"state": state, "conditions": [condition(state)]})
    decision = decide(world(payer, **protected), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())
    assert AWS_ID in decision.why


def test_without_the_configmap_nothing_begins_and_it_heals_when_it_is_there() -> None:
    from domain.accounts.config import parse_config

    absent = world(config=parse_config(None), known={"permit": granted()})
    decision = decide(absent, NOW)
    assert (activities(decision), decision.waits_for) == (["kube.patch"], ("ConfigMap",))  # its condition
    assert decide(world(known={"permit": granted()}), NOW).actions != ()


def test_the_replaced_operators_pause_freezes_a_living_account_in_every_state() -> None:
    pause = {"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}
    for state in ("", "Creating", "InitializingRegions", "PendingVerification", "Ready", "Failed"):
        decision = decide(world(account(meta=pause, status={"state": state}), known={"permit": granted()}), NOW)
        assert (decision.phase, decision.actions, decision.outcome) == ("Paused", (), Outcome.WAITING)


def test_only_the_dot_com_annotation_with_true_pauses() -> None:
    for other in (
        {"aws.managed.openshift.io/pause-reconciliation": "true"},
        {"aws.managed.openshift.com/pause-reconciliation": "yes"},
    ):
        decision = decide(world(account(meta={"annotations": other}), known={"permit": granted()}), NOW)
        assert activities(decision) == ["aws.create_account"]


@pytest.mark.parametrize("state", ["Claimed", "Requested"])
def test_unknown_states_are_shown_and_not_changed(state: str) -> None:
    decision = decide(world(account(spec={"awsAccountID": AWS_ID}, status={"state": state})), NOW)
    assert (decision.actions, decision.outcome) == ((), Outcome.WAITING)
    assert "unknown to this version" in decision.why


def test_the_whole_creation_asks_aws_once_and_ends_in_creating() -> None:
    requests: list[str] = []
    start = world(known={"permit": granted()})
    current = start
    from account_objects import ANSWERS

    for _ in range(4):
        (action,) = decide(current, NOW).actions
        requests.append(action.activity)
        current = fold(current, action, ANSWERS[action.activity](action))
    assert requests == ["aws.create_account", "aws.await_account", "kube.patch", "kube.patch"]
    assert current.account.status.state == "Creating"
    assert current.account.spec.aws_account_id == AWS_ID
    present(current.account.status.conditions, "Creating")
    assert isinstance(current.known, AccountMemory)
