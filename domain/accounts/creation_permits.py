"""Permits to create AWS accounts: oldest Account first, within the account limit and the create budget, five at a time.

The same input gives the same permits, so a workflow that has lost its memory creates nothing twice. If an AWS account
with the Account's name exists, it is adopted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from domain.accounts.config import OperatorConfig
from domain.accounts.naming import email_of
from domain.accounts.observed import Permit, Verdict
from domain.accounts.organization import Budget, Census, CreateAttempt, MemberAccount, OrganizationMemory
from domain.accounts.pool import Room
from domain.accounts.resources import Account, AccountPool, AccountState, oldest_first
from domain.model import Model
from domain.resource import parse_timestamp, timestamp

# An expired permit is given again, in the same order.
PERMIT_LIFETIME = timedelta(minutes=2)

# Annotation of a pool: the create budget counts from this time, the last `perdure retry AccountPool`.
BUDGET_SINCE = "perdure.dev/create-budget-since"


class Verdicts(Model):
    permits: dict[str, Permit]  # by Account name
    behind: dict[str, Permit] = {}  # by Account path, for Accounts that wait for another Account of the same name
    room: Room
    granted: dict[str, datetime]
    strangers: tuple[str, ...] = ()
    passed: dict[str, str] = {}


def room_ages(known: OrganizationMemory, now: datetime) -> bool:
    room = known.room
    freed = room is not None and room.budget <= 0 and room.budget_free_at is not None and room.budget_free_at <= now
    return freed or any(until <= now for until in known.granted.values())


def scarce(room: Room | None, unborn: int, budget: Budget) -> bool:
    """Whether so little room is left that the pools must hear of every change immediately. `unborn` counts the Accounts
    without an AWS account, which will use room.
    """
    if room is None or room.limit is None:
        return True
    return min(room.free, room.budget) < 2 * budget.in_flight + unborn


def unborn(accounts: Iterable[Account]) -> int:
    return sum(not account.spec.aws_account_id for account in accounts)


def wants_account(account: Account) -> bool:
    spec, meta = account.spec, account.metadata
    served = not (spec.byoc or spec.manual_sts_mode or account.on_hold or meta.deleting)
    return (
        served and not spec.aws_account_id and account.status.state == AccountState.NEW and not account.status.claimed
    )


def _firsts(accounts: Iterable[Account], passed: Mapping[str, str]) -> dict[str, Account]:
    """For each name, the Account that may request an AWS account: the oldest or, if there is one, the Account that has
    the permit already (`passed`).

    Accounts in several namespaces may share a name, and AWS identifies requests only by name.
    """
    firsts: dict[str, Account] = {}
    for account in oldest_first(a for a in accounts if not (a.spec.aws_account_id or a.customers or a.failed)):
        name = account.metadata.name
        if name not in firsts or passed.get(name) == account.key.path:
            firsts[name] = account
    return firsts


def budget_since(pools: Iterable[AccountPool], window: timedelta, now: datetime) -> datetime:
    lifted = (parse_timestamp(pool.metadata.annotations.get(BUDGET_SINCE)) for pool in pools)
    # A time in the future would lift the budget until then.
    return max([now - window, *(moment for moment in lifted if moment is not None and moment <= now)])


def judge(
    accounts: Sequence[Account],
    pools: Sequence[AccountPool],
    config: OperatorConfig,
    census: Census,
    granted: Mapping[str, datetime],
    budget: Budget,
    email_domain: str,
    now: datetime,
    strangers: Collection[str] = (),
    passed: Mapping[str, str] = MappingProxyType({}),
) -> Verdicts:
    """The permit or refusal for every Account that wants an AWS account. `strangers` are AWS accounts of other
    installations, and are not adopted.
    """
    wanting = oldest_first(account for account in accounts if wants_account(account))
    attempts = census.attempts
    since = budget_since(pools, budget.window, now)
    open_permits = {name: until for name, until in granted.items() if until > now and not _used(name, until, attempts)}
    creating = {attempt.name for attempt in attempts if attempt.state == "IN_PROGRESS"}
    promised = open_permits.keys() - creating
    recent = sorted(attempt.requested_at for attempt in attempts if attempt.requested_at > since)

    limit = config.account_limit
    free = (limit or 0) - census.active - len(creating) - len(promised)
    left = budget.number - len(recent) - len(promised)
    slots = budget.in_flight - len(creating | set(open_permits))
    free_at = recent[0] + budget.window if recent and left <= 0 else None

    present = _Present(accounts, census, strangers)
    firsts = _firsts(accounts, passed)
    passing = {name: path for name, path in passed.items() if name in firsts and firsts[name].key.path == path}
    permits: dict[str, Permit] = {}
    behind: dict[str, Permit] = {}
    for account in wanting:
        name = account.metadata.name
        first = firsts[name]
        found = present.under_name_of(account, email_domain)
        may_be_its = wants_account(first) or name in open_permits or name in creating or found is not None
        passes = first.key != account.key
        if passes and may_be_its:
            message = f"waits until {first.key.path} has its AWS account, because the two have the same name in AWS"
            behind[account.key.path] = Permit(verdict=Verdict.QUEUED, message=message)
            continue
        firsts[name] = account
        if found is not None:
            permits[name] = found.model_copy(update={"until": now + PERMIT_LIFETIME})
        elif name in open_permits:
            permits[name] = Permit(verdict=Verdict.GRANTED, until=open_permits[name])
        elif limit is None and not config.fedramp:
            permits[name] = Permit(
                verdict=Verdict.LIMIT_REACHED,
                message=f"no account is created: {config.fault('account-limit')}",
            )
        elif free <= 0 and not config.fedramp:  # in GovCloud the limit stops pools, not Accounts
            message = f"the organization is at its limit: {census.active} active accounts, account-limit {limit}"
            permits[name] = Permit(verdict=Verdict.LIMIT_REACHED, message=message)
        elif left <= 0:
            message = f"the create budget is spent: {len(recent)} accounts {_within(since, budget.window, now)}"
            permits[name] = Permit(verdict=Verdict.BUDGET_SPENT, message=message)
        elif slots <= 0:
            message = f"waits its turn: {budget.in_flight} accounts are being created"
            permits[name] = Permit(verdict=Verdict.QUEUED, message=message)
        else:
            until = now + PERMIT_LIFETIME
            open_permits[name] = until
            permits[name] = Permit(verdict=Verdict.GRANTED, until=until)
            if passes:
                passing[name] = account.key.path
            free, left, slots = free - 1, left - 1, slots - 1
    room = Room(
        active=census.active,
        limit=limit,
        free=free,
        budget=left,
        creating=len(creating),
        budget_free_at=free_at,
        measured_at=census.taken_at,
    )
    there = {existing.id for existing in census.accounts}
    known = tuple(sorted({*strangers} & there))
    return Verdicts(permits=permits, behind=behind, room=room, granted=open_permits, strangers=known, passed=passing)


def adopted(
    accounts: Sequence[Account],
    census: Census,
    reported: Collection[str],
    email_domain: str,
    strangers: Collection[str],
    passed: Mapping[str, str] = MappingProxyType({}),
) -> set[str]:
    """The ids of AWS accounts that Accounts would adopt. The owner tag of each must be checked first."""
    asking = (account for name, account in _firsts(accounts, passed).items() if name not in reported)
    wanting = (account for account in asking if wants_account(account))
    present = _Present(accounts, census, strangers)
    found = (present.under_name_of(account, email_domain) for account in wanting)
    return {permit.account_id for permit in found if permit and permit.account_id}


def swept(
    known: OrganizationMemory,
    accounts: Iterable[Account],
    pools: Iterable[AccountPool],
    limit: int | None,
    active: int,
    creating: Collection[str],
    budget: Budget,
    now: datetime,
) -> OrganizationMemory:
    """The memory after a count of active and pending AWS accounts. Valid permits count as accounts.

    The remaining create budget is that of the latest full count or, if this is too old, the whole budget.
    """
    granted = _outstanding(known.granted, accounts, now)
    before = known.room
    since = budget_since(pools, budget.window, now)
    stale = before is None or before.measured_at is None or before.measured_at < since
    left = budget.number if before is None or stale else before.budget
    room = Room(
        active=active,
        limit=limit,
        free=(limit or 0) - active - len({*creating, *granted}),
        creating=len(creating),
        budget=max(left, 1) if before and before.budget_free_at and before.budget_free_at <= now else left,
        budget_free_at=before.budget_free_at if before else None,
        measured_at=now if stale or before is None else before.measured_at,
    )
    return known.model_copy(update={"granted": granted, "reported": {}, "room": room, "counted_at": now})


def _outstanding(granted: Mapping[str, datetime], accounts: Iterable[Account], now: datetime) -> dict[str, datetime]:
    """The unexpired permits of Accounts that have no AWS account yet. Each may have been used for a request."""
    landed = {account.metadata.name for account in accounts if account.spec.aws_account_id}
    return {name: until for name, until in granted.items() if until > now and name not in landed}


def _used(name: str, until: datetime, attempts: Sequence[CreateAttempt]) -> bool:
    """Whether a create request used the permit; one second is tolerated, because AWS's times are whole seconds."""
    given = until - PERMIT_LIFETIME - timedelta(seconds=1)
    return any(attempt.name == name and attempt.requested_at >= given for attempt in attempts)


