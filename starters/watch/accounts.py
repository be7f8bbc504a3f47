"""What the AWS account area watches: its three kinds, and the operator's ConfigMap and payer Secret.

| change of | wakes, besides the object itself |
|---|---|
| Account, in what pools count and match by | its AccountPool; all pools if it names none; none if the pool made it |
| Account: state, link, a person's hold, until when its closing is put off | the AccountClaim it is linked to, and was |
| Account without an AWS account id, waiting for its support case, gone | the Organization |
| AccountClaim without an account, or gone | its AccountPool; all pools if it names none |
| AccountClaim: linked to another, deleting, gone | the Account it is linked to, and was |
| AccountClaim of a customer: its terms, the word to let go | the Account it is linked to |
| Secret with a customer's key, while a claim waits for it or ends | that claim, and its Account |
| AccountPool: spec, levers, gone | the Organization |
| Account: Ready or Failed now, claimed, of another legal entity | the validation |
| ConfigMap, Secret | everything of the area that is not settled, all pools, the Organization, the validation |

The Secrets of customers are watched one by one, in their claims' namespaces, as long as somebody waits for them; only
the version of one is kept.

What the pool does for a claim and its Account is not disturbed: their own wakes wait until it is done with them
(`claim_patience`, `account_patience`). A pool that hands nothing over wakes the claim itself, or time does.

An Account's status is input too: people and tools blank it, set a state, or reset `claimed`. An AccountPool's is not.
Links name an Account of the operator's namespace only, as the replaced operator binds no others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from pydantic import ValidationError

from domain import levers
from domain.accounts import (
    ACCOUNT,
    ACCOUNT_CLAIM,
    ACCOUNT_POOL,
    AWS_FEDERATED_ACCOUNT_ACCESS,
    AWS_FEDERATED_ROLE,
    THE_VALIDATION,
)
from domain.accounts.claim import NOT_MOVED, POOLS_TURN
from domain.accounts.claim_validation import spec_fault
from domain.accounts.constants import (
    AT_LIMIT_CONDITION,
    CONFIG_KEPT,
    CONFIG_MAP,
    FAKE_ANNOTATION,
    FINALIZER,
    IAM_USER_ID_LABEL,
    OPERATOR_NAMESPACE,
    PAUSE_ANNOTATION,
    PAYER_SECRET,
)
from domain.accounts.customer_account import TROUBLE
from domain.accounts.letting_go import LET_GO
from domain.accounts.organization import BUDGET_SINCE, ORGANIZATION
from domain.accounts.resources import (
    FAILED_STATES,
    OPT_IN_STATES,
    PROGRESSING_STATES,
    AccountClaim,
    AccountState,
    ClaimState,
)
from domain.identity import Key
from engine.kube import kinds as built_in
from engine.kube.json import JsonObject, at, flag, mapping, sequence, text
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, View, chosen, generation, others_finalizers

AREA = "accounts"

CLOSE_BACKOFF = (
    "aws.managed.openshift.io/close-rate-limited-until",
    "aws.managed.openshift.io/close-backoff-seconds",
)
_ACCOUNT_ANNOTATIONS = (*levers.LEVERS, LET_GO, PAUSE_ANNOTATION, *CLOSE_BACKOFF)
# The create budget counts from BUDGET_SINCE on: the pool's workflow writes it, the Organization's reads it.
_POOL_ANNOTATIONS = (*levers.LEVERS, BUDGET_SINCE)
# What decisions read of an Account's conditions: deadlines are counted from the last time.
_CONDITION = ("type", "status", "lastProbeTime")
_ASKED_FOR = ("regionalServiceQuotas", "globalServiceQuotas", "optInRegions")
# Written by kubectl and by our own levers; no decision of a claim reads them.
_UNREAD_ANNOTATIONS = frozenset({"kubectl.kubernetes.io/last-applied-configuration", levers.RETRIED, levers.ABANDONED})
# What a customer's Account is made by.
_TERMS = ("aws", "byocSecretRef", "stsRoleARN", "stsExternalID", "customTags", "kmsKeyId")
_TRUE = "true"
# The facts of an Account by which its claim decides.
_TOLD_TO_CLAIM = ("state", "claim", "claim namespace", "trouble", "held", "closing")


# Reading.


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
            "pool": text(spec, "accountPool"),
            "claim namespace": link[0],
            "claim": link[1],
            "claimed": _word(claimed),
            "state": state,
            "counts as": repr(
                (
                    *(_state_class(state), bound, claimed, flag(status, "reused"), entity, paused),
                    *(spec.get("byoc") is True, not has_id and _at_limit(status)),
                )
            ),
            "has id": _word(has_id),
            "support case": text(status, "supportCaseID"),
            "reused": _word(flag(status, "reused")),
            "byoc": _word(flag(spec, "byoc")),
            "trouble": _trouble(annotations, status),
            "legal entity": entity,
            "paused": _word(paused),
            "held": _word(levers.is_paused(annotations)),
            "closing": _closing(annotations),
        },
    )


def read_claim(obj: JsonObject) -> View:
    """An AccountClaim."""
    annotations = mapping(obj, "metadata", "annotations")
    spec, state = mapping(obj, "spec"), text(obj, "status", "state")
    link = text(spec, "accountLink")
    moved = text(spec, "accountOU") not in NOT_MOVED
    byoc, sts = flag(spec, "byoc"), flag(spec, "manualSTSMode")
    handed_over = bool(text(spec, "supportRoleARN")) or sts
    has_all = bool(link) and (handed_over if byoc else moved)
    settled = state == ClaimState.READY and (has_all or annotations.get(FAKE_ANNOTATION) == _TRUE)
    waits_for_secret = byoc and not sts and not (settled and not text(obj, "metadata", "deletionTimestamp"))
    finalizers = sequence(obj, "metadata", "finalizers")
    return View(
        fingerprint=(
            generation(obj),
            others_finalizers(obj, FINALIZER),
            tuple(sorted((name, str(v)) for name, v in annotations.items() if name not in _UNREAD_ANNOTATIONS)),
            state,
        ),
        handed=(link,),
        settled=settled and not _retry_wanted(annotations),
        facts={
            "pool": text(spec, "accountPool"),
            "account": link,
            "state": state,
            "paused": _word(levers.is_paused(annotations)),
            "input secret": text(spec, "byocSecretRef", "name") if waits_for_secret else "",
            "terms": repr((annotations.get(LET_GO), *(spec.get(field) for field in _TERMS))) if byoc else "",
            "pool's turn": _word(_is_the_pools(obj, state)),
            "asks as": repr((generation(obj), state, FINALIZER in finalizers, sorted(annotations))),
        },
    )


def _is_the_pools(obj: JsonObject, state: str) -> bool:
    """True for a new claim that the pool could serve: its own workflow would have nothing to say for a while."""
    if state != ClaimState.NEW:
        return False
    try:
        claim = AccountClaim.model_validate(obj)
    except ValidationError:
        return False
    return claim.from_pool and spec_fault(claim) is None


def read_pool(obj: JsonObject) -> View:
    """An AccountPool; its workflow is woken at every start, as its counts may be stale without its saying so."""
    annotations = mapping(obj, "metadata", "annotations")
    return View(
        fingerprint=(generation(obj), others_finalizers(obj, FINALIZER), chosen(annotations, _POOL_ANNOTATIONS)),
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


def read_config(obj: JsonObject) -> View:
    """The ConfigMap or the Secret: any change of its content, of which only a hash is kept."""
    content = {**mapping(obj, "data"), **mapping(obj, "binaryData")}
    return View(fingerprint=tuple(sorted((name, str(value)) for name, value in content.items())), settled=True)


def read_input_secret(obj: JsonObject) -> View:
    """A customer's Secret: that it is there, and its version."""
    return View((text(obj, "metadata", "resourceVersion"),), settled=True)


