"""Which changes of pools, Accounts and claims wake their own lifecycles.

`domain/accounts/relations.py` says which other lifecycles they wake. While the pool handles a claim and its Account,
the wakes of both are delayed. An Account's status is input too: people and tools clear it, set a state, or reset
`claimed`.
"""

from __future__ import annotations

from domain import built_in_kinds as built_in
from domain import control_annotations
from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.claim_lifecycle import POOLS_TURN
from domain.accounts.claim_validation import spec_fault
from domain.accounts.constants import CONFIG_MAP, FINALIZER, OPERATOR_NAMESPACE, PAUSE_ANNOTATION, PAYER_SECRET
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.relations import CLOSE_BACKOFF, CONFIG, PAYER, POOL_ANNOTATIONS, RELATIONS, is_settled
from domain.accounts.resources import Account, AccountClaim, AccountState, ClaimState
from domain.identity import Kind
from domain.relations import Relation
from engine.kube.json import JsonObject, at, mapping, sequence, text
from engine.kube.reflector import Followed
from starters.watch.projection import Projection, View, chosen, generation, others_finalizers
from starters.watch.watched_kinds import Pacing, Watched, read_nothing

AREA = "accounts"

_ACCOUNT_ANNOTATIONS = (*control_annotations.LEVERS, FORCE_RELEASE, PAUSE_ANNOTATION, *CLOSE_BACKOFF)
_REQUESTED = ("regionalServiceQuotas", "globalServiceQuotas", "optInRegions")
# Written by kubectl and our own commands; no decision about a claim reads them.
_UNREAD_ANNOTATIONS = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", control_annotations.RETRIED, control_annotations.ABANDONED}
)
# Seconds within which the pool hands over a bound Account, even if it hands over ten at once.
_HAND_OVER = 1.0
_TRUE = "true"


def read_account(obj: JsonObject) -> View:
    account = Account.model_validate(obj)
    meta, spec, status = account.metadata, account.spec, account.status
    asked_for = mapping(obj, "status")
    has_finalizer = FINALIZER in meta.finalizers
    has_all = status.state == AccountState.READY and bool(spec.aws_account_id) and has_finalizer
    return View(
        fingerprint=(
            meta.generation,
            tuple(meta.finalizers_without(FINALIZER)),
            has_finalizer,
            chosen(meta.annotations, _ACCOUNT_ANNOTATIONS),
            account.iam_user_id,
            status.state,
            status.claimed,
            status.reused,
            status.support_case_id,
            # Deadlines count from the last probe time.
            tuple((each.type, each.status, each.last_probe_time) for each in status.conditions),
            # Emptying one of these fields makes the account request its quotas or regions again.
            *(repr(asked_for.get(name) or None) for name in _REQUESTED),
        ),
        handed=(spec.claim_link_namespace, spec.claim_link, spec.legal_entity.id),
        settled=has_all and bool(spec.claim_link) == status.claimed and not control_annotations.retry_wanted(meta),
        facts={
            "claim": spec.claim_link,
            "claimed": _word(status.claimed),
            "state": status.state,
            "reused": _word(status.reused),
            "byoc": _word(spec.byoc),
            "legal entity": spec.legal_entity.id,
            "paused": _word(account.on_hold),
        },
        model=account,
    )


def read_claim(obj: JsonObject) -> View:
    claim = AccountClaim.model_validate(obj)
    annotations, link, state = claim.metadata.annotations, claim.spec.account_link, claim.status.state
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            FINALIZER in claim.metadata.finalizers,
            tuple(sorted(each for each in annotations.items() if each[0] not in _UNREAD_ANNOTATIONS)),
            state,
        ),
        handed=(link,),
        settled=is_settled(claim),
        facts={
            "account": link,
            "state": state,
            "paused": _word(control_annotations.paused(claim.metadata)),
            "pool's turn": _word(_is_the_pools(claim)),
        },
        model=claim,
    )


def _is_the_pools(claim: AccountClaim) -> bool:
    return claim.status.state == ClaimState.NEW and claim.from_pool and spec_fault(claim) is None


def read_pool(obj: JsonObject) -> View:
    """`settled` is always False, because a pool's status does not show whether its counts are stale."""
    annotations = mapping(obj, "metadata", "annotations")
    return View(
        fingerprint=(generation(obj), others_finalizers(obj, FINALIZER), chosen(annotations, POOL_ANNOTATIONS)),
        facts={
            "pool size": _number(obj, "spec", "poolSize"),
            "limit delta": _number(obj, "status", "awsLimitDelta"),
            "available": _number(obj, "status", "availableAccounts"),
            "progressing": _number(obj, "status", "accountsProgressing"),
            "stalled": _stalled(obj),
            "paused": _word(control_annotations.is_paused(annotations)),
        },
    )


def _number(obj: JsonObject, *path: str) -> str:
    value = at(obj, *path)
    return str(value) if isinstance(value, int) else ""


def _stalled(pool: JsonObject) -> str:
    conditions = sequence(pool, "status", "conditions")
    reasons = (text(c, "reason") for c in conditions if (text(c, "type"), text(c, "status")) == ("Stalled", "True"))
    return next(reasons, "")


def _word(holds: bool) -> str:
    return _TRUE if holds else ""


def account_patience(before: Projection | None, after: Projection) -> float:
    """How many seconds an Account's wake is delayed after it was bound, because the pool still handles it."""
    bound_now = before is not None and not before.fact("claim") and bool(after.fact("claim"))
    mine = after.fact("state") == AccountState.READY and not after.fact("claimed")
    return _HAND_OVER if bound_now and mine and after.ours and not after.deleting else 0.0


def claim_patience(before: Projection | None, after: Projection) -> float:
    """How many seconds the wake of a new or just bound claim is delayed, because the pool still handles it."""
    bound_now = before is not None and not before.fact("account") and bool(after.fact("account")) and after.ours
    served = bound_now or after.fact("pool's turn") == _TRUE
    return POOLS_TURN.total_seconds() if served and not after.deleting and not after.fact("paused") else 0.0


def _configuration(kind: Kind, name: str, relation: Relation) -> Watched:
    selector, called = f"metadata.name={name}", f"accounts {kind.name}"
    followed = Followed(kind, OPERATOR_NAMESPACE, field_selector=selector, called=called)
    return Watched(followed, read=read_nothing, relations=(relation,))


WATCHED = (
    Watched(Followed(ACCOUNT_POOL), read=read_pool, relations=RELATIONS),
    Watched(Followed(ACCOUNT), read=read_account, relations=RELATIONS, pacing=Pacing(account_patience)),
    Watched(Followed(ACCOUNT_CLAIM), read=read_claim, relations=RELATIONS, pacing=Pacing(claim_patience)),
    _configuration(built_in.CONFIG_MAP, CONFIG_MAP, CONFIG),
    _configuration(built_in.SECRET, PAYER_SECRET, PAYER),
)
