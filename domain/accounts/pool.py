"""The lifecycle of an AccountPool. It binds accounts to claims: an Account's `spec.claimLink` is authoritative.

Accounts to create: poolSize - (available + progressing + pending + opting in).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from domain.accounts.claim_validation import spec_fault
from domain.accounts.config import OperatorConfig, PoolConfig, key_faults
from domain.accounts.constants import AT_LIMIT_CONDITION, AT_LIMIT_REASON, CREATED_AT_ONCE
from domain.accounts.free_account_choice import Candidates, Rejections, is_free
from domain.accounts.naming import account_name, suffix_of
from domain.accounts.resources import (
    OPT_IN_STATES,
    PROGRESSING_STATES,
    Account,
    AccountClaim,
    AccountPool,
    AccountPoolStatus,
    AccountState,
    ServiceQuota,
    oldest_first,
)
from domain.accounts.state_conditions import with_trouble
from domain.control_annotations import paused
from domain.decision import Outcome
from domain.model import Model
from domain.resource import Condition, KubeModel, condition_of, timestamp

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)
# The minimum pause between passes, in which changes gather. It is `BRISK` while claims wait or the organization is
# being counted. Otherwise it is one of the next three values, but at most `BRISK` times the number of Accounts: a pass
# reads every Account, so it is cheap in a small pool.
BRISK = timedelta(milliseconds=100)
WITH_FREE_ACCOUNTS = timedelta(seconds=1)
LET_CHANGES_GATHER = timedelta(seconds=4)
# The longest pause while all missing accounts are being created, when a pass changes only the pool's published numbers.
ON_ITS_WAY = timedelta(seconds=8)


class Room(Model):
    """How many more accounts can be created, according to the organization's workflow."""

    # The pool's status shows `limit` - `active` - `creating` as awsLimitDelta.
    active: int
    limit: int | None
    free: int  # what the account limit still allows, after subtracting accounts that have a permit
    budget: int  # what the create budget still allows, after subtracting accounts that have a permit
    creating: int = 0
    budget_free_at: datetime | None = None  # when the budget has room again
    measured_at: datetime | None = None


class FailedAccounts(Model):
    names: tuple[str, ...] = ()
    last_at: datetime | None = None

    @property
    def pause_until(self) -> datetime | None:
        if self.last_at is None or not self.names:
            return None
        return self.last_at + min(LONGEST_PAUSE, FIRST_PAUSE * (1 << min(len(self.names) - 1, 10)))


class PoolView(Model):
    """What a pool's pass reads. It never leaves the activity, so histories contain no lists of custom resources."""

    pool: AccountPool
    accounts: tuple[Account, ...]
    claims: tuple[AccountClaim, ...]
    config: OperatorConfig
    protected: tuple[str, ...] = ()
    room: Room | None
    deaths: FailedAccounts = FailedAccounts()
    in_flight_limit: int = CREATED_AT_ONCE
    refused: tuple[str, ...] = ()  # uids of claims whose last binding was refused, longest ago first
    token: str = ""  # identifies the pass; the same in every attempt of its activity


class NewAccount(KubeModel):
    name: str
    iam_user_id: str
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = {}
    global_service_quotas: dict[str, ServiceQuota] = {}


class Binding(Model):
    """`complete`: the binding was interrupted. The Account names the claim; only the claim's link is missing."""

    account: Account
    claim: AccountClaim
    complete: bool = False


class PoolDecision(Model):
    status: AccountPoolStatus
    create: tuple[NewAccount, ...] = ()
    bind: tuple[Binding, ...] = ()
    unserved: dict[str, str] = {}  # claim namespace/name -> why no account fits
    outcome: Outcome
    why: str
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    at_deadline: str = ""


def decide(view: PoolView, now: datetime) -> PoolDecision:
    members = tuple(account for account in view.accounts if belongs(account, view.pool, view.config))
    counts = count(view.pool, members, view.room)
    if view.pool.metadata.deleting:
        return PoolDecision(status=counts, outcome=Outcome.WAITING, why="the pool is being deleted")
    bindings, unserved = bind(view)
    wanted = counts.pool_size - supply(counts, members)
    create, why, waits_for, until = _fill(view, members, wanted, now)
    changed = {
        "unclaimed_accounts": counts.unclaimed_accounts + len(create),
        "accounts_pending": counts.accounts_pending + len(create),
        "conditions": _conditions(view, why, waits_for, now),
    }
    short = bool(waits_for)
    settled = not short and not unserved
    return PoolDecision(
        status=counts.model_copy(update=changed),
        create=create,
        bind=bindings,
        unserved=unserved,
        outcome=Outcome.SETTLED if settled else Outcome.WORKING if create else Outcome.WAITING,
        why=why if short else f"{len(unserved)} claims wait for an account" if unserved else "full",
        waits_for=waits_for if short else (("Account",) if unserved else ()),
        deadline=until,
        at_deadline="creation continues" if until else "",
    )