def _retry_wanted(annotations: object) -> bool:
    token = text(annotations, levers.RETRY)
    return bool(token) and token != text(annotations, levers.RETRIED)


def _trouble(annotations: object, status: object) -> str:
    """Why a customer's account cannot be entered, as its claim shows it; and a person's word to let it go."""
    conditions = (c for c in sequence(status, "conditions") if text(c, "type") in (TROUBLE, "AccountClientError"))
    told = [(text(c, "status"), text(c, "reason"), text(c, "message")) for c in conditions]
    return repr((text(annotations, LET_GO), told))


def _closing(annotations: object) -> str:
    """Until when the closing of a released account is put off, and by how much, as its claim decides by it."""
    return "/".join(text(annotations, name) for name in CLOSE_BACKOFF).strip("/")


def _state_class(state: str) -> str:
    """States as pools tell them apart: how far an account has progressed is nothing to them."""
    if state in PROGRESSING_STATES:
        return "progressing"
    if state in OPT_IN_STATES | {AccountState.NEW, AccountState.READY}:
        return state
    return AccountState.FAILED if state in FAILED_STATES else "other"


def _at_limit(status: object) -> bool:
    """True for an Account that waits for room: its pool says so."""
    return any(text(c, "type") == AT_LIMIT_CONDITION for c in sequence(status, "conditions"))


