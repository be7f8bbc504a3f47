"""What is scarce in the organization, and who gets it: one workflow hands it out, in a fixed order.

- Permits to create an account: never more than the configured number unanswered at once, never beyond `account-limit`
  (active accounts of the whole organization plus what is being created), never more than the create budget (30 in an
  hour by default), counted from AWS's own list of create requests. The oldest Account comes first, so a workflow that
  lost its memory gives the same permits again, and nothing is created twice for it.
- One look at all open support cases together. Of those younger than an hour the first look comes after ten seconds,
  and the pauses grow with the age of the youngest to `case_poll`; the rest are looked at every ten minutes.
- The organizational units, by legal entity.
- The turns to opt in to regions (`opt_in_permits.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType

from domain.accounts import THE_ORGANIZATION
from domain.accounts.config import OperatorConfig
from domain.accounts.naming import email_of
from domain.accounts.pool import Room
from domain.accounts.resources import Account, AccountPool, AccountState
from domain.accounts.worlds import Permit, Verdict
from domain.decision import earliest
from domain.identity import Key
from domain.levers import paused
from domain.model import Model
from domain.resource import condition_of, parse_timestamp, timestamp

ORGANIZATION = THE_ORGANIZATION

# How long a permit may wait for a worker before it is void; a void one is given again, in the same order.
PERMIT_LIFETIME = timedelta(minutes=2)
OLD_CASE = timedelta(hours=1)
OLD_CASE_POLL = timedelta(minutes=10)
# The first look at a new case, and the pause between two looks as a part of the youngest case's age.
FIRST_CASE_LOOK = timedelta(seconds=10)
CASE_PAUSE_BY_AGE = 0.6

# The create budget counts from here on once a person's `retry AccountPool` has lifted it; kept on the pool.
BUDGET_SINCE = "perdure.dev/create-budget-since"


class MemberAccount(Model):
    """An account of the organization, the payer included. `state` is AWS's: ACTIVE, SUSPENDED, PENDING_CLOSURE, ..."""

    id: str
    name: str
    email: str
    state: str

    @property
    def active(self) -> bool:
        """True if it counts against the organization's limit."""
        return self.state == "ACTIVE"


class CreateAttempt(Model):
    """A CreateAccount request as the organization remembers it."""

    name: str
    request_id: str
    state: str
    requested_at: datetime
    account_id: str = ""
    failure_reason: str = ""


class Census(Model):
    """Everything about the organization that permits, budget and adoption are decided by.

    `taken_at` is AWS's clock (the answer's Date header). `attempts` are those requested at or after the moment that was
    asked for, and all that are still in progress.
    """

    taken_at: datetime
    accounts: tuple[MemberAccount, ...]
    attempts: tuple[CreateAttempt, ...]

    @property
    def active(self) -> int:
        """How many accounts count against the limit."""
        return sum(account.active for account in self.accounts)


class Budget(Model):
    """The operator's settings for creation."""

    in_flight: int = 5
    number: int = 30
    window: timedelta = timedelta(hours=1)


class TurnsLetGo(Model):
    """Ready Accounts that have let a turn to opt in to these regions run out, by name, and when."""

    regions: tuple[str, ...] = ()
    at: dict[str, datetime] = {}


class OrganizationKnown(Model):
    """What the organization's workflow carries."""

    granted: dict[str, datetime] = {}  # Account name -> end of its permit
    told: dict[str, str] = {}  # Account name -> last verdict told
    room: Room | None = None
    counted_at: datetime | None = None
    young_cases_at: datetime | None = None  # last look at young cases
    old_cases_at: datetime | None = None
    youngest_case_at: datetime | None = None  # when the youngest open case was opened
    young_cases: dict[str, Key] = {}  # case id -> the Account that waits for it
    old_cases: dict[str, Key] = {}
    wanting: int = 0  # Accounts that want to be created, seen last
    untold: bool = False  # the pools have not been told of the last change of the room
    news: bool = False  # they are to be told now
    units: dict[str, str] = {}  # legal entity id -> OU id
    opt_in_granted: dict[str, datetime] = {}  # Account name -> until when it may begin to opt in to regions
    opt_in_wanting: int = 0  # Accounts that wait for that, seen last
    opt_in_let_go: TurnsLetGo = TurnsLetGo()
    strangers: tuple[str, ...] = ()  # AWS accounts under the name of an Account that another installation has tagged
    passed: dict[str, str] = {}  # Account name -> path of who was given its permit, past an older one of that name