def belongs(account: Account, pool: AccountPool, config: OperatorConfig) -> bool:
    name = account.spec.account_pool or config.default_pool
    return account.pool_owned and name == pool.metadata.name


def offered(account: Account, pool: AccountPool, config: OperatorConfig, protected: Collection[str]) -> bool:
    """Whether the pool's claims can get the Account. The pool need not have created the Account.

    If the AWS account is protected or a payer's, only a claim that the Account already names can get the Account.
    """
    name = account.spec.account_pool or config.default_pool
    # A new claim of such an Account would be blocked.
    refused = account.spec.aws_account_id in {*config.payer_account_ids, *protected} and not account.spec.claim_link
    return not account.customers and name == pool.metadata.name and not refused


def count(pool: AccountPool, members: Iterable[Account], room: Room | None) -> AccountPoolStatus:
    accounts = list(members)
    fresh = [a for a in accounts if not a.status.claimed and not a.spec.legal_entity.id]
    previous = pool.status or AccountPoolStatus()
    counted = room.limit - room.active - room.creating if room and room.limit is not None else None
    delta = previous.aws_limit_delta if counted is None else counted
    return AccountPoolStatus(
        pool_size=pool.spec.pool_size,
        unclaimed_accounts=sum(not a.failed for a in fresh),
        claimed_accounts=sum(a.status.claimed for a in accounts),
        available_accounts=sum(a.status.state == AccountState.READY for a in fresh),
        accounts_progressing=sum(a.status.state in PROGRESSING_STATES for a in accounts),
        accounts_pending=sum(_pending(a) for a in accounts),
        aws_limit_delta=delta,
        conditions=previous.conditions,
    )


def shows(pool: AccountPool, counts: AccountPoolStatus) -> bool:
    """Whether the pool's status shows all these counts. The replaced operator's status may lack some."""
    numbers = AccountPoolStatus.model_fields.keys() - {"conditions"}
    return pool.status is not None and pool.status == counts and numbers <= pool.status.model_fields_set


def supply(counts: AccountPoolStatus, members: Iterable[Account]) -> int:
    opting_in = sum(a.status.state in OPT_IN_STATES for a in members)
    return counts.available_accounts + counts.accounts_progressing + counts.accounts_pending + opting_in


def _pending(account: Account) -> bool:
    never_claimed = not account.status.claimed and not account.spec.legal_entity.id and not account.status.reused
    return not account.metadata.deleting and not account.status.state and never_claimed


def _fill(
    view: PoolView, members: Sequence[Account], wanted: int, now: datetime
) -> tuple[tuple[NewAccount, ...], str, tuple[str, ...], datetime | None]:
    if wanted <= 0:
        # Pools that fill at the same time use the same room, so surplus Accounts may wait for room.
        stuck = sum(_at_limit(a) for a in members)
        if stuck and view.config.missing("account-limit"):
            return (), view.config.fault("account-limit"), ("ConfigMap",), None
        return (
            (),
            f"{stuck} accounts wait for room in the organization" if stuck else "full",
            ("AccountLimit",) if stuck else (),
            None,
        )
    if fault := view.config.fault("accountpool", "account-limit", "fedramp"):
        return (), fault, ("ConfigMap",), None
    if problem := _configured(view).problem:
        return (), key_faults({"accountpool": problem}), ("ConfigMap",), None
    if view.room is None or view.room.limit is None:  # without a limit: counted before it was configured
        return (), "the organization's accounts are being counted", ("Organization",), None
    pause = view.deaths.pause_until
    if pause and now < pause:
        dead = len(view.deaths.names)
        why = f"{dead} accounts in a row failed without an AWS account; the next try is at {timestamp(pause)}"
        return (), why, ("AccountCreation",), pause
    unborn = sum(_unborn(a) for a in members)
    # Accounts without an AWS account, in any pool, will use room. Those with a permit are subtracted twice, which may
    # delay a creation briefly but creates no surplus Accounts.
    queued = sum(_unborn(a) for a in view.accounts)
    number = min(wanted, view.in_flight_limit - unborn, view.room.free - queued, view.room.budget - queued)
    create = _new_accounts(view, number)
    if view.room.free < wanted:
        return create, f"the organization has room for {max(0, view.room.free)} more accounts", ("AccountLimit",), None
    if view.room.budget < wanted and view.room.budget < view.in_flight_limit:
        why = "the create budget is spent: wait, or reset it with `perdure retry accountpool`"
        return create, why, ("CreateBudget",), view.room.budget_free_at
    return create, f"{wanted} accounts to create, {unborn + len(create)} in flight", ("Account",), None


def _configured(view: PoolView) -> PoolConfig:
    return (view.config.pools or {}).get(view.pool.metadata.name, PoolConfig())


def _unborn(account: Account) -> bool:
    held = account.on_hold or account.metadata.deleting
    return not (account.spec.aws_account_id or account.failed or held)


