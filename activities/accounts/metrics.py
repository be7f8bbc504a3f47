"""The account area's metrics that workers count, under the aws-account-operator's names (docs/metrics.md).

A transition is counted at the write that records it; the write's resourceVersion prevents a second count. Durations are
measured from timestamps of the object, as in the replaced operator's `pkg/localmetrics`, but the clean-up's duration
includes the wait for other finalizers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from botocore.exceptions import ClientError
from prometheus_client import REGISTRY, Counter, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, KINDS
from domain.accounts.actions.account_cleanup import CleanGlobal, CleanRegion
from domain.accounts.actions.iam_identities import RotateKeys
from domain.accounts.constants import FINALIZER
from domain.accounts.observed import entering
from domain.accounts.organization import OrganizationMemory
from domain.accounts.resources import Account, AccountClaim, AccountState, ClaimState
from domain.accounts.state_conditions import probed_at
from domain.resource import parse_timestamp
from domain.writes import Patch
from engine import clock, metrics
from engine.kube.json import flag, mapping, sequence, text
from engine.metrics import Histogram, Listener, Request, Step, Write

OPERATOR = "aws-account-operator"
PREFIX = "aws_account_operator_"
OTHER = "{OTHER}"
NO_ANSWER = "{ERROR}"
# How long a count of the organization is exported, in sweeps: by then another worker has a newer count.
SWEEPS_SHOWN = 2

_OURS = frozenset(kind.name for kind in KINDS)
_CLEANING = frozenset(action.activity for action in (RotateKeys, CleanRegion, CleanGlobal))


def _histogram(name: str, meaning: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(PREFIX + name, meaning, ["name", *labels], buckets=buckets)


# Buckets as the replaced operator declares them.
_ACCOUNT_READY = _histogram(
    "account_ready_duration_seconds",
    "From an Account's creation in AWS until it is ready.",
    (60, 180, 300, 600, 1200, 1800, 3600, 7200, 14400, 18000, 28800, 36000),
).labels(OPERATOR)
_CLAIM_READY = _histogram(
    "account_claim_ready_duration_seconds",
    "From an AccountClaim's first search for an account until it is Ready.",
    (1, 5, 10, 20, 30, 45, 60, 120),
).labels(OPERATOR)
_CLAIM_PENDING = _histogram(
    "account_claim_pending_duration_seconds",
    "The age of an AccountClaim at each observation while it is pending.",
    (60, 120, 240, 300, 600),
).labels(OPERATOR)
_CLEANUP = _histogram(
    "account_reuse_cleanup_duration_seconds",
    "From a claim's deletion until its account is clean and released.",
    (1, 3, 5, 10, 15, 20, 30),
).labels(OPERATOR)
# Buckets for accounts that customers own. Such accounts are claimed as soon as they are ready.
_OF_CUSTOMERS = (5, 10, 20, 30, 60, 120, 240, 300, 480, 600)
_CUSTOMERS_ACCOUNT_READY = _histogram(
    "account_ccs_ready_duration_seconds",
    "From the state Creating of a customer's Account until it is Ready.",
    _OF_CUSTOMERS,
).labels(OPERATOR)
_CUSTOMERS_CLAIM_READY = _histogram(
    "account_claim_ccs_ready_duration_seconds",
    "From the creation of an AccountClaim on a customer's account until it is Ready.",
    _OF_CUSTOMERS,
).labels(OPERATOR)
_CUSTOMERS_CLAIM_PENDING = _histogram(
    "account_claim_ccs_pending_duration_seconds",
    "The age of an AccountClaim on a customer's account at each observation while it is pending.",
    (60, 120, 240, 300, 600),
).labels(OPERATOR)
_CLOSED = Counter(f"{PREFIX}accounts_closed", "Released accounts that were closed.", ["name"]).labels(OPERATOR)
_CLEANUP_FAILURES = Counter(
    f"{PREFIX}account_reuse_cleanup_failures", "Failed attempts to clean an account for its reuse.", ["name"]
).labels(OPERATOR)
_RECONCILE = _histogram(
    "reconcile_duration_seconds",
    "Duration of a pass over an object, or of one step of the pass.",
    (0.001, 0.01, 0.1, 1, 5, 10, 20),
    "controller",
    "error",
    "error_source",
)
_API_REQUEST = _histogram(
    "api_request_duration_seconds",
    "Duration of a request to Kubernetes or AWS.",
    (1,),
    "controller",
    "method",
    "resource",
    "status",
    "error",
    "error_source",
)


def claim_seen(claim: AccountClaim) -> None:
    born = claim.metadata.creation_timestamp
    if claim.status.state == ClaimState.PENDING and born is not None:
        (_CUSTOMERS_CLAIM_PENDING if claim.spec.byoc else _CLAIM_PENDING).observe(_seconds_since(born))


def account_closed() -> None:
    _CLOSED.inc()


def organization_seen(known: OrganizationMemory, sweep: timedelta) -> None:
    """Export the account count until it is two sweeps old; `sweep` is the longest interval between two counts."""
    if known.room is not None and known.counted_at is not None:
        age = max(0.0, _seconds_since(known.counted_at))
        accounts = known.room.active + known.room.creating
        _ORGANIZATION.set(accounts, known.room.budget, SWEEPS_SHOWN * sweep.total_seconds() - age)


class OrganizationCount(Collector):
    def __init__(self) -> None:
        self._accounts = 0
        self._budget = 0
        self._until = 0.0

    def set(self, accounts: int, budget: int, seconds: float) -> None:
        self._accounts, self._budget, self._until = accounts, budget, time.monotonic() + seconds

    def describe(self) -> Iterable[Metric]:
        return self._families()

    def collect(self) -> Iterable[Metric]:
        return self._families() if time.monotonic() < self._until else ()

    def _families(self) -> Iterable[Metric]:
        for name in ("aws_accounts", "total_aws_accounts"):
            accounts = GaugeMetricFamily(
                PREFIX + name, "Active AWS accounts of the organization, and those being created.", labels=["name"]
            )
            accounts.add_metric([OPERATOR], self._accounts)
            yield accounts
        yield GaugeMetricFamily(
            "perdure_create_budget_left", "AWS accounts that the create budget still allows.", value=self._budget
        )


_ORGANIZATION = OrganizationCount()
REGISTRY.register(_ORGANIZATION)


class AccountListener(Listener):
    def on_request(self, request: Request) -> None:
        if request.kind not in _OURS:
            return
        error, source = _blamed(request.error)
        _API_REQUEST.labels(
            OPERATOR, request.kind.lower(), request.method, request.resource, _status_line(request), error, source
        ).observe(request.seconds)

    def on_step(self, step: Step) -> None:
        if step.kind not in _OURS:
            return
        _RECONCILE.labels(OPERATOR, step.kind.lower(), *_blamed(step.error)).observe(step.seconds)
        if step.error is not None and step.activity in _CLEANING:
            _CLEANUP_FAILURES.inc()

    def on_write(self, write: Write) -> None:
        if write.asked.key.kind == ACCOUNT_CLAIM.name and _lets_go(write):
            _observe_since(_CLEANUP, parse_timestamp(text(write.answer, "metadata", "deletionTimestamp")))
        elif _changed_nothing(write):
            return
        elif write.asked.key.kind == ACCOUNT.name and _sets_state(write.asked, AccountState.READY):
            account = Account.model_validate(write.answer)
            whose = _CUSTOMERS_ACCOUNT_READY if account.spec.byoc else _ACCOUNT_READY
            _observe_since(whose, probed_at(account.status.conditions, AccountState.CREATING))
        elif write.asked.key.kind == ACCOUNT_CLAIM.name and write.asked.note == entering(ClaimState.READY):
            claim = AccountClaim.model_validate(write.answer)
            if claim.spec.byoc:
                _observe_since(_CUSTOMERS_CLAIM_READY, claim.metadata.creation_timestamp)
            else:
                _observe_since(_CLAIM_READY, probed_at(claim.status.conditions, "Unclaimed"))


LISTENER = AccountListener()


def listen() -> None:
    metrics.listen(LISTENER)


def _changed_nothing(write: Write) -> bool:
    """Whether the resourceVersion is unchanged. It also stays unchanged when the last finalizer is removed."""
    return text(write.answer, "metadata", "resourceVersion") == write.asked.resource_version


def _sets_state(patch: Patch, state: str) -> bool:
    return patch.subresource == "status" and text(patch.patch, "status", "state") == state


def _lets_go(write: Write) -> bool:
    metadata = mapping(write.asked.patch, "metadata")
    dropped = "finalizers" in metadata and FINALIZER not in sequence(metadata, "finalizers")
    return dropped and _held_account(write.answer) and bool(text(write.answer, "metadata", "deletionTimestamp"))


def _held_account(claim: Mapping[str, object]) -> bool:
    return bool(text(claim, "spec", "accountLink")) and not flag(claim, "spec", "byoc")


def _observe_since(histogram: Histogram, moment: datetime | None) -> None:
    if moment is not None:
        histogram.observe(_seconds_since(moment))


def _seconds_since(moment: datetime) -> float:
    return (clock.now() - moment).total_seconds()


def _status_line(request: Request) -> str:
    """The HTTP status as Go writes it (`200 OK`); `{ERROR}` if there was no answer."""
    code = request.status
    if not code and isinstance(request.error, ClientError):
        code = int(request.error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    if not code:
        return NO_ANSWER
    return f"{code} {HTTPStatus(code).phrase}" if code in set(HTTPStatus) else str(code)


def _blamed(error: BaseException | None) -> tuple[str, str]:
    if error is None:
        return "", ""
    for cause in (error, error.__cause__):
        if isinstance(cause, ClientError):
            return str(cause.response.get("Error", {}).get("Code", OTHER)), "aws"
    return OTHER, OTHER