class Verdicts(Model):
    """Who may create, and what room is left afterwards."""

    permits: dict[str, Permit]  # by Account name
    behind: dict[str, Permit] = {}  # by path: those that wait for another Account of their name
    room: Room
    granted: dict[str, datetime]
    strangers: tuple[str, ...] = ()
    passed: dict[str, str] = {}


def room_ages(known: OrganizationKnown, now: datetime) -> bool:
    """True when a moment has come that gives room back, though nobody asks: a permit's end, the budget's."""
    room = known.room
    freed = room is not None and room.budget <= 0 and room.budget_free_at is not None and room.budget_free_at <= now
    return freed or any(until <= now for until in known.granted.values())


def scarce(room: Room | None, unborn: int, budget: Budget) -> bool:
    """True if the room decides what pools create: then every change of it is news to them, at once.

    Else only the numbers that they publish are others, and may settle with the last Account that lands. `unborn` are
    the Accounts without an AWS account, which will use up room.
    """
    if room is None or room.limit is None:
        return True
    return min(room.free, room.budget) < 2 * budget.in_flight + unborn


def unborn(accounts: Iterable[Account]) -> int:
    """How many Accounts have no AWS account."""
    return sum(not account.spec.aws_account_id for account in accounts)


def wants_account(account: Account) -> bool:
    """True for an Account that has no AWS account and should get one."""
    spec, meta = account.spec, account.metadata
    served = not (spec.byoc or spec.manual_sts_mode or account.paused or paused(meta) or meta.deleting)
    return (
        served and not spec.aws_account_id and account.status.state == AccountState.NEW and not account.status.claimed
    )


def ordered(accounts: Iterable[Account]) -> list[Account]:
    """Oldest first: the order in which permits are given, whoever asks."""
    return sorted(accounts, key=_age)


def _age(account: Account) -> tuple[str, str, str]:
    born = account.metadata.creation_timestamp
    return (timestamp(born) if born else "", account.metadata.namespace, account.metadata.name)


def _firsts(accounts: Iterable[Account], passed: Mapping[str, str]) -> dict[str, Account]:
    """Of the Accounts of one name the oldest without an AWS account: the name is all that AWS knows a request by.

    One that has got a permit past the oldest takes its place: what AWS has by the name since is that one's.
    """
    firsts: dict[str, Account] = {}
    for account in ordered(a for a in accounts if not (a.spec.aws_account_id or a.customers or a.failed)):
        name = account.metadata.name
        if name not in firsts or passed.get(name) == account.key.path:
            firsts[name] = account
    return firsts


def budget_since(pools: Iterable[AccountPool], window: timedelta, now: datetime) -> datetime:
    """From when on creations count against the budget."""
    lifted = (parse_timestamp(pool.metadata.annotations.get(BUDGET_SINCE)) for pool in pools)
    return max([now - window, *(moment for moment in lifted if moment is not None)])


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
    """A verdict for every Account that wants an AWS account, and the room that is left; no stranger is adopted."""
    wanting = ordered(account for account in accounts if wants_account(account))
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
            message = f"waits until {first.key.path} has its AWS account: AWS knows both by the same name only"
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
                message="account-limit is missing or invalid in the operator's ConfigMap: no account is created",
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
    told: Collection[str],
    email_domain: str,
    strangers: Collection[str],
    passed: Mapping[str, str] = MappingProxyType({}),
) -> set[str]:
    """The AWS accounts that are about to be adopted by Accounts that have not been told anything yet.

    Who has been told has asked for the account itself: only of the others it is worth a call to ask whose it is.
    """
    asking = (account for name, account in _firsts(accounts, passed).items() if name not in told)
    wanting = (account for account in asking if wants_account(account))
    present = _Present(accounts, census, strangers)
    found = (present.under_name_of(account, email_domain) for account in wanting)
    return {permit.account_id for permit in found if permit and permit.account_id}


