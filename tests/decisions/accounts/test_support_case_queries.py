"""Support cases that cannot be queried delay their own Accounts, and neither counts nor permits nor other cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from typing import Any, cast

import pytest
from account_objects import AWS_ID, CONFIG, NAME, NOW, account, ago, condition
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from activities.accounts import organization
from activities.accounts.cache import Reader
from activities.accounts.organization import OrganizationActivities
from activities.aws.session import Sessions
from activities.aws.support_cases import describe_cases
from domain.accounts.config import OperatorConfig
from domain.accounts.organization import ORGANIZATION, OrganizationMemory
from domain.accounts.passes import CaseResolved, OrganizationWorld, PassOrganization
from domain.accounts.resources import Account, AccountPool
from domain.accounts.support_case_polling import open_cases, youngest_case
from domain.identity import Key
from domain.resource import ObjectMeta
from engine.errors import Absent, ApiError, Denied, Invalid, Unavailable
from engine.settings import Settings

OPENED = [condition("PendingVerification", entered=ago(minutes=1))]
VERIFIED = {"state": "PendingVerification", "supportCaseID": "case-1", "conditions": OPENED}
PENDING = account(spec={"awsAccountID": AWS_ID}, status=VERIFIED)


class Cluster:
    """The Accounts and the ConfigMap, without a pool."""

    settings = Settings()
    key = staticmethod(attrgetter("key"))

    async def hold(self, meta: ObjectMeta) -> str:
        return ""

    async def accounts(self, seen: dict[str, str]) -> tuple[Account, ...]:
        return (PENDING,)

    async def config(self, seen: dict[str, str] | None = None) -> OperatorConfig:
        return CONFIG

    async def all(self, *_: object) -> tuple[AccountPool, ...]:
        return ()


@pytest.fixture
def support(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What AWS answers about cases, and the Accounts that hear that theirs is resolved."""
    scene: dict[str, Any] = {"answer": {}, "told": []}

    def described(*_: object) -> dict[str, str]:
        if isinstance(scene["answer"], ApiError):
            raise scene["answer"]
        return dict(scene["answer"])

    async def signal(_: Client, key: Key, __: str, resolved: CaseResolved) -> None:
        scene["told"].append(resolved.case_id)

    monkeypatch.setattr(organization, "describe_cases", described)
    monkeypatch.setattr(organization, "signal_with_start", signal)
    monkeypatch.setattr(organization, "names_in_progress", lambda *_: set())
    monkeypatch.setattr(organization, "count_active", lambda *_: 10)
    monkeypatch.setattr(organization, "now", lambda: NOW)
    return scene


async def passed(known: OrganizationMemory) -> OrganizationWorld:
    activities = OrganizationActivities(cast("Reader", Cluster()), cast("Sessions", None), cast("Client", None))
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, started_time=NOW)
    look = PassOrganization(key=ORGANIZATION, memory=known)
    return await environment.run(activities.pass_organization, look)


@pytest.mark.parametrize("refused", [Denied("no plan", code="AccessDenied"), Unavailable("500"), Invalid("odd")])
async def test_a_refused_query_of_cases_leaves_the_count_of_accounts(
    support: dict[str, Any], refused: ApiError
) -> None:
    support["answer"] = refused
    found = await passed(OrganizationMemory())
    assert found.known.room is not None
    assert found.known.room.active == 10
    assert f"support cases cannot be queried: {refused.message}" in found.decision.why


async def test_refused_queries_of_cases_are_repeated_no_more_often_than_others(support: dict[str, Any]) -> None:
    support["answer"] = {"case-1": "opened"}
    answered = await passed(OrganizationMemory())
    support["answer"] = Denied("no")
    found = await passed(OrganizationMemory())
    assert found.known.young_cases_at == NOW
    assert found.decision.deadline == answered.decision.deadline
    assert found.decision.deadline is not None
    assert found.decision.deadline > NOW + timedelta(seconds=5)


async def test_a_query_that_works_again_resolves_the_case_and_forgets_the_refusal(support: dict[str, Any]) -> None:
    support["answer"] = Denied("no")
    refused = (await passed(OrganizationMemory())).known
    support["answer"] = {"case-1": "resolved"}
    due = refused.model_copy(update={"young_cases_at": NOW - timedelta(hours=1)})
    found = await passed(due)
    assert support["told"] == ["case-1"]
    assert (found.known.young_cases, found.known.cases_problem) == ({}, "")


@pytest.mark.parametrize("edited", ["9999-12-31T23:59:59Z", ago(days=-3000)])
def test_a_time_in_the_future_in_one_account_delays_no_other_accounts_case(edited: str) -> None:
    conditions = [condition("PendingVerification", entered=edited)]
    ahead = account(spec={"awsAccountID": AWS_ID}, status={**VERIFIED, "supportCaseID": "c2", "conditions": conditions})
    young, _ = open_cases((PENDING, ahead), NOW)
    assert youngest_case(young, NOW) == NOW - timedelta(minutes=1)


class Support:
    """AWS Support and the payer's session; it refuses each query with an id that it does not accept."""

    def __init__(self, refusal: ApiError, *accepted: str) -> None:
        self._refusal, self._accepted = refusal, accepted

    def __getattr__(self, _: str) -> Any:
        return lambda *_: self

    def paginate(self, **request: Any) -> list[dict[str, Any]]:
        ids = request["caseIdList"]
        if not set(ids) <= set(self._accepted):
            raise self._refusal
        return [{"cases": [{"caseId": case, "status": "opened"} for case in ids]}]


@pytest.mark.parametrize("refusal", [Absent("unknown"), Invalid("malformed")])
def test_an_id_that_aws_does_not_accept_hides_no_other_case(refusal: ApiError) -> None:
    known = [f"case-{number}" for number in range(5)]
    found = describe_cases(cast("Sessions", Support(refusal, *known)), [*known, NAME])
    assert list(found) == known