def _within(since: datetime, window: timedelta, now: datetime) -> str:
    """The period, for a message. It must not change at each pass, because a changed message wakes Accounts."""
    if since > now - window:
        return f"since {timestamp(since)}"
    return f"within {window / timedelta(minutes=1):g} minutes"


class _Present:
    def __init__(self, accounts: Iterable[Account], census: Census, strangers: Collection[str]) -> None:
        self._taken = {*(account.spec.aws_account_id for account in accounts), *strangers}
        self._gone = {existing.id for existing in census.accounts if not existing.active}
        self._existing: defaultdict[str, list[MemberAccount]] = defaultdict(list)
        for existing in census.accounts:
            self._existing[existing.name].append(existing)
        self._attempts: defaultdict[str, list[CreateAttempt]] = defaultdict(list)
        for attempt in census.attempts:
            self._attempts[attempt.name].append(attempt)

    def under_name_of(self, account: Account, email_domain: str) -> Permit | None:
        """The permit to adopt an AWS account or create request with this Account's name; None if there is neither."""
        # Another installation's AWS account (in `_taken`) is not adopted. If its e-mail address is the Account's, AWS
        # refuses to create a second one, and the pool replaces the Account.
        name = account.metadata.name
        email = email_of(name, email_domain).lower()
        for existing in self._existing.get(name, ()):
            if existing.email.lower() == email and existing.active and existing.id not in self._taken:
                return Permit(verdict=Verdict.GRANTED, message="found in the organization", account_id=existing.id)
        for attempt in self._attempts.get(name, ()):
            if attempt.state == "IN_PROGRESS":
                return Permit(verdict=Verdict.GRANTED, message="already being created", request_id=attempt.request_id)
            void = attempt.account_id in self._taken or attempt.account_id in self._gone
            if attempt.state == "SUCCEEDED" and attempt.account_id and not void:
                # AWS's list of accounts does not contain the new account yet.
                return Permit(verdict=Verdict.GRANTED, message="just created", account_id=attempt.account_id)
        return None
