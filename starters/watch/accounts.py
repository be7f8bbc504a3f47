"""What of pools, Accounts and claims wakes their own lifecycles; whom they wake is in `domain/accounts/`.

What the pool does for a claim and its Account is not disturbed: their own wakes wait until it is done with them
(`claim_patience`, `account_patience`). A pool that hands nothing over wakes the claim itself, or time does.

An Account's status is input too: people and tools blank it, set a state, or reset `claimed`. An AccountPool's is not.
"""

from __future__ import annotations

from domain import built_in_kinds as built_in
from domain import levers
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.claim import POOLS_TURN
from domain.accounts.claim_validation import spec_fault
from domain.accounts.constants import (
    CONFIG_KEPT,
    CONFIG_MAP,
    FINALIZER,
    IAM_USER_ID_LABEL,
    OPERATOR_NAMESPACE,
    PAUSE_ANNOTATION,
    PAYER_SECRET,
)
from domain.accounts.letting_go import LET_GO
from domain.accounts.relations import CLOSE_BACKOFF, CONFIG, PAYER, POOL_ANNOTATIONS, RELATIONS, is_settled
from domain.accounts.resources import AccountClaim, AccountState, ClaimState
from engine.kube.json import JsonObject, at, flag, mapping, sequence, text
from starters.watch.kinds import Watched, read_nothing
from starters.watch.projection import Projection, View, chosen, generation, others_finalizers

AREA = "accounts"

_ACCOUNT_ANNOTATIONS = (*levers.LEVERS, LET_GO, PAUSE_ANNOTATION, *CLOSE_BACKOFF)
# What decisions read of an Account's conditions: deadlines are counted from the last time.
_CONDITION = ("type", "status", "lastProbeTime")
_ASKED_FOR = ("regionalServiceQuotas", "globalServiceQuotas", "optInRegions")
# Written by kubectl and by our own levers; no decision of a claim reads them.
_UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration", levers.RETRIED, levers.ABANDONED})
_TRUE = "true"


def read_account(obj: JsonObject) -> View:
    """An Account."""
    annotations, status = mapping(obj, "metadata", "annotations"), mapping(obj, "status")
    spec = mapping(obj, "spec")
    state = text(status, "state")
    link = (text(spec, "claimLinkNamespace"), text(spec, "claimLink"))
    claimed = flag(status, "claimed")
    bound = bool(link[1])
    paused = annotations.get(PAUSE_ANNOTATION) == _TRUE or levers.is_paused(annotations)
    entity = text(spec, "legalEntity", "id")
    has_id = bool(text(spec, "awsAccountID"))
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            FINALIZER in sequence(obj, "metadata", "finalizers"),
            chosen(annotations, _ACCOUNT_ANNOTATIONS),
            text(obj, "metadata", "labels", IAM_USER_ID_LABEL),
            state,
            claimed,
            flag(status, "reused"),
            text(status, "supportCaseID"),
            tuple(tuple(text(c, name) for name in _CONDITION) for c in sequence(status, "conditions")),
            # Emptied, quotas and regions begin anew; one that is set back is asked for again.
            *(repr(status.get(name) or None) for name in _ASKED_FOR),
        ),
        handed=(*link, entity),
        settled=state == AccountState.READY and has_id and bound == claimed and not _retry_wanted(annotations),
        facts={
            "claim": link[1],
            "claimed": _word(claimed),
            "state": state,
            "reused": _word(flag(status, "reused")),
            "byoc": _word(flag(spec, "byoc")),
            "legal entity": entity,
            "paused": _word(paused),
        },
    )


def read_claim(obj: JsonObject) -> View:
    """An AccountClaim."""
    claim = AccountClaim.model_validate(obj)
    annotations, link, state = claim.metadata.annotations, claim.spec.account_link, claim.status.state
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            tuple(sorted(each for each in annotations.items() if each[0] not in _UNREAD_ANNOTATIONS)),
            state,
        ),
        handed=(link,),
        settled=is_settled(claim),
        facts={
            "account": link,
            "state": state,
            "paused": _word(levers.paused(claim.metadata)),
            "pool's turn": _word(_is_the_pools(claim)),
        },
        model=claim,
    )


def _is_the_pools(claim: AccountClaim) -> bool:
    """True for a new claim that the pool could serve: its own workflow would have nothing to say for a while."""
    return claim.status.state == ClaimState.NEW and claim.from_pool and spec_fault(claim) is None


def read_pool(obj: JsonObject) -> View:
    """An AccountPool; its workflow is woken at every start, as its counts may be stale without its saying so."""
    annotations = mapping(obj, "metadata", "annotations")
    return View(
        fingerprint=(generation(obj), others_finalizers(obj, FINALIZER), chosen(annotations, POOL_ANNOTATIONS)),
        facts={
            "pool size": _number(obj, "spec", "poolSize"),
            "limit delta": _number(obj, "status", "awsLimitDelta"),
            "available": _number(obj, "status", "availableAccounts"),
            "progressing": _number(obj, "status", "accountsProgressing"),
            "stalled": _stalled(obj),
            "paused": _word(levers.is_paused(annotations)),
        },
    )


def _number(obj: JsonObject, *path: str) -> str:
    """A whole number of the object, which gauges tell."""
    value = at(obj, *path)
    return str(value) if isinstance(value, int) else ""


def _stalled(pool: JsonObject) -> str:
    """Why the pool creates nothing though it lacks accounts, in one word."""
    conditions = sequence(pool, "status", "conditions")
    reasons = (text(c, "reason") for c in conditions if (text(c, "type"), text(c, "status")) == ("Stalled", "True"))
    return next(reasons, "")


def _retry_wanted(annotations: object) -> bool:
    token = text(annotations, levers.RETRY)
    return bool(token) and token != text(annotations, levers.RETRIED)


def _word(holds: bool) -> str:
    return _TRUE if holds else ""


def account_patience(before: Projection | None, after: Projection) -> float:
    """An Account that the pool has just bound has time to note that it is claimed."""
    bound_now = before is not None and not before.fact("claim") and bool(after.fact("claim"))
    mine = after.fact("state") == AccountState.READY and not after.fact("claimed")
    return POOLS_TURN.total_seconds() if bound_now and mine and after.ours and not after.deleting else 0.0


def claim_patience(before: Projection | None, after: Projection) -> float:
    """A new claim is the pool's at first, and so is one that it has just bound."""
    bound_now = before is not None and not before.fact("account") and bool(after.fact("account")) and after.ours
    served = bound_now or after.fact("pool's turn") == _TRUE
    return POOLS_TURN.total_seconds() if served and not after.deleting and not after.fact("paused") else 0.0


WATCHED = (
    Watched(kind=ACCOUNT_POOL, read=read_pool, relations=RELATIONS),
    Watched(kind=ACCOUNT, read=read_account, relations=RELATIONS, patience=account_patience),
    Watched(kind=ACCOUNT_CLAIM, read=read_claim, relations=RELATIONS, patience=claim_patience),
    Watched(
        kind=built_in.CONFIG_MAP,
        name="accounts ConfigMap",
        read=read_nothing,
        relations=(CONFIG,),
        has_workflow=False,
        kept=CONFIG_KEPT.total_seconds() + 1,
        namespace=OPERATOR_NAMESPACE,
        field_selector=f"metadata.name={CONFIG_MAP}",
    ),
    Watched(
        kind=built_in.SECRET,
        name="accounts Secret",
        read=read_nothing,
        relations=(PAYER,),
        has_workflow=False,
        namespace=OPERATOR_NAMESPACE,
        field_selector=f"metadata.name={PAYER_SECRET}",
    ),
)