def _word(holds: bool) -> str:
    return _TRUE if holds else ""


# Whom a change concerns.


def account_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Pool, claim and Organization of an Account."""
    keys: set[Key] = set()
    if _differ(before, after, "counts as", "pool") and not _made_by_pool(before, after):
        for side in (each for each in _existing(before, after) if not each.fact("byoc")):
            keys |= pools(index, side.fact("pool"))
    if _differ(before, after, *_TOLD_TO_CLAIM) and not _being_bound(before, after, index):
        for side in _existing(before, after):
            keys.update(index.keys(ACCOUNT_CLAIM.name, side.fact("claim namespace"), [side.fact("claim")]))
    asks, gave_way = _asks_organization(after), _stopped_opting_in(before, after)
    landed = before is not None and after is not None and not before.fact("has id") and after.fact("has id")
    if after is None or landed or gave_way or (asks and asks != _asks_organization(before)):
        keys |= organization(before, after)
    return keys | validation(before, after)


def _made_by_pool(before: Projection | None, after: Projection | None) -> bool:
    """True for a new Account that only Perdure has written: the pass of its pool that made it has counted it."""
    if before is not None or after is None or after.deleting or not after.ours:
        return False
    return not (after.fact("state") or after.fact("has id") or after.fact("claim")) and bool(after.fact("pool"))


def _being_bound(before: Projection | None, after: Projection | None, index: Index) -> bool:
    """True when the pool has just linked an Account to a claim, whose own link it writes next."""
    if before is None or after is None or before.fact("claim") or not after.ours:
        return False
    claim = index.get(ACCOUNT_CLAIM.name, after.fact("claim namespace"), after.fact("claim"))
    return claim is not None and not claim.fact("account") and before.fact("state") == after.fact("state")


def _asks_organization(account: Projection | None) -> tuple[str, ...]:
    """What an Account wants of the Organization: a CreateAccount permit while it has no id, a look at its case."""
    if account is None:
        return ()
    if not account.fact("has id"):
        return ("id", account.fact("state"), _word(account.deleting))
    pending = account.fact("state") == AccountState.PENDING_VERIFICATION
    return ("case", account.fact("support case")) if pending and account.fact("support case") else ()


def _stopped_opting_in(before: Projection | None, after: Projection | None) -> bool:
    """True when another Account may have the turn to opt in to regions."""
    opting_in = [side is not None and side.fact("state") == AccountState.OPTING_IN_REGIONS for side in (before, after)]
    return opting_in == [True, False]


def claim_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Pool and Account of a claim."""
    keys: set[Key] = set()
    if after is None or (_searching(after) and _differ(before, after, "asks as", "pool", "account")):
        for side in _existing(before, after):
            keys |= pools(index, side.fact("pool"))
    linked = before is not None and after is not None and not before.fact("account") and not after.deleting
    if _differ(before, after, "account", "terms") and not linked:  # an Account is linked first, and knows by that
        for side in _existing(before, after):
            keys.update(index.keys(ACCOUNT.name, OPERATOR_NAMESPACE, [side.fact("account")]))
    return keys


def input_secret_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The claims that wait for a customer's Secret, or end with it, and their Accounts."""
    known = after or before
    if known is None:
        return set()
    named = index.find(ACCOUNT_CLAIM.name, "input secret", known.key.name)
    claims = [each for each in named if each.key.namespace == known.key.namespace]
    accounts = [each.fact("account") for each in claims if each.fact("account")]
    return {each.key for each in claims} | set(index.keys(ACCOUNT.name, OPERATOR_NAMESPACE, accounts))


def input_secrets(claim: Projection) -> tuple[Watched, ...]:
    """The Secret that a customer's claim waits for."""
    name = claim.fact("input secret")
    return (_input_secret(claim.key.namespace, name),) if name else ()