def _at_limit(account: Account) -> bool:
    pending = condition_of(account.status.conditions, AT_LIMIT_CONDITION)
    return _unborn(account) and pending is not None and pending.reason == AT_LIMIT_REASON


def _new_accounts(view: PoolView, number: int) -> tuple[NewAccount, ...]:
    """Account names derive from the pass's id, so that a repeated creation finds the Accounts of the first attempt."""
    taken = {account.metadata.name for account in view.accounts}
    suffixes = (suffix_of(view.pool.metadata.uid, view.token, str(serial)) for serial in range(number + len(taken)))
    free = [suffix for suffix in suffixes if account_name(suffix) not in taken]
    pool = _configured(view)
    return tuple(
        NewAccount(
            name=account_name(suffix),
            iam_user_id=suffix,
            regional_service_quotas=pool.regional_service_quotas,
            global_service_quotas=pool.global_service_quotas,
        )
        for suffix in free[: max(0, number)]
    )


def _conditions(view: PoolView, why: str, waits_for: tuple[str, ...], now: datetime) -> tuple[Condition, ...]:
    before = view.pool.status.conditions if view.pool.status else ()
    reason = waits_for[0] if waits_for else ""
    if reason in {"", "Account", "Organization"}:
        why = ""
    return with_trouble(before, "Stalled", reason, why, now, probe=False)


def bind(view: PoolView) -> tuple[tuple[Binding, ...], dict[str, str]]:
    """The bindings, oldest claim first; and for each claim that gets no account, the reason."""
    if not view.claims:
        return (), {}
    bindings: list[Binding] = []
    unserved: dict[str, str] = {}
    accounts = [account for account in view.accounts if _offered(account, view)]
    candidates, rejections = Candidates(accounts), Rejections(accounts)
    # Claims whose last binding was refused come last, so that they do not keep an account from the other claims.
    turn = {uid: number for number, uid in enumerate(view.refused, 1)}
    for claim in sorted(oldest_first(view.claims), key=lambda claim: turn.get(claim.metadata.uid, 0)):
        if linked := candidates.linked(claim):
            bindings.append(Binding(account=linked, claim=claim, complete=True))
        elif account := candidates.take(claim):
            bindings.append(Binding(account=account, claim=claim))
        else:
            unserved[f"{claim.metadata.namespace}/{claim.metadata.name}"] = rejections.of(claim)
    return tuple(bindings), unserved


def _offered(account: Account, view: PoolView) -> bool:
    return offered(account, view.pool, view.config, view.protected)


def waits(claim: AccountClaim, pool: AccountPool, config: OperatorConfig) -> bool:
    """Whether the claim waits for an account. An invalid claim gets none, because the account would be wasted."""
    if claim.metadata.deleting or paused(claim.metadata) or claim.spec.account_link or not claim.from_pool:
        return False
    if spec_fault(claim) or claim.status.state == "Error":
        return False
    return (claim.spec.account_pool or config.default_pool) == pool.metadata.name


def moving(view: PoolView, decision: PoolDecision) -> bool:
    """Whether accounts are on their way to Ready. Their changes come in bursts, so one pass handles several."""
    opting_in = any(account.status.state in OPT_IN_STATES for account in view.accounts)
    return bool(decision.status.accounts_progressing or decision.status.accounts_pending or opting_in)


def has_free(view: PoolView) -> bool:
    return any(is_free(account) and _offered(account, view) for account in view.accounts)


def has_bound(view: PoolView, *, thorough: bool) -> bool:
    """Whether an Account names a claim that possibly does not link to the Account yet.

    Unless `thorough`, Accounts with `status.claimed`, which is set soon after each binding, are skipped.
    """
    bound = (account for account in view.accounts if account.spec.claim_link)
    return any((thorough or not account.status.claimed) and _offered(account, view) for account in bound)


def rest_after(view: PoolView, decision: PoolDecision) -> timedelta:
    if view.claims or view.room is None:
        return BRISK
    longest = ON_ITS_WAY if decision.outcome is Outcome.SETTLED else LET_CHANGES_GATHER
    longest = WITH_FREE_ACCOUNTS if has_free(view) else longest
    return min(longest, BRISK * max(1, len(view.accounts)))


def count_failures(
    deaths: FailedAccounts, accounts: Iterable[Account], unborn: frozenset[str], died: frozenset[str], now: datetime
) -> FailedAccounts:
    """The failures in a row, for the pool's backoff. If an Account has got an AWS account, the count starts again.

    `unborn` are members that had no AWS account in the previous pass. `died` are members reported as failed after that
    pass. A missing Account is no failure, because people delete Accounts, too.
    """
    if any(account.spec.aws_account_id for account in accounts if account.metadata.name in unborn):
        deaths = FailedAccounts()
    dead = tuple(sorted(died - set(deaths.names)))
    return FailedAccounts(names=(*deaths.names, *dead), last_at=now) if dead else deaths
