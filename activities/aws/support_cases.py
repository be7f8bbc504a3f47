"""Support cases. They exist only in us-east-1, and need a Business plan or better.

CreateCase has no idempotency token, so a later attempt first searches for a case with exactly this subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from activities import attempt
from activities.aws.session import Payer, Sessions
from domain.accounts.actions.support_cases import OpenSupportCase, ResolveSupportCase, SupportCase
from domain.accounts.constants import SUPPORT_CASE_SUBJECT
from engine.errors import Absent, Invalid, Throttled, Unavailable

if TYPE_CHECKING:
    from mypy_boto3_support.type_defs import CaseDetailsTypeDef, DescribeCasesRequestPaginateTypeDef

RESOLVED = "resolved"

_CASES_PER_CALL = 100  # the most ids that DescribeCases takes
_CASE_LIMIT = "CaseCreationLimitExceeded"
_LOST = (2, 3, 5, 8, 15, 30)


def open_support_case(sessions: Sessions, action: OpenSupportCase) -> SupportCase:
    sessions.refuse_protected(action.account_id)
    payer, subject = sessions.payer(), SUPPORT_CASE_SUBJECT.format(account_id=action.account_id)
    if action.search or attempt.repeated():
        found = _of_subject(payer, subject)
        if found:
            return SupportCase(case_id=found)
    try:
        answer = payer.support().create_case(
            subject=subject,
            serviceCode="customer-account",
            severityCode="high",
            categoryCode="other-account-issues",
            communicationBody=_body(action),
            language="en",
            issueType="customer-service",
        )
    except Invalid as error:
        if error.code != _CASE_LIMIT:
            raise
        raise Throttled(error.message, code=error.code, delay=timedelta(minutes=5)) from error
    except Unavailable as error:
        error.delay = error.delay or attempt.growing(_LOST)
        raise
    return SupportCase(case_id=answer["caseId"])


def resolve_support_case(sessions: Sessions, action: ResolveSupportCase) -> None:
    sessions.refuse_protected(action.account_id)
    try:
        sessions.payer().support().resolve_case(caseId=action.case_id)
    except Absent:
        return


def describe_cases(sessions: Sessions, ids: Iterable[str]) -> dict[str, str]:
    """The status of each case by id, with one call per hundred cases. Unknown cases are left out."""
    payer, wanted = sessions.payer(), sorted(set(ids))
    statuses: dict[str, str] = {}
    for first in range(0, len(wanted), _CASES_PER_CALL):
        statuses.update(_statuses(payer, wanted[first : first + _CASES_PER_CALL]))
    return statuses


def _statuses(payer: Payer, ids: list[str]) -> dict[str, str]:
    """One unknown id makes AWS refuse the whole call. Then the list is halved until that id is alone."""
    try:
        return {case["caseId"]: case["status"] for case in _cases(payer, ids)}
    except (Absent, Invalid):
        if len(ids) == 1:
            return {}
    half = len(ids) // 2
    return {**_statuses(payer, ids[:half]), **_statuses(payer, ids[half:])}


def _of_subject(payer: Payer, subject: str) -> str:
    found = (case for case in _cases(payer) if case["subject"] == subject)
    oldest = min(found, key=lambda case: case["timeCreated"], default=None)
    return oldest["caseId"] if oldest is not None else ""


def _cases(payer: Payer, ids: list[str] | None = None) -> Iterator[CaseDetailsTypeDef]:
    """Resolved cases are included, so a case that is missing in the answer is unknown to AWS, not resolved."""
    request: DescribeCasesRequestPaginateTypeDef = {"includeResolvedCases": True, "includeCommunications": False}
    if ids:
        request["caseIdList"] = ids
    for page in payer.support().get_paginator("describe_cases").paginate(**request):
        yield from page["cases"]


def _body(action: OpenSupportCase) -> str:
    return (
        "Hi AWS, please add this account to Enterprise Support: "
        f"{action.account_id}\n\nPlease resolve this case once it is done.\n\n"
        f"[rh-internal-account-name: {action.name}]"
    )
