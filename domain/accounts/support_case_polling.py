"""When open support cases are queried.

One lifecycle queries all cases in one call, less often the older the newest case is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.accounts.organization import OrganizationMemory
from domain.accounts.resources import Account, AccountState
from domain.decision import earliest
from domain.identity import Key
from domain.resource import condition_of, parse_timestamp

OLD_CASE = timedelta(hours=1)
OLD_CASE_POLL = timedelta(minutes=10)
# The age of a new case at its first query; then the pause between queries, as a fraction of the youngest case's age.
FIRST_CASE_LOOK = timedelta(seconds=5)
CASE_PAUSE_BY_AGE = 0.4


def open_cases(accounts: Iterable[Account], now: datetime) -> tuple[dict[str, Account], dict[str, Account]]:
    """Accounts by the id of their support case: those with cases younger than an hour, and those with older cases."""
    young: dict[str, Account] = {}
    old: dict[str, Account] = {}
    for account in accounts:
        case_id = account.status.support_case_id
        if account.status.state != AccountState.PENDING_VERIFICATION or not case_id or account.metadata.deleting:
            continue
        condition = condition_of(account.status.conditions, AccountState.PENDING_VERIFICATION)
        since = parse_timestamp(condition.last_probe_time) if condition else None
        (young if since and now - since < OLD_CASE else old)[case_id] = account
    return young, old


def youngest_case(cases: Mapping[str, Account]) -> datetime | None:
    conditions = (condition_of(each.status.conditions, AccountState.PENDING_VERIFICATION) for each in cases.values())
    opened = (parse_timestamp(each.last_probe_time) for each in conditions if each is not None)
    return max((moment for moment in opened if moment), default=None)


def next_case_look(
    known: OrganizationMemory, *, young: bool, old: bool, case_poll: timedelta, now: datetime
) -> datetime | None:
    young_at = _next_young_look(known, case_poll, now) if young else None
    old_poll = max(OLD_CASE_POLL, case_poll)
    old_at = (known.old_cases_at or now - old_poll) + old_poll if old else None
    return earliest([young_at, old_at])


def _next_young_look(known: OrganizationMemory, case_poll: timedelta, now: datetime) -> datetime:
    """AWS Support answers within seconds or after minutes, so new cases are queried often at first."""
    opened = known.youngest_case_at
    age = now - opened if opened else case_poll / CASE_PAUSE_BY_AGE
    pause = min(case_poll, max(FIRST_CASE_LOOK, age * CASE_PAUSE_BY_AGE))
    if known.young_cases_at is None:
        return now
    look = known.young_cases_at + pause
    return max(look, opened + min(FIRST_CASE_LOOK, case_poll)) if opened else look


def due_cases(known: OrganizationMemory, case_poll: timedelta, now: datetime) -> tuple[dict[str, Key], bool, bool]:
    """The cases to query now, whether young cases are due, and whether old cases are due."""
    young_at = next_case_look(known, young=bool(known.young_cases), old=False, case_poll=case_poll, now=now)
    old_at = next_case_look(known, young=False, old=bool(known.old_cases), case_poll=case_poll, now=now)
    young, old = young_at is not None and young_at <= now, old_at is not None and old_at <= now
    return {**(known.young_cases if young else {}), **(known.old_cases if old else {})}, young, old
