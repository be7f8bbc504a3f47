"""The replaced operator's weaknesses in quotas, opt-in regions and closing, by number, and the traps beside them.

Effects are tried against the emulated AWS in `tests/integration/aws/test_aws_{quotas,opt_in,closing}.py`.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from account_objects import AWS_ID, NOW, account, activities, condition, config, pool, refusal, settle, world

from domain.accounts.account_lifecycle import decide
from domain.accounts.actions.opt_in_regions import EnableRegions, RegionStatuses
from domain.accounts.actions.service_quotas import QuotaStatuses, RaiseQuotas
from domain.accounts.constants import CLOSE_BACKOFF_SECONDS, CLOSE_LIMITED_UNTIL, PAUSE_ANNOTATION
from domain.accounts.pool import count, supply
from domain.accounts.resources import Account, AccountStatus, ServiceQuota
from domain.accounts.service_quotas import batches, quotas_of
from domain.decision import Outcome
from domain.refusal import ErrorType
from domain.writes import Patch

RULES, VCPUS = "L-0EA8095F", "L-1216C47A"


def verifying(**statuses: str) -> Account:
    listed = {code.replace("_", "-"): {"value": 100, "status": status} for code, status in statuses.items()}
    wanted = {code: {"value": 100, "status": ""} for code in listed}
    return account(
        spec={"awsAccountID": AWS_ID, "regionalServiceQuotas": {"default": wanted}},
        status={
            "state": "PendingVerification",
            "supportCaseID": "case-1",
            "conditions": [condition("PendingVerification")],
            "regionalServiceQuotas": {"us-east-1": listed},
        },
    )


def test_accounts_that_opt_in_count_as_supply_although_the_status_omits_them() -> None:
    states = ("OptingInRegions", "OptInRegionsEnabled")
    members = [account(f"osd-creds-mgmt-{state[:6]}", status={"state": state}) for state in states]
    counts = count(pool(), members, None)
    assert counts.accounts_progressing == 0
    assert supply(counts, members) == 2


def test_a_case_is_not_asked_about_for_the_sake_of_quotas() -> None:
    decision = decide(world(verifying(L_0EA8095F="IN_PROGRESS"), known={"resolved_case": "case-1"}), NOW)
    assert activities(decision) == ["aws.raise_quotas"]


@pytest.mark.parametrize("type_", [ErrorType.DENIED, ErrorType.INVALID, ErrorType.ABSENT, ErrorType.BUG])
def test_a_request_that_failed_is_never_shown_as_under_way(type_: ErrorType) -> None:
    of = verifying(L_0EA8095F="TODO")
    refused = {"aws.raise_quotas/us-east-1": refusal(type_, "not now")}
    decision = decide(world(of).model_copy(update={"refusals": refused}), NOW)
    assert not any(isinstance(action, Patch) for action in decision.actions)
    assert activities(decision) == ["aws.raise_quotas"], "it is tried again"


@pytest.mark.parametrize("end", ["COMPLETED", "DENIED", "MANUAL_ACTION"])
def test_no_end_of_a_request_leads_to_another_request(end: str) -> None:
    done = verifying(L_0EA8095F="TODO", L_1216C47A="TODO")
    settled = settle(
        world(done, known={"resolved_case": "case-1"}),
        answers={"aws.raise_quotas": lambda a: QuotaStatuses(statuses=dict.fromkeys(a.quotas, end))},
    )
    found = {q.status for codes in quotas_of(settled.account.status).values() for q in codes.values()}
    assert found == {end}
    assert settled.account.status.state == ("Failed" if end == "DENIED" else "Ready")


def test_more_requests_than_there_should_be_are_still_looked_at() -> None:
    codes = {f"L-{number}": ServiceQuota(value=1, status="IN_PROGRESS") for number in range(30)}
    of = account().model_copy(update={"status": AccountStatus(regional_service_quotas={"us-east-1": codes})})
    (look,) = batches(world(of), quotas_of(of.status))
    assert len(look.quotas) == 30


def test_an_account_that_a_denial_failed_can_be_tried_again_with_its_id() -> None:
    failed = settle(
        world(verifying(L_0EA8095F="TODO")),
        answers={"aws.raise_quotas": lambda a: QuotaStatuses(statuses=dict.fromkeys(a.quotas, "DENIED"))},
    )
    assert failed.account.status.state == "Failed"
    retried = failed.account.model_dump(mode="json")
    retried["metadata"]["annotations"] = {"perdure.dev/retry": "1"}
    again = settle(
        world(Account.model_validate(retried)),
        answers={"aws.raise_quotas": lambda a: QuotaStatuses(statuses=dict.fromkeys(a.quotas, "COMPLETED"))},
        now=NOW + timedelta(minutes=1),
    )
    assert again.account.status.state == "PendingVerification"
    assert again.account.spec.aws_account_id == AWS_ID
    assert again.account.status.regional_service_quotas["us-east-1"][RULES].status == "COMPLETED"


def test_a_region_with_unreadable_status_affects_only_its_account() -> None:
    of = account(
        spec={"awsAccountID": AWS_ID},
        status={"state": "OptingInRegions", "optInRegions": {"af-south-1": {"status": "TODO"}}},
    )
    on = config(**{"feature.opt_in_regions": "true", "opt-in-regions": "af-south-1"})
    refused = {EnableRegions.activity: refusal(ErrorType.INVALID, "no such thing")}
    decision = decide(world(of, config=on).model_copy(update={"refusals": refused}), NOW)
    assert activities(decision) == ["aws.enable_regions"]
    after = decision.actions[0].fold(world(of, config=on), RegionStatuses(statuses={"af-south-1": "ENABLED"}))
    assert decide(after, NOW).outcome is Outcome.WORKING


def test_quotas_of_an_account_are_read_by_one_observation_per_region() -> None:
    looks = decide(world(verifying(L_0EA8095F="TODO", L_1216C47A="IN_PROGRESS")), NOW).actions
    assert [(look.region, set(look.quotas)) for look in looks if isinstance(look, RaiseQuotas)] == [
        ("us-east-1", {RULES, VCPUS})
    ]


def test_trap_2_pausing_and_backing_off_are_annotations_of_two_domains() -> None:
    assert "openshift.com/" in PAUSE_ANNOTATION
    assert all("openshift.io/" in name for name in (CLOSE_LIMITED_UNTIL, CLOSE_BACKOFF_SECONDS))


def test_trap_14_closing_is_a_dry_run_even_when_the_feature_is_on() -> None:
    assert config(**{"feature.close_on_release": "true"}).close_dry_run
    assert config(**{"feature.close_on_release": "true", "close_account.dry_run": "perhaps"}).close_dry_run
