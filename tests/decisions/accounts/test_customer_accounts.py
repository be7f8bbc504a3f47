"""Accounts that customers have brought: how they are entered, what they wait for, how they end; as tables."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    account,
    activities,
    ago,
    claim,
    condition,
    config,
    first_of_each_slot,
    fold,
    refusal,
    settle,
    status_of,
    world,
    written_condition,
)

from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.iam_identities import DeleteIdentities, EnsureAdminUser, EnsureSupportRole
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion, ListRegions
from domain.accounts.constants import NOT_ENTERED
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.observed import AccountWorld, InputSecret
from domain.accounts.resources import Account
from domain.decision import Outcome
from domain.refusal import ErrorType
from domain.resource import condition_of

HELD = InputSecret(complete=True, held=True)
ROLE = f"arn:aws:iam::{AWS_ID}:role/customer"
JUMP = "arn:aws:iam::999999999999:role/sts-jump"
BYOC = {"byoc": True, "byocAWSAccountID": AWS_ID, "byocSecretRef": {"name": "keys", "namespace": "tenant"}}
STS = {"byoc": True, "manualSTSMode": True, "stsRoleARN": ROLE, "stsExternalID": "x-1"}
CONFIG = config(sts_jump_role=JUMP)
DELETED = {"deletionTimestamp": ago(minutes=1), "ownerReferences": []}
INITIALIZED = [condition("Creating"), condition("InitializingRegions")]


def customers(**fields: Any) -> Account:
    spec = {
        "accountPool": "",
        "byoc": True,
        "awsAccountID": AWS_ID,
        "claimLink": "claim",
        "claimLinkNamespace": "tenant",
        **fields.pop("spec", {}),
    }
    return account(meta={"ownerReferences": [], **fields.pop("meta", {})}, spec=spec, **fields)


def byoc(of: Account | None = None, *, spec: dict[str, Any] | None = None, **fields: Any) -> AccountWorld:
    holder = claim(spec={**BYOC, **(spec or {})}, **fields.pop("claim", {}))
    return world(of or customers(), **{"claim": holder, "input_secret": HELD, "config": CONFIG, **fields})


def sts(of: Account | None = None, **fields: Any) -> AccountWorld:
    of = of or customers(spec={"manualSTSMode": True})
    return byoc(of, spec=STS, input_secret=None, **fields)


def creating(**fields: Any) -> Account:
    status = {"state": "Creating", "claimed": True, "conditions": [condition("Creating")]}
    return customers(status=status, **fields)


def test_a_customers_account_becomes_ready_without_a_case_or_a_permit() -> None:
    after = settle(byoc())
    assert after.account.status.state == "Ready"
    assert after.account.status.claimed
    assert after.account.status.support_case_id == ""
    assert after.account.spec.iam_user_secret == f"{NAME}-secret"
    ready = condition_of(after.account.status.conditions, "Ready")
    assert ready is not None
    assert ready.message == "BYOC Account Ready"
    assert [c.type for c in after.account.status.conditions] == ["Creating", "InitializingRegions", "Ready"]
    assert decide(after, NOW).outcome is Outcome.SETTLED


def test_the_customers_key_makes_the_support_role_which_does_the_rest() -> None:
    (first,) = decide(byoc(creating()), NOW).actions
    assert isinstance(first, EnsureSupportRole)
    assert first.access is not None
    assert (first.access.namespace, first.access.secret, first.access.support_role) == ("tenant", "keys", "")
    user, regions = decide(byoc(creating(), known={"support_role": True}), NOW).actions
    assert isinstance(user, EnsureAdminUser)
    assert isinstance(regions, ListRegions)
    for action in (user, regions):
        assert action.access is not None
        assert action.access.support_role == f"ManagedOpenShift-Support-{NAME[-6:]}"


def test_only_the_claims_regions_are_initialised() -> None:
    of = customers(status={"state": "InitializingRegions", "claimed": True, "conditions": INITIALIZED})
    regions = {"aws": {"regions": [{"name": "eu-west-1"}, {"name": "eu-west-1"}]}, "kmsKeyId": "key-1"}
    decision = decide(byoc(of, spec=regions, known={"regions": ("eu-west-1", "us-east-1")}), NOW)
    (action,) = decision.actions
    assert isinstance(action, InitializeRegion)
    assert (action.region, action.kms_key_id) == ("eu-west-1", "key-1")


def test_a_claim_without_regions_needs_none() -> None:
    assert settle(byoc(spec={"aws": {"regions": []}})).account.status.state == "Ready"


def test_a_region_that_the_account_cannot_use_fails_it_at_once_and_by_name() -> None:
    decision = decide(
        byoc(
            creating(spec={"iamUserSecret": f"{NAME}-secret"}),
            spec={"aws": {"regions": [{"name": "mars-1"}]}},
            known={"support_role": True, "admin_secret": f"{NAME}-secret", "regions": ("us-east-1",)},
        ),
        NOW,
    )
    assert status_of(decision)["state"] == "Failed"
    failed = written_condition(decision, "AccountCreationFailed")
    assert failed["reason"] == "RegionNotSupported"
    assert failed["message"].startswith("AWS region mars-1 is not supported")


def test_in_sts_mode_nothing_is_made_in_iam() -> None:
    start = sts(creating(spec={"manualSTSMode": True}))
    (action,) = decide(start, NOW).actions
    assert isinstance(action, ListRegions)
    assert action.access is not None
    assert (action.access.jump_role, action.access.sts_role, action.access.external_id) == (JUMP, ROLE, "x-1")
    after = settle(start)
    assert after.account.status.state == "Ready"
    assert after.account.spec.iam_user_secret == ""


def test_there_is_no_deadline_before_the_regions() -> None:
    old = [condition("Creating", entered=ago(hours=30))]
    of = customers(status={"state": "Creating", "claimed": True, "conditions": old})
    decision = decide(byoc(of), NOW)
    assert (decision.deadline, activities(decision)) == (None, ["aws.ensure_support_role"])


TROUBLES = [
    ("no secret", {"input_secret": None}, "BYOCSecretMissing", "Secret tenant/keys"),
    ("half a secret", {"input_secret": InputSecret(complete=False, held=True)}, "BYOCSecretIncomplete", "tenant/keys"),
    (
        "a revoked key",
        {"refusals": {"aws.ensure_support_role": refusal(ErrorType.DENIED, code="InvalidClientTokenId")}},
        "InvalidClientTokenId",
        "Secret tenant/keys",
    ),
    (
        "a support role that cannot be assumed",
        {
            "known": {"support_role": True},
            "refusals": {"aws.ensure_admin_user": refusal(ErrorType.DENIED, "no payer's key", code=NOT_ENTERED)},
        },
        NOT_ENTERED,
        "no payer's key",
    ),
]


@pytest.mark.parametrize(("fields", "reason", "says"), [row[1:] for row in TROUBLES], ids=[r[0] for r in TROUBLES])
def test_an_error_of_the_customer_is_waited_for_and_shown(fields: dict[str, Any], reason: str, says: str) -> None:
    decision = decide(byoc(creating(), **fields), NOW)
    assert decision.outcome is Outcome.WAITING
    shown = written_condition(decision, "AuthenticationError")
    assert (shown["status"], shown["reason"]) == ("True", reason)
    assert says in decision.why
    assert status_of(decision).get("state", "Creating") == "Creating"


def test_trouble_is_written_once_and_lifted_when_it_is_over() -> None:
    shown = status_of(decide(byoc(creating(), input_secret=None), NOW))
    of = customers(status={"state": "Creating", "claimed": True, **shown})
    assert activities(decide(byoc(of, input_secret=None), NOW)) == ["aws.ensure_support_role"]
    after = settle(byoc(of))
    trouble = condition_of(after.account.status.conditions, "AuthenticationError")
    assert trouble is not None
    assert (trouble.status, after.account.status.state) == ("False", "Ready")


def test_a_denial_that_only_ec2_encodes_differently_is_not_written_again() -> None:
    words = "You are not authorized. Encoded authorization failure message: {} [request {}]"

    def denied(number: int, **status: Any) -> AccountWorld:
        of = customers(spec={"manualSTSMode": True}, status={"state": "Creating", "claimed": True, **status})
        found = refusal(ErrorType.DENIED, words.format(f"x{number}", number), code="UnauthorizedOperation")
        return sts(of, refusals={"aws.list_regions": found})

    first = decide(denied(1), NOW)
    assert activities(first) == ["kube.patch", "aws.list_regions"]
    assert activities(decide(denied(2, **status_of(first)), NOW)) == ["aws.list_regions"]


def test_a_refused_key_is_tried_again_beside_its_condition() -> None:
    denied = refusal(ErrorType.DENIED, code="InvalidClientTokenId")
    decision = decide(byoc(creating(), refusals={"aws.ensure_support_role": denied}), NOW)
    assert activities(decision) == ["kube.patch", "aws.ensure_support_role"]


def test_a_support_role_that_cannot_be_assumed_is_mended_once_with_the_customers_key() -> None:
    start = byoc(creating(), known={"support_role": True})
    user, _ = decide(start, NOW).actions
    shut = fold(start, user, refusal(ErrorType.DENIED, "not assumed", code=NOT_ENTERED))
    _, role, *others = decide(shut, NOW).actions
    assert isinstance(role, EnsureSupportRole)
    assert role.access is not None
    assert (role.access.secret, role.access.support_role) == ("keys", "")
    assert [type(action) for action in others] == [EnsureAdminUser, ListRegions]
    mended = fold(shut, role, None)
    assert "aws.ensure_support_role" not in activities(decide(mended, NOW)), "it would be ensured without a pause"
    again = fold(mended, user, refusal(ErrorType.DENIED, "not assumed", code=NOT_ENTERED))
    assert "aws.ensure_support_role" in activities(decide(again, NOW))
    assert settle(shut).account.status.state == "Ready"


def test_an_iam_refusal_of_the_support_role_fails_the_account_as_before() -> None:
    denied = {"aws.ensure_admin_user": refusal(ErrorType.DENIED, code="AccessDenied")}
    decision = decide(byoc(creating(), known={"support_role": True}, refusals=denied), NOW)
    assert written_condition(decision, "AuthorizationError")["reason"] == "AccessDenied"
    assert status_of(decision)["state"] == "Failed"


def test_without_its_claim_the_account_fails_in_the_known_words() -> None:
    decision = decide(world(customers(), config=CONFIG), NOW)
    failed = written_condition(decision, "AccountCreationFailed")
    assert failed["message"] == "Failed to initialize new CCS account"


@pytest.mark.parametrize(("start", "key"), [(byoc, "support-jump-role"), (sts, "sts-jump-role")])
def test_a_missing_jump_role_is_waited_for_by_name(start: Any, key: str) -> None:
    """W24: the replaced operator dies of a missing sts-jump-role."""
    of = creating(spec={"manualSTSMode": start is sts})
    keys = {"sts_jump_role": JUMP, key.replace("-", "_"): None}
    decision = decide(start(of, config=config(**keys)), NOW)
    assert decision.outcome is Outcome.WAITING
    assert [name for name in activities(decision) if name.startswith("aws.")] == []
    assert key in decision.why


# --- the end ---


def ready(**fields: Any) -> Account:
    conditions = [*INITIALIZED, condition("Ready")]
    spec = {"iamUserSecret": f"{NAME}-secret", **fields.pop("spec", {})}
    return customers(spec=spec, status={"state": "Ready", "claimed": True, "conditions": conditions}, **fields)


def releasing(of: Account | None = None, **fields: Any) -> AccountWorld:
    return byoc(of or ready(meta=DELETED), claim={"meta": {"deletionTimestamp": ago(minutes=1)}}, **fields)


def test_nothing_but_what_is_ours_is_removed_from_a_customers_account() -> None:
    seen: list[str] = []

    def note(action: Any) -> None:
        seen.append(action.activity)

    after = settle(releasing(), answers={"aws.delete_identities": note})
    assert not after.exists
    assert seen == ["aws.delete_identities"]


def test_an_initialisation_that_was_cut_has_its_launches_ended_and_no_more() -> None:
    of = customers(meta=DELETED, status={"state": "InitializingRegions", "claimed": True, "conditions": INITIALIZED})
    decision = decide(releasing(of, known={"regions": ("us-east-1",)}), NOW)
    assert [type(action) for action in decision.actions] == [EndLaunches]


def test_a_living_claim_keeps_its_account() -> None:
    decision = decide(byoc(ready(meta=DELETED)), NOW)
    assert "waits until claim" in decision.why
    assert activities(decision) == ["kube.patch"]


def test_in_sts_mode_the_account_is_released_at_once() -> None:
    of = ready(meta=DELETED, spec={"manualSTSMode": True, "iamUserSecret": ""})
    start = byoc(of, spec=STS, input_secret=None, claim={"meta": {"deletionTimestamp": ago(minutes=1)}})
    assert activities(decide(start, NOW)) == ["kube.patch"]
    assert not settle(start).exists


def denied(attempts: int) -> dict[str, Any]:
    return {"refusals": {"aws.delete_identities": refusal(ErrorType.DENIED, "no way in", attempts=attempts)}}


def test_key_and_support_role_take_turns_to_come_in() -> None:
    ways = []
    for attempts in (0, 1, 2):
        more = denied(attempts) if attempts else {}
        (action,) = first_of_each_slot(decide(releasing(**more), NOW))
        assert isinstance(action, DeleteIdentities)
        assert action.access is not None
        ways.append(action.access.support_role or action.access.secret)
    assert ways == ["keys", f"ManagedOpenShift-Support-{NAME[-6:]}", "keys"]


def test_an_account_that_cannot_be_entered_any_more_says_so_and_tries_on() -> None:
    """W19: the replaced operator never ends such a deletion, and does not say why."""
    first = decide(releasing(**denied(3)), NOW)
    assert activities(first) == ["kube.patch", "aws.delete_identities"]
    assert written_condition(first, "AccountClientError")["message"] == "no way in"
    failed = ready(meta=DELETED)
    status = failed.status.model_copy(update={"state": "Failed"})
    then = decide(releasing(failed.model_copy(update={"status": status}), **denied(4)), NOW)
    assert (then.outcome, activities(then)) == (Outcome.WAITING, ["aws.delete_identities"])
    assert "no way in" in then.why
    assert then.deadline == NOW - timedelta(minutes=1) + timedelta(hours=24)


def test_after_a_day_it_is_released() -> None:
    decision = decide(releasing(**denied(9)), NOW + timedelta(hours=24))
    assert decision.actions[0].activity == "kube.patch"
    assert decision.actions[0].last  # type: ignore[misc]


@pytest.mark.parametrize("on", ["claim", "account"])
def test_a_person_can_release_it_at_once(on: str) -> None:
    annotated = {"annotations": {FORCE_RELEASE: "the customer has left"}}
    of = ready(meta={**DELETED, **(annotated if on == "account" else {})})
    holder = {"deletionTimestamp": ago(minutes=1), **(annotated if on == "claim" else {})}
    start = byoc(of, claim={"meta": holder}, **denied(1))

    def never(_: Any) -> None:
        raise AssertionError("AWS was asked once more")

    after = settle(start, answers={"aws.delete_identities": never})
    assert not after.exists
    assert "the customer has left" in decide(start, NOW).why


def test_an_account_that_was_never_entered_leaves_nothing_and_is_gone_at_once() -> None:
    of = creating(meta=DELETED)
    assert not settle(releasing(of, **denied(3))).exists


def test_an_account_without_an_id_blocks_nothing() -> None:
    assert not settle(releasing(creating(meta=DELETED, spec={"awsAccountID": ""}))).exists


def test_whatever_refuses_for_good_a_day_is_the_longest() -> None:
    odd = {"refusals": {"aws.delete_identities": refusal(ErrorType.CONFLICT, "held by others", attempts=9)}}
    assert decide(releasing(**odd), NOW).actions[-1].activity == "aws.delete_identities"
    assert decide(releasing(**odd), NOW + timedelta(hours=24)).actions[0].last  # type: ignore[misc]


@pytest.mark.parametrize("payer", [{"protected": (AWS_ID,)}, {"config": config(payer_account_ids=AWS_ID)}])
def test_a_payers_account_is_neither_entered_nor_cleaned(payer: dict[str, Any]) -> None:
    assert decide(byoc(creating(), **payer), NOW).actions == ()
    assert activities(decide(releasing(**payer), NOW)) == ["kube.patch"]


def test_the_secret_of_an_earlier_account_is_waited_for_in_a_customers_account_too() -> None:
    of = byoc(creating(), known={"support_role": True, "regions": ("us-east-1",)})
    passing = {"aws.ensure_admin_user": refusal(ErrorType.CONFLICT, "an earlier one's", code="ForeignSecret")}
    assert activities(decide(of.model_copy(update={"refusals": passing}), NOW)) == ["aws.ensure_admin_user"]
    stranger = {"aws.ensure_admin_user": refusal(ErrorType.CONFLICT, "somebody else's", code="ForeignUser")}
    failed = status_of(decide(of.model_copy(update={"refusals": stranger}), NOW))
    assert failed["state"] == "Failed"
