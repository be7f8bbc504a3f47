"""Open support cases for which no Account waits, left by a process that died or an Account that was deleted.

An Account waits for its case at the end of InitializingRegions, and in PendingVerification.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from activities.aws.session import Payer
from domain.accounts.constants import SUPPORT_CASE_SUBJECT
from domain.accounts.resources import Account, AccountState
from starters.cli.audits import Finding

_SUBJECT = re.compile(re.escape(SUPPORT_CASE_SUBJECT).replace(re.escape("{account_id}"), r"(\d{12})"))
_WAITING = frozenset({AccountState.INITIALIZING_REGIONS, AccountState.PENDING_VERIFICATION})


def open_cases(payer: Payer) -> dict[str, str]:
    """The AWS account id of each open case, by case id."""
    pages = payer.support().get_paginator("describe_cases").paginate(includeCommunications=False)
    cases = (case for page in pages for case in page["cases"] if case["status"] != "resolved")
    return {case["caseId"]: asks.group(1) for case in cases if (asks := _SUBJECT.fullmatch(case["subject"]))}


def unwanted_cases(accounts: Sequence[Account], cases: Mapping[str, str], area: str) -> Iterable[Finding]:
    by_id = {account.spec.aws_account_id: account for account in accounts if account.spec.aws_account_id}
    of_account: defaultdict[str, list[str]] = defaultdict(list)
    for case_id, account_id in sorted(cases.items()):
        of_account[account_id].append(case_id)
    for account_id, opened in sorted(of_account.items()):
        account = by_id.get(account_id)
        wanted = _wanted(account, opened)
        for case_id in opened:
            if case_id != wanted:
                owner = f"Account {account.metadata.namespace}/{account.metadata.name}" if account else ""
                awaits = f"{owner} waits for {wanted or 'no case'}" if owner else "no Account records it"
                problem = f"open for AWS account {account_id}; {awaits}"
                advice = "resolve it with AWS Support"
                yield Finding(area=area, subject=f"support case {case_id}", problem=problem, advice=advice)


def _wanted(account: Account | None, opened: Sequence[str]) -> str:
    """The id of the case for which the account waits; empty for none.

    An account that has not recorded a case will adopt the first of `opened`.
    """
    if account is None or account.status.state not in _WAITING:
        return ""
    return account.status.support_case_id or opened[0]