_INPUT_SECRETS = Watched(
    kind=built_in.SECRET,
    name="customers' Secrets",
    field_selector="type!=helm.sh/release.v1",
    read=read_input_secret,
    dependents=input_secret_dependents,
    has_workflow=False,
    metadata_only=True,
)


@cache
def _input_secret(namespace: str, name: str) -> Watched:
    return replace(
        _INPUT_SECRETS,
        name=f"customer's Secret {namespace}/{name}",
        namespace=namespace,
        field_selector=f"metadata.name={name}",
        wider=_INPUT_SECRETS,
    )


def _searching(claim: Projection) -> bool:
    return not claim.fact("account") and not claim.deleting


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


def pool_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The Organization, which shares the limit out among the pools."""
    changed = before is None or after is None or before.fingerprint != after.fingerprint
    return organization(before, after) if changed else set()


def config_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """Everything that may wait for the content, or decide otherwise by it."""
    if before and after and before.fingerprint == after.fingerprint:
        return set()
    kinds = (ACCOUNT, ACCOUNT_CLAIM, AWS_FEDERATED_ROLE, AWS_FEDERATED_ACCOUNT_ACCESS)
    unsettled = {known.key for kind in kinds for known in index.all(kind.name) if not known.settled}
    everyone = unsettled | pools(index, "")
    if not everyone and not any(True for _ in index.all(ACCOUNT.name)):
        return set()
    return everyone | organization(before, after) | _the_validation(before, after)


def pools(index: Index, name: str) -> set[Key]:
    """The pool of a name in the operator's namespace; all of them for "", which means whichever is the default."""
    if name:
        return set(index.keys(ACCOUNT_POOL.name, OPERATOR_NAMESPACE, [name]))
    return {pool.key for pool in index.all(ACCOUNT_POOL.name)}


def organization(*sides: Projection | None) -> set[Key]:
    """The one workflow that owns what is scarce in the AWS organization; no custom resource stands behind it."""
    clusters = {side.key.cluster for side in sides if side is not None}
    return {ORGANIZATION.model_copy(update={"cluster": cluster}) for cluster in clusters}


def validation(before: Projection | None, after: Projection | None) -> set[Key]:
    """The validation, for an Account whose place, tags or quotas may be others than they should be now, or that failed.

    An Account that was there when the watcher began is looked at when the sweep is due.
    """
    if before is None or after is None or after.deleting:
        return set()
    stands = after.fact("state") in {AccountState.READY, AccountState.FAILED}
    moved = any(before.fact(fact) != after.fact(fact) for fact in ("state", "legal entity", "has id", "claimed"))
    return _the_validation(after) if stands and moved else set()


def _the_validation(*sides: Projection | None) -> set[Key]:
    clusters = {side.key.cluster for side in sides if side is not None}
    return {THE_VALIDATION.model_copy(update={"cluster": cluster}) for cluster in clusters}


def _existing(*sides: Projection | None) -> list[Projection]:
    return [side for side in sides if side is not None]


def _differ(before: Projection | None, after: Projection | None, *facts: str) -> bool:
    """Whether one of the facts is another than before, or the object is new, gone or being deleted now."""
    if before is None or after is None or before.deleting != after.deleting:
        return True
    return any(before.fact(fact) != after.fact(fact) for fact in facts)


WATCHED = (
    Watched(kind=ACCOUNT_POOL, read=read_pool, dependents=pool_dependents),
    Watched(kind=ACCOUNT, read=read_account, dependents=account_dependents, patience=account_patience),
    Watched(
        kind=ACCOUNT_CLAIM,
        read=read_claim,
        dependents=claim_dependents,
        patience=claim_patience,
        declares=input_secrets,
    ),
    Watched(
        kind=built_in.CONFIG_MAP,
        name="accounts ConfigMap",
        read=read_config,
        dependents=config_dependents,
        has_workflow=False,
        kept=CONFIG_KEPT.total_seconds() + 1,
        namespace=OPERATOR_NAMESPACE,
        field_selector=f"metadata.name={CONFIG_MAP}",
    ),
    Watched(
        kind=built_in.SECRET,
        name="accounts Secret",
        read=read_config,
        dependents=config_dependents,
        has_workflow=False,
        namespace=OPERATOR_NAMESPACE,
        field_selector=f"metadata.name={PAYER_SECRET}",
    ),
)
