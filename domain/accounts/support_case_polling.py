"""When open support cases are queried.

One lifecycle queries all cases together. The older the newest case is, the longer the pauses between queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.accounts.organization import OrganizationMemory
from domain.accounts.resources import Account, AccountState
from domain.accounts.state_conditions import probed_at
from domain.identity import Key

OLD_CASE = timedelta(hours=1)
OLD_CASE_POLL = timedelta(minutes=10)
# The age of a new case at its first query.
FIRST_CASE_LOOK = timedelta(seconds=5)
# The pause between queries, as a fraction of the youngest case's age.
CASE_PAUSE_BY_AGE = 0.4


def open_cases(accounts: Iterable[Account], now: datetime) -> tuple[dict[str, Account], dict[str, Account]]:
    """Accounts by the id of their support case: those with cases younger than an hour, and those with older cases."""
    young: dict[str, Account] = {}
    old: dict[str, Account] = {}
    for account in accounts:
        case_id = account.status.support_case_id
        if account.status.state != AccountState.PENDING_VERIFICATION or not case_id or account.metadata.deleting:
            continue
        since = _opened_at(account)
        (young if since and now - since < OLD_CASE else old)[case_id] = account
    return young, old


def youngest_case(cases: Mapping[str, Account], now: datetime) -> datetime | None:
    """When the youngest case was opened. Times in the future are ignored."""
    # People edit statuses by hand, and a time in the future would delay all queries.
    opened = filter(None, map(_opened_at, cases.values()))
    return max((moment for moment in opened if moment <= now), default=None)


def _opened_at(account: Account) -> datetime | None:
    return probed_at(account.status.conditions, AccountState.PENDING_VERIFICATION)


def next_case_looks(
    known: OrganizationMemory, case_poll: timedelta, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """When young cases and when old cases are queried next; None if no such case is open."""
    young_at = _next_young_look(known, case_poll, now) if known.young_cases else None
    old_poll = max(OLD_CASE_POLL, case_poll)
    old_at = (known.old_cases_at or now - old_poll) + old_poll if known.old_cases else None
    return young_at, old_at


def _next_young_look(known: OrganizationMemory, case_poll: timedelta, now: datetime) -> datetime:
    """The pause is fixed by the previous query: it is a fraction of the youngest case's age at that time."""
    opened, looked = known.youngest_case_at, known.young_cases_at
    if looked is None:
        return now
    age = looked - opened if opened else case_poll / CASE_PAUSE_BY_AGE
    look = looked + min(case_poll, max(FIRST_CASE_LOOK, age * CASE_PAUSE_BY_AGE))
    return max(look, opened + min(FIRST_CASE_LOOK, case_poll)) if opened else look


def due_cases(known: OrganizationMemory, case_poll: timedelta, now: datetime) -> tuple[dict[str, Key], bool, bool]:
    """The cases to query now, whether young cases are due, and whether old cases are due."""
    young_at, old_at = next_case_looks(known, case_poll, now)
    young, old = young_at is not None and young_at <= now, old_at is not None and old_at <= now
    return {**(known.young_cases if young else {}), **(known.old_cases if old else {})}, young, old