def swept(
    known: OrganizationKnown,
    accounts: Iterable[Account],
    pools: Iterable[AccountPool],
    limit: int | None,
    active: int,
    creating: Collection[str],
    budget: Budget,
    now: datetime,
) -> OrganizationKnown:
    """What is known after a count of the active accounts and of those being created, made while nobody wants one.

    The budget is what the last full count left, or all of it, until one is needed. Permits that may still be used count
    as accounts.
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
    return known.model_copy(update={"granted": granted, "told": {}, "room": room, "counted_at": now})


def _outstanding(granted: Mapping[str, datetime], accounts: Iterable[Account], now: datetime) -> dict[str, datetime]:
    """The permits that may still lead to an AWS account, as far as the Accounts tell; each counts to its end.

    That its Account is gone or paused is no sign that it will not be used: the request may be on its way.
    """
    landed = {account.metadata.name for account in accounts if account.spec.aws_account_id}
    return {name: until for name, until in granted.items() if until > now and name not in landed}


def _used(name: str, until: datetime, attempts: Sequence[CreateAttempt]) -> bool:
    """True if the permit has led to a request; one that has not counts to its end, even if its Account is gone by then.

    AWS's clock and ours are compared: AWS gives whole seconds, so a second is allowed for.
    """
    given = until - PERMIT_LIFETIME - timedelta(seconds=1)
    return any(attempt.name == name and attempt.requested_at >= given for attempt in attempts)


def _within(since: datetime, window: timedelta, now: datetime) -> str:
    """From when on creations count, in words that stay the same while nothing changes: others are news to Accounts."""
    if since > now - window:
        return f"since {timestamp(since)}"
    return f"within {window / timedelta(minutes=1):g} minutes"


class _Present:
    """What the organization has already, by name: looked through once for all Accounts that want an AWS account."""

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
        """What there is under this Account's name: adopted, so that nothing is asked for twice.

        A stranger's is not: AWS refuses the request then, since the address is in use, and another Account takes its
        place.
        """
        name = account.metadata.name
        email = email_of(name, email_domain)
        for existing in self._existing.get(name, ()):
            if existing.email == email and existing.active and existing.id not in self._taken:
                return Permit(verdict=Verdict.GRANTED, message="found in the organization", account_id=existing.id)
        for attempt in self._attempts.get(name, ()):
            if attempt.state == "IN_PROGRESS":
                return Permit(verdict=Verdict.GRANTED, message="already being created", request_id=attempt.request_id)
            void = attempt.account_id in self._taken or attempt.account_id in self._gone
            if attempt.state == "SUCCEEDED" and attempt.account_id and not void:
                # Not in the list of accounts yet.
                return Permit(verdict=Verdict.GRANTED, message="just created", account_id=attempt.account_id)
        return None


# --- support cases ---


def open_cases(accounts: Iterable[Account], now: datetime) -> tuple[dict[str, Account], dict[str, Account]]:
    """The cases that Accounts wait for, by id: those younger than an hour, and the rest."""
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
    """When the youngest of these open cases was opened, as far as Accounts say."""
    conditions = (condition_of(each.status.conditions, AccountState.PENDING_VERIFICATION) for each in cases.values())
    opened = (parse_timestamp(each.last_probe_time) for each in conditions if each is not None)
    return max((moment for moment in opened if moment), default=None)


def next_case_look(
    known: OrganizationKnown, *, young: bool, old: bool, case_poll: timedelta, now: datetime
) -> datetime | None:
    """When the cases are looked at next; None while nobody waits for one."""
    young_at = _next_young_look(known, case_poll, now) if young else None
    old_poll = max(OLD_CASE_POLL, case_poll)
    old_at = (known.old_cases_at or now - old_poll) + old_poll if old else None
    return earliest([young_at, old_at])


def _next_young_look(known: OrganizationKnown, case_poll: timedelta, now: datetime) -> datetime:
    """AWS Support mostly answers within seconds or not for minutes: a look is worth most while a case is new."""
    opened = known.youngest_case_at
    age = now - opened if opened else case_poll / CASE_PAUSE_BY_AGE
    pause = min(case_poll, max(FIRST_CASE_LOOK, age * CASE_PAUSE_BY_AGE))
    if known.young_cases_at is None:
        return now
    look = known.young_cases_at + pause
    return max(look, opened + min(FIRST_CASE_LOOK, case_poll)) if opened else look


def due_cases(known: OrganizationKnown, case_poll: timedelta, now: datetime) -> tuple[dict[str, Key], bool, bool]:
    """The cases to look at now, and whether those are the young ones, the old ones."""
    young_at = next_case_look(known, young=bool(known.young_cases), old=False, case_poll=case_poll, now=now)
    old_at = next_case_look(known, young=False, old=bool(known.old_cases), case_poll=case_poll, now=now)
    young, old = young_at is not None and young_at <= now, old_at is not None and old_at <= now
    return {**(known.young_cases if young else {}), **(known.old_cases if old else {})}, young, old
