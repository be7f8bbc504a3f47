"""What an audit of accounts says of open cases, of strange users and roles, and of quota requests."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID, NAME, SUFFIX, account, claim, ready_account, settle, world

from domain.accounts.claim_holder import holds, lost_link
from domain.accounts.constants import CLAIM_UID_ANNOTATION, OPERATOR_NAMESPACE
from domain.accounts.free_account_choice import is_free
from domain.accounts.resources import Account
from starters.cli.audits.accounts import without_claim
from starters.cli.audits.accounts.cases import unwanted_cases
from starters.cli.audits.accounts.inside import strange_identities, unwanted_requests


def pending(case_id: str = "") -> Account:
    status = {"state": "PendingVerification", "supportCaseID": case_id}
    return account(spec={"awsAccountID": AWS_ID}, status=status)


@pytest.mark.parametrize(
    ("accounts", "cases", "found"),
    [
        ([pending("case-1")], {"case-1": AWS_ID}, []),
        ([pending()], {"case-1": AWS_ID}, []),  # opened, and not noted yet: it is searched for
        ([pending("case-1")], {"case-1": AWS_ID, "case-2": AWS_ID}, ["support case case-2"]),
        ([ready_account()], {"case-1": AWS_ID}, ["support case case-1"]),
        ([], {"case-1": AWS_ID}, ["support case case-1"]),
        ([pending("case-1")], {}, []),
    ],
)
def test_a_case_without_a_waiting_account_is_found(
    accounts: list[Account], cases: dict[str, str], found: list[str]
) -> None:
    assert [finding.subject for finding in unwanted_cases(accounts, cases, "accounts")] == found


def test_users_and_roles_of_our_naming_belong_to_the_account_that_is_there() -> None:
    users = [f"osdManagedAdmin-{SUFFIX}", "osdManagedAdmin-zzz222", "somebody"]
    roles = [f"ManagedOpenShift-Support-{SUFFIX}", "ManagedOpenShift-Support-zzz222", "OrganizationAccountAccessRole"]
    found = [finding.subject for finding in strange_identities(ready_account(), users, roles, "accounts")]
    assert found == [
        f"IAM user osdManagedAdmin-zzz222 in {AWS_ID}",
        f"IAM role ManagedOpenShift-Support-zzz222 in {AWS_ID}",
    ]


@pytest.mark.parametrize(
    ("status", "region", "strange"),
    [
        ({}, "us-east-1", True),
        ({"regionalServiceQuotas": {"us-east-1": {"L-1": {"value": 1, "status": "IN_PROGRESS"}}}}, "us-east-1", False),
        ({"regionalServiceQuotas": {"us-east-1": {"L-1": {"value": 1, "status": "IN_PROGRESS"}}}}, "eu-west-1", True),
        ({"globalServiceQuotas": {"L-1": {"value": 1, "status": "IN_PROGRESS"}}}, "us-east-1", False),
        ({"globalServiceQuotas": {"L-1": {"value": 1, "status": "IN_PROGRESS"}}}, "eu-west-1", True),
    ],
)
def test_a_quota_request_is_open_if_the_account_shows_it(status: dict[str, Any], region: str, strange: bool) -> None:
    found = list(unwanted_requests(ready_account(status=status), region, ["L-1"], "accounts"))
    assert bool(found) is strange


HELD = {"claimLink": "claim", "claimLinkNamespace": "tenant"}


def its_claim(uid: str = "uid-claim", link: str = NAME) -> dict[str, Any]:
    return {"metadata": {"namespace": "tenant", "name": "claim", "uid": uid}, "spec": {"accountLink": link}}


@pytest.mark.parametrize(
    ("claims", "problem", "advice"),
    [
        ([its_claim()], "", ""),
        ([its_claim(link="")], "", ""),  # it is being bound
        ([], "does not exist", "create the AccountClaim"),
        ([its_claim("uid-of-a-later-one")], "the uid of a former claim", "a name that no AccountClaim has"),
        ([its_claim(link="free")], "spec.accountLink is free, which does not name the claim", "correct the claim's"),
    ],
)
@pytest.mark.parametrize("byoc", [False, True])
def test_an_account_whose_claim_is_gone_or_names_another_is_found(
    claims: list[dict[str, Any]], problem: str, advice: str, byoc: bool
) -> None:
    held = ready_account(spec={**HELD, "byoc": byoc})
    findings = list(without_claim([held, ready_account("free")], claims))
    assert [problem in each.problem for each in findings] == [True] * bool(problem)
    deleted = byoc and not advice.startswith("correct")
    assert all(("delete the Account" if deleted else advice) in each.advice for each in findings)


def test_only_a_claim_of_the_advised_new_name_gets_a_former_claims_account() -> None:
    former = {"annotations": {CLAIM_UID_ANNOTATION: "uid-former"}}
    held = ready_account(spec=HELD, status={"claimed": True}, meta=former)
    (found,) = without_claim([held], [its_claim()])
    assert "a name that no AccountClaim has" in found.advice
    later, cleaning = (claim(name, spec={"accountLink": NAME}) for name in ("claim", "cleaning"))
    entity = later.spec.legal_entity.model_dump()
    renamed = ready_account(spec={**HELD, "claimLink": "cleaning", "legalEntity": entity}, status={"claimed": True})
    assert [holds(later, held), holds(later, renamed), holds(cleaning, renamed)] == [False, False, True]


def test_a_claims_second_account_is_free_once_the_advice_is_followed() -> None:
    own, extra = ready_account(spec=HELD), ready_account("extra", spec=HELD, status={"claimed": True})
    (found,) = without_claim([own, extra], [its_claim()])
    assert found.subject == f"Account {OPERATOR_NAMESPACE}/extra"
    assert f"which has Account {NAME}, too" in found.problem
    assert "blank the Account's spec.claimLink and remove the Account's annotation" in found.advice
    its = claim(spec={"accountLink": NAME}, status={"state": "Ready"})
    entity = its.spec.legal_entity.model_dump()
    unlinked = ready_account("extra", spec={"legalEntity": entity}, status={"claimed": True})
    assert [holds(its, unlinked), lost_link(its, unlinked)] == [False, False]
    assert is_free(settle(world(unlinked)).account)
