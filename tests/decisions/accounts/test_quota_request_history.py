"""What AWS's history of requests makes of a quota: the quota's value counts more than a refused request."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID, NOW
from temporalio.testing import ActivityEnvironment

from activities.aws.service_quotas import raise_quotas
from domain.accounts.actions.service_quotas import RaiseQuotas
from domain.accounts.resources import ServiceQuota

RULES = "L-0EA8095F"
WANTED = 200


class Account:
    """One member account's quotas, as a session and as its client."""

    def __init__(self, value: float, *requests: str) -> None:
        self._value = value
        self._requests = [
            {"QuotaCode": RULES, "ServiceCode": "vpc", "DesiredValue": WANTED, "Created": NOW, "Status": status}
            for status in requests
        ]
        self.asked = 0

    def member(self, *_: Any, **__: Any) -> Account:
        return self

    def service_quotas(self, _: str) -> Account:
        return self

    def get_paginator(self, _: str) -> Account:
        return self

    def paginate(self) -> list[dict[str, Any]]:
        return [{"RequestedQuotas": self._requests}]

    def get_service_quota(self, **_: str) -> dict[str, Any]:
        return {"Quota": {"Value": self._value}}

    def request_service_quota_increase(self, **_: object) -> None:
        self.asked += 1


def polled_status(account: Account) -> str:
    action = RaiseQuotas(
        account_id=AWS_ID, region="us-east-1", quotas={RULES: ServiceQuota(value=WANTED, status="TODO")}, since=None
    )
    found = ActivityEnvironment().run(lambda: raise_quotas(account, action))  # type: ignore[arg-type]
    return found.statuses[RULES]


@pytest.mark.parametrize("refused", ["DENIED", "NOT_APPROVED", "INVALID_REQUEST"])
def test_a_sufficient_quota_is_completed_whatever_became_of_its_request(refused: str) -> None:
    account = Account(WANTED, refused)
    assert (polled_status(account), account.asked) == ("COMPLETED", 0)


@pytest.mark.parametrize(
    ("ended", "status"),
    [
        ("DENIED", "DENIED"),
        ("NOT_APPROVED", "DENIED"),
        ("INVALID_REQUEST", "MANUAL_ACTION"),
        ("APPROVED", "COMPLETED"),
        ("CASE_CLOSED", "COMPLETED"),
    ],
)
def test_an_ended_request_for_a_low_quota_is_not_repeated(ended: str, status: str) -> None:
    account = Account(WANTED - 1, ended)
    assert (polled_status(account), account.asked) == (status, 0)


def test_a_low_quota_is_requested() -> None:
    account = Account(WANTED - 1)
    assert (polled_status(account), account.asked) == ("IN_PROGRESS", 1)
