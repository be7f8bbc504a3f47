"""Support cases: one per account whatever is lost, and resolved ones are seen."""

from __future__ import annotations

import pytest
from aws_lab import Lab

from activities.aws.support_cases import describe_cases
from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase
from engine.errors import Denied, Throttled, Unavailable

pytestmark = pytest.mark.integration


def opening(account_id: str, name: str, *, search: bool = False) -> OpenSupportCase:
    return OpenSupportCase(account_id=account_id, name=name, search=search)


def cases_of(lab: Lab, account_id: str) -> list[str]:
    return [case.id for case in lab.emulator.world().cases if account_id in case.subject]


def test_the_case_is_as_aws_expects(lab: Lab) -> None:
    account_id, name = lab.account()
    opened = lab.run(lab.activities.open_support_case, opening(account_id, name))
    answer = lab.sessions.payer().support().describe_cases(caseIdList=[opened.case_id], includeResolvedCases=True)
    (case,) = answer["cases"]
    assert case["subject"] == f"Add account {account_id} to Enterprise Support"
    assert (case["serviceCode"], case["categoryCode"]) == ("customer-account", "other-account-issues")
    assert (case["severityCode"], case["language"]) == ("high", "en")
    body = case["recentCommunications"]["communications"][0]["body"]
    assert body.splitlines()[-1] == f"[rh-internal-account-name: {name}]"


def test_a_lost_answer_leaves_one_case(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("support", "CreateCase", kind="after", count=1)
    with pytest.raises(Unavailable):
        lab.run(lab.activities.open_support_case, opening(account_id, name))
    found = lab.run(lab.activities.open_support_case, opening(account_id, name), attempt=2)
    assert cases_of(lab, account_id) == [found.case_id]


def test_a_resolved_case_of_an_earlier_life_is_adopted(lab: Lab) -> None:
    account_id, name = lab.account()
    first = lab.run(lab.activities.open_support_case, opening(account_id, name))
    lab.emulator.resolve_case(first.case_id)
    assert lab.run(lab.activities.open_support_case, opening(account_id, name, search=True)) == first
    assert cases_of(lab, account_id) == [first.case_id]


def test_a_limit_of_cases_passes_and_a_denial_does_not(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("support", "CreateCase", kind="error", code="CaseCreationLimitExceeded", count=1)
    with pytest.raises(Throttled) as limited:
        lab.run(lab.activities.open_support_case, opening(account_id, name))
    assert limited.value.delay is not None
    lab.emulator.fault("support", "CreateCase", kind="error", code="SubscriptionRequiredException", count=1)
    with pytest.raises(Denied):
        lab.run(lab.activities.open_support_case, opening(account_id, name))


def test_a_case_that_is_no_longer_needed_is_resolved_once(lab: Lab) -> None:
    lab.emulator.config(case_seconds=3600)
    account_id, name = lab.account()
    opened = lab.run(lab.activities.open_support_case, opening(account_id, name)).case_id
    resolve = ResolveSupportCase(account_id=account_id, case_id=opened)
    lab.run(lab.activities.resolve_support_case, resolve)
    assert describe_cases(lab.sessions, [opened]) == {opened: "resolved"}
    lab.run(lab.activities.resolve_support_case, resolve, attempt=2)
    lab.run(lab.activities.resolve_support_case, resolve.model_copy(update={"case_id": "case-nobody-knows"}))
    assert describe_cases(lab.sessions, [opened]) == {opened: "resolved"}


def test_one_call_looks_at_all_cases(lab: Lab) -> None:
    lab.emulator.config(case_seconds=3600)
    opened = []
    for _ in range(3):
        account_id, name = lab.account()
        opened.append(lab.run(lab.activities.open_support_case, opening(account_id, name)).case_id)
    lab.emulator.resolve_case(opened[0])
    lab.emulator.reset_ledger()
    statuses = describe_cases(lab.sessions, opened)
    assert statuses[opened[0]] == "resolved"
    assert set(statuses) == set(opened)
    assert "resolved" not in {statuses[opened[1]], statuses[opened[2]]}
    assert lab.calls("support", "DescribeCases") == 1


def test_an_unknown_case_hides_no_other(lab: Lab) -> None:
    account_id, name = lab.account()
    known = lab.run(lab.activities.open_support_case, opening(account_id, name)).case_id
    statuses = describe_cases(lab.sessions, ["case-12345678910-2020-unknown", known])
    assert set(statuses) == {known}


def test_no_case_costs_no_call(lab: Lab) -> None:
    assert describe_cases(lab.sessions, []) == {}
    assert lab.emulator.ledger().total() == 0
