"""A support case of an Account that ends before AWS Support has answered is resolved, as it is needed no more."""

from __future__ import annotations

import pytest
from account_objects import (
    AWS_ID,
    NOW,
    activities,
    ago,
    condition,
    decide_account,
    ready_account,
    refusal,
    settle,
    world,
)

from domain.accounts.actions.support_cases import ResolveSupportCase
from domain.accounts.resources import Account
from domain.refusal import ErrorType

CASE = "case-1"
DELETED = {"deletionTimestamp": "2026-05-01T12:00:00Z"}
RESOLVE = "aws.resolve_support_case"


def deleted(state: str, *conditions: dict[str, str], case_id: str = CASE) -> Account:
    status = {"state": state, "supportCaseID": case_id, "conditions": list(conditions)}
    return ready_account(meta=DELETED, status=status)


PENDING = condition("PendingVerification", entered=ago(hours=1))


def test_a_deleted_account_resolves_the_case_that_it_waited_for_and_goes() -> None:
    going = world(deleted("PendingVerification", PENDING))
    (resolve,) = decide_account(going, NOW).actions
    assert resolve == ResolveSupportCase(account_id=AWS_ID, case_id=CASE)
    after = settle(going)
    assert not after.exists
    assert after.known.identities_deleted


def test_a_case_that_was_opened_and_not_recorded_yet_is_resolved_too() -> None:
    going = world(deleted("InitializingRegions", case_id=""), known={"case_id": CASE, "regions": ()})
    assert activities(decide_account(going, NOW)) == [RESOLVE]


def test_a_denied_quota_leaves_no_case_behind_either() -> None:
    going = world(deleted("Failed", PENDING, condition("Failed")))
    assert activities(decide_account(going, NOW)) == [RESOLVE]


@pytest.mark.parametrize(
    "account",
    [
        deleted("Ready", PENDING, condition("Ready", entered=ago(minutes=5))),
        deleted("Failed", PENDING, condition("Ready", entered=ago(minutes=5)), condition("Failed")),
        deleted("Ready", condition("Ready")),
        deleted("PendingVerification", PENDING, case_id=""),
    ],
    ids=["Ready", "failed after Ready", "taken over", "no case yet"],
)
def test_a_case_that_is_resolved_or_was_never_opened_is_left_alone(account: Account) -> None:
    assert activities(decide_account(world(account), NOW)) == ["aws.delete_identities"]


def test_an_account_that_waits_again_resolves_its_new_case() -> None:
    before = condition("Ready", entered=ago(days=9))
    assert activities(decide_account(world(deleted("PendingVerification", PENDING, before)), NOW)) == [RESOLVE]


@pytest.mark.parametrize(("attempts", "requested"), [(2, RESOLVE), (3, "aws.delete_identities")])
def test_a_case_that_cannot_be_resolved_holds_no_deletion_up(attempts: int, requested: str) -> None:
    going = world(
        deleted("PendingVerification", PENDING), refusals={RESOLVE: refusal(ErrorType.DENIED, attempts=attempts)}
    )
    assert activities(decide_account(going, NOW)) == [requested]


def test_development_mode_and_protected_accounts_have_no_case_to_resolve() -> None:
    pending = deleted("PendingVerification", PENDING)
    assert activities(decide_account(world(pending, dev_mode=True), NOW)) == ["aws.delete_identities"]
    assert activities(decide_account(world(pending, protected=(AWS_ID,)), NOW)) == ["kube.patch"]
