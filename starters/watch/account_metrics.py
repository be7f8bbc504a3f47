"""The account area's gauges, under the aws-account-operator's names, computed from the watcher's index.

That operator has dropped the gauges `total_...`, but its documents still name them: they are included, with their
irregular spellings. The gauges `perdure_...` add phases, reused accounts, and why a pool is stalled. The operator's
gauges have the label `name="aws-account-operator"`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.resources import AccountState
from starters.watch.gauges import lifecycles
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

OPERATOR = "aws-account-operator"
PREFIX = "aws_account_operator_"
# Reasons of a pool's condition `Stalled`.
BUDGET, LIMIT = "CreateBudget", "AccountLimit"

_POOL_NUMBERS = {
    "account_pool_size": ("pool size", "Wanted size of the AccountPool."),
    "aws_limit_delta": ("limit delta", "AWS accounts that the organization's limit still allows."),
    "available_non_ccs_accounts": ("available", "Accounts of the pool that were never claimed and are Ready."),
    "accounts_progressing": ("progressing", "Accounts of the pool on their way to Ready."),
}


def account_gauges(index: Index) -> Iterator[Metric]:
    accounts = [known for known in index.all(ACCOUNT.name) if known.key.namespace == OPERATOR_NAMESPACE]
    claims = list(index.all(ACCOUNT_CLAIM.name))
    pools = list(index.all(ACCOUNT_POOL.name))
    yield from _current(accounts, claims, pools)
    yield from _documented(accounts, claims, pools)
    yield from _own(accounts, claims, pools)


GAUGES = account_gauges


# Names of the replaced operator.


def _current(
    accounts: Sequence[Projection], claims: Sequence[Projection], pools: Sequence[Projection]
) -> Iterator[Metric]:
    states = ("claimed", "reused", "state")
    yield _family(
        "account_crs",
        "Account CRs that are not the customer's own.",
        states,
        Counter(_claimed_reused_state(a) for a in accounts if not _byoc(a)),
    )
    yield _family(
        "account_ccs_crs",
        "Account CRs that are the customer's own.",
        states,
        Counter(_claimed_reused_state(a) for a in accounts if _byoc(a)),
    )
    yield _family("account_claim_crs", "AccountClaim CRs.", ("state",), Counter((c.fact("state"),) for c in claims))
    yield _family(
        "aws_accounts_reusable",
        "Ready accounts that claims have released, by legal entity.",
        ("legal_id",),
        Counter((a.fact("legal entity"),) for a in accounts if _reusable(a)),
    )
    for name, (fact, meaning) in _POOL_NUMBERS.items():
        values = {(pool.key.namespace, pool.key.name): _number(pool, fact) for pool in pools}
        yield _family(name, meaning, ("namespace", "pool_name"), values)


def _claimed_reused_state(account: Projection) -> tuple[str, str, str]:
    return _flag(account, "claimed"), _flag(account, "reused"), account.fact("state")


def _reusable(account: Projection) -> bool:
    return _is(account, AccountState.READY) and bool(account.fact("reused")) and not account.fact("claimed")


# Names from the replaced operator's documents.


def _documented(
    accounts: Sequence[Projection], claims: Sequence[Projection], pools: Sequence[Projection]
) -> Iterator[Metric]:
    def count(holds: Callable[[Projection], bool]) -> int:
        return sum(holds(account) for account in accounts)

    unclaimed = count(_unclaimed)
    pool_size = sum(_number(pool, "pool size") for pool in pools)
    numbers = {
        "total_account_crs": ("Account CRs.", len(accounts)),
        "total_accounts_crs_unclaimed": (
            "Account CRs that were never claimed and are Ready or on their way there.",
            unclaimed,
        ),
        "total_accounts_crs_claimed": ("Account CRs that a claim holds.", count(lambda a: bool(a.fact("claimed")))),
        "total_aws_account_pending_verification": (
            "Account CRs whose support case is open.",
            count(lambda a: _is(a, AccountState.PENDING_VERIFICATION)),
        ),
        "total_accounts_crs_failed": (
            "Failed Account CRs that no claim has released.",
            count(lambda a: _is(a, AccountState.FAILED) and not a.fact("reused")),
        ),
        "total_aws_accounts_crs_ready": (
            "Account CRs that were never claimed and are Ready.",
            count(lambda a: _is(a, AccountState.READY) and _fresh(a)),
        ),
        "total_aws_account_claim_crs": ("AccountClaim CRs.", len(claims)),
        "total_aws_account_reused_failed": (
            "Account CRs whose clean-up failed.",
            count(lambda a: _is(a, AccountState.FAILED) and bool(a.fact("reused"))),
        ),
        "pool_size_vs_unclaimed": (
            "Absolute difference between the pools' sizes and the number of unclaimed Account CRs.",
            abs(pool_size - unclaimed),
        ),
    }
    for name, (meaning, value) in numbers.items():
        yield _family(name, meaning, (), {(): value})
    yield _family(
        "total_aws_account_reused_available",
        "Ready accounts that claims have released, by legal entity.",
        ("LegalID",),
        Counter((a.fact("legal entity"),) for a in accounts if _reusable(a)),
    )


def _unclaimed(account: Projection) -> bool:
    return _fresh(account) and (_is(account, AccountState.READY) or _is(account, AccountState.PENDING_VERIFICATION))


def _fresh(account: Projection) -> bool:
    return not account.fact("claimed") and not account.fact("reused")


# Perdure's own names.


def _own(accounts: Sequence[Projection], claims: Sequence[Projection], pools: Sequence[Projection]) -> Iterator[Metric]:
    phases = Counter((ACCOUNT.name, _phase(a, "Pending")) for a in accounts)
    phases.update((ACCOUNT_CLAIM.name, _phase(c, "New")) for c in claims)
    phases.update((ACCOUNT_POOL.name, _pool_phase(p)) for p in pools)
    yield lifecycles(phases)
    yield GaugeMetricFamily(
        "perdure_accounts_reused",
        "Account CRs that a claim has released.",
        value=sum(bool(a.fact("reused")) for a in accounts),
    )
    stops = {
        "perdure_create_budget_reached": ("1 while the create budget stops the pool.", BUDGET),
        "perdure_account_limit_reached": ("1 while the organization's limit stops the pool.", LIMIT),
    }
    for name, (meaning, reason) in stops.items():
        stop = GaugeMetricFamily(name, meaning, labels=["namespace", "pool_name"])
        for pool in pools:
            stop.add_metric([pool.key.namespace, pool.key.name], float(pool.fact("stalled") == reason))
        yield stop
    stalled = GaugeMetricFamily(
        "perdure_account_pool_stalled",
        "1 for a pool that lacks accounts and creates none; the label `reason` says why.",
        labels=["namespace", "pool_name", "reason"],
    )
    for pool in pools:
        if pool.fact("stalled"):
            stalled.add_metric([pool.key.namespace, pool.key.name, pool.fact("stalled")], 1)
    yield stalled


def _phase(known: Projection, new: str) -> str:
    if known.deleting:
        return "Deleting"
    return "Paused" if known.fact("paused") else known.fact("state") or new


def _pool_phase(pool: Projection) -> str:
    if pool.deleting:
        return "Deleting"
    if pool.fact("paused"):
        return "Paused"
    if pool.fact("stalled"):
        return "Waiting"
    return "Full" if _number(pool, "available") >= _number(pool, "pool size") else "Filling"


# Helpers.


L = TypeVar("L", bound=tuple[str, ...])


def _family(name: str, meaning: str, labels: Iterable[str], values: Mapping[L, int]) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, meaning, labels=["name", *labels])
    for of, value in sorted(values.items()):
        family.add_metric([OPERATOR, *of], value)
    return family


def _is(account: Projection, state: str) -> bool:
    return account.fact("state") == state


def _byoc(account: Projection) -> bool:
    return bool(account.fact("byoc"))


def _flag(account: Projection, fact: str) -> str:
    return "true" if account.fact(fact) else "false"


def _number(pool: Projection, fact: str) -> int:
    return int(pool.fact(fact) or 0)
