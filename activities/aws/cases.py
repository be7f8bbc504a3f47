"""Support cases: opening the one that asks for Enterprise Support, resolving it, checking open ones.

CreateCase has no idempotency token, and an open case costs people's time: if an earlier attempt may have opened it, a
case of exactly this subject is searched for first. `includeResolvedCases` is always sent: without it a missing case
would look resolved. Resolved cases are kept for 24 months. The Support API exists in us-east-1 only and needs a
Business plan or better.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta

from activities import attempt
from activities.aws.session import Payer, Sessions
from domain.accounts.actions.cases import OpenSupportCase, ResolveSupportCase, SupportCase
from domain.accounts.constants import SUPPORT_CASE_SUBJECT
from engine.errors import Absent, Invalid, Throttled, Unavailable

RESOLVED = "resolved"

_CASES_PER_CALL = 100  # the most ids that DescribeCases takes
_CASE_LIMIT = "CaseCreationLimitExceeded"
_LOST = (2, 3, 5, 8, 15, 30)


def open_support_case(sessions: Sessions, action: OpenSupportCase) -> SupportCase:
    """Open the case, or adopt the oldest of its subject."""
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
    """A resolved case counts as done."""
    sessions.refuse_protected(action.account_id)
    try:
        sessions.payer().support().resolve_case(caseId=action.case_id)
    except Absent:
        return


def describe_cases(sessions: Sessions, ids: Iterable[str]) -> dict[str, str]:
    """The status of each case by id, resolved ones too; one call per hundred. Unknown cases are left out."""
    payer = sessions.payer()
    statuses: dict[str, str] = {}
    for chunk in _chunks(sorted(set(ids))):
        statuses.update(_statuses(payer, chunk))
    return statuses


def _statuses(payer: Payer, ids: list[str]) -> dict[str, str]:
    """One unknown id makes AWS refuse the whole call: halve the list until the unknown one is alone."""
    try:
        pages = (
            payer.support()
            .get_paginator("describe_cases")
            .paginate(caseIdList=ids, includeResolvedCases=True, includeCommunications=False)
        )
        return {case["caseId"]: case["status"] for page in pages for case in page["cases"]}
    except Absent:
        if len(ids) == 1:
            return {}
    half = len(ids) // 2
    return {**_statuses(payer, ids[:half]), **_statuses(payer, ids[half:])}


def _of_subject(payer: Payer, subject: str) -> str:
    pages = (
        payer.support().get_paginator("describe_cases").paginate(includeResolvedCases=True, includeCommunications=False)
    )
    found = (case for page in pages for case in page["cases"] if case["subject"] == subject)
    oldest = min(found, key=lambda case: case["timeCreated"], default=None)
    return oldest["caseId"] if oldest is not None else ""


def _body(action: OpenSupportCase) -> str:
    return (
        "Hi AWS, please add this account to Enterprise Support: "
        f"{action.account_id}\n\nPlease resolve this case once it is done.\n\n"
        f"[rh-internal-account-name: {action.name}]"
    )


def _chunks(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _CASES_PER_CALL):
        yield ids[start : start + _CASES_PER_CALL]
