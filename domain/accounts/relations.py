"""Relations among pools, Accounts and claims, and which changes matter.

    AccountPool <── Account <──> AccountClaim ──> AccountPool
                       │              │
                       ▼              ▼
         Organization, validation   the customer's Secret       all ──> the operator's ConfigMap, the payer's Secret

A pool first links an Account to a claim, then the claim to the Account; only the second link wakes both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

from domain import built_in_kinds, control_annotations
from domain.accounts import THE_VALIDATION
from domain.accounts.claim_lifecycle import NOT_MOVED
from domain.accounts.constants import (
    AT_LIMIT_CONDITION,
    CLAIM_UID_ANNOTATION,
    CLOSE_BACKOFF_SECONDS,
    CLOSE_LIMITED_UNTIL,
    CONFIG_MAP,
    FINALIZER,
    OPERATOR_NAMESPACE,
    PAYER_SECRET,
)
from domain.accounts.creation_permits import BUDGET_SINCE
from domain.accounts.customer_account import TROUBLE
from domain.accounts.federated import relations as federated
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.free_account_choice import is_free
from domain.accounts.organization import ORGANIZATION
from domain.accounts.resources import (
    FAILED_STATES,
    OPT_IN_STATES,
    PROGRESSING_STATES,
    Account,
    AccountClaim,
    AccountPool,
    AccountState,
    ClaimState,
)
from domain.identity import Kind
from domain.relations import Linked, News, On, Relation, Scope, WhileNamed, Whom, version
from domain.resource import KubeObject

CLOSE_BACKOFF = (CLOSE_LIMITED_UNTIL, CLOSE_BACKOFF_SECONDS)
# The pool's workflow writes BUDGET_SINCE, and the Organization's reads it.
POOL_ANNOTATIONS = (*control_annotations.LEVERS, BUDGET_SINCE)
_ANY_POOL = "any pool"
_DISTINGUISHED = OPT_IN_STATES | {AccountState.NEW, AccountState.READY}


def _pool_of(account: Account) -> Iterable[Hashable]:
    return [] if account.spec.byoc else _pool_named(account.spec.account_pool)


def _pool_named(name: str) -> Iterable[Hashable]:
    return [(OPERATOR_NAMESPACE, name)] if name else [_ANY_POOL]


def _pool_names(pool: AccountPool) -> Iterable[Hashable]:
    return [(pool.metadata.namespace, pool.metadata.name), _ANY_POOL]


def _claim_of(account: Account) -> Iterable[Hashable]:
    """The claim in the link. If a failed clean-up has removed the link, the claim's uid."""
    spec = account.spec
    if spec.claim_link:
        return [(spec.claim_link_namespace, spec.claim_link)]
    uid = account.metadata.annotations.get(CLAIM_UID_ANNOTATION)
    return [uid] if uid else []


def _claim_names(claim: AccountClaim) -> Iterable[Hashable]:
    return [(claim.metadata.namespace, claim.metadata.name), claim.metadata.uid]


def _account_of(claim: AccountClaim) -> Iterable[Hashable]:
    return [(OPERATOR_NAMESPACE, claim.spec.account_link)] if claim.spec.account_link else []


def is_settled(claim: AccountClaim) -> bool:
    spec, link = claim.spec, bool(claim.spec.account_link)
    handed_over = bool(spec.support_role_arn) or spec.manual_sts_mode
    has_all = link and (handed_over if spec.byoc else spec.account_ou not in NOT_MOVED)
    ready = claim.status.state == ClaimState.READY and (has_all or claim.fake)
    meta = claim.metadata
    return ready and FINALIZER in meta.finalizers and not control_annotations.retry_wanted(meta)


def _key_awaited(claim: AccountClaim) -> Iterable[Hashable]:
    spec, meta = claim.spec, claim.metadata
    name = spec.byoc_secret_ref.name if spec.byoc and not spec.manual_sts_mode else ""
    return [(meta.namespace, name)] if name and (not is_settled(claim) or meta.deleting) else []


def _counted_as(account: Account) -> Hashable:
    """What pools count of an Account. The progress of its regions is left out, so it wakes no pool."""
    spec, status, meta = account.spec, account.status, account.metadata
    at_limit = not spec.aws_account_id and any(each.type == AT_LIMIT_CONDITION for each in status.conditions)
    return (
        *(_state_class(status.state), bool(spec.claim_link), status.claimed, status.reused, spec.legal_entity.id),
        *(account.on_hold, spec.byoc, at_limit, meta.deleting, is_free(account)),
    )


def _state_class(state: str) -> str:
    if state in PROGRESSING_STATES:
        return "progressing"
    if state in _DISTINGUISHED:
        return state
    return AccountState.FAILED if state in FAILED_STATES else "other"


def _as_made_by_pool(account: Account) -> bool:
    spec = account.spec
    return bool(spec.account_pool) and not (account.status.state or spec.aws_account_id or spec.claim_link)


def _shown_to_claim(account: Account) -> Hashable:
    meta, conditions = account.metadata, account.status.conditions
    trouble = [each for each in conditions if each.type in (TROUBLE, "AccountClientError")]
    return (
        account.status.state,
        tuple((each.status, each.reason, each.message) for each in trouble),
        *(meta.annotations.get(name) for name in (FORCE_RELEASE, *CLOSE_BACKOFF)),
        *(control_annotations.paused(meta), meta.deleting),
    )


def _held_without_uid(account: Account) -> frozenset[Hashable]:
    recorded = CLAIM_UID_ANNOTATION in account.metadata.annotations
    return frozenset({"no uid"} if account.spec.claim_link and not recorded else ())


def _needs_of_organization(account: Account) -> frozenset[Hashable]:
    spec, status = account.spec, account.status
    if not spec.aws_account_id:
        return frozenset() if account.on_hold else frozenset({("id", status.state, account.metadata.deleting)})
    pending = status.state == AccountState.PENDING_VERIFICATION and status.support_case_id
    return frozenset({("case", status.support_case_id)}) if pending else frozenset()


def _given_back(account: Account) -> frozenset[Hashable]:
    permit = {"permit"} if account.spec.aws_account_id else set()
    permit |= {"resumed"} if permit and not account.on_hold else set()  # it may ask for a turn to opt in again
    return frozenset(permit | {"turn"} if account.status.state != AccountState.OPTING_IN_REGIONS else permit)


def _validated(account: Account) -> frozenset[Hashable]:
    spec, status = account.spec, account.status
    if account.metadata.deleting or account.on_hold or status.state not in {AccountState.READY, AccountState.FAILED}:
        return frozenset()
    return frozenset({(status.state, spec.legal_entity.id, bool(spec.aws_account_id), status.claimed)})


def _needs_of_pool(claim: AccountClaim) -> frozenset[Hashable]:
    meta = claim.metadata
    if claim.spec.account_link or meta.deleting:
        return frozenset()
    held, stopped = FINALIZER in meta.finalizers, control_annotations.paused(meta) or claim.fake
    return frozenset({(meta.generation, claim.status.state, held, stopped, tuple(sorted(meta.annotations)))})


def _terms(claim: AccountClaim) -> Hashable:
    spec, meta = claim.spec, claim.metadata
    terms = {"aws", "byoc_secret_ref", "sts_role_arn", "sts_external_id", "custom_tags", "kms_key_id"}
    made_by = (meta.annotations.get(FORCE_RELEASE), spec.model_dump_json(include=terms)) if spec.byoc else ()
    return made_by, meta.deleting


class _ConfigMap(KubeObject):
    kind_of: ClassVar[Kind] = built_in_kinds.CONFIG_MAP

    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}


class _Secret(_ConfigMap):
    kind_of: ClassVar[Kind] = built_in_kinds.SECRET


def _content(config: _ConfigMap) -> Hashable:
    return tuple(sorted({**config.data, **config.binary_data}.items()))


def _named_pool(pool: AccountPool) -> Hashable:
    meta = pool.metadata
    return meta.generation, tuple(meta.annotations.get(name) for name in POOL_ANNOTATIONS), meta.deleting


def _configuration(model: type[_ConfigMap], name: str) -> Relation:
    named = (name,)
    return Relation(
        of=(
            *(AccountPool, Account, AccountClaim, AWSFederatedRole, AWSFederatedAccountAccess),
            *(ORGANIZATION, THE_VALIDATION),
        ),
        to=model,
        by=lambda _: named,
        known_as=lambda _: named,
        matters=News(_content, whom=Whom.UNSETTLED),
    )


CONFIG = _configuration(_ConfigMap, CONFIG_MAP)
PAYER = _configuration(_Secret, PAYER_SECRET)

_CLAIM_TO_ACCOUNT = Relation(of=AccountClaim, to=Account, by=_account_of, news=News(_terms, linked=Linked.KNOWN))

RELATIONS = (
    Relation(
        of=Account,
        to=AccountPool,
        by=_pool_of,
        known_as=_pool_names,
        news=News(_counted_as, as_made=_as_made_by_pool),
    ),
    Relation(
        of=Account,
        to=AccountClaim,
        by=_claim_of,
        known_as=_claim_names,
        news=News(_shown_to_claim, linked=Linked.FOLLOWED),
    ),
    # After a restore, a person removes the uids of the former claims from the Accounts. This wakes the claims.
    Relation(
        of=Account,
        to=AccountClaim,
        by=_claim_of,
        known_as=_claim_names,
        news=News(_held_without_uid, on=frozenset({On.CHANGES}), linked=Linked.NEVER, ours=False),
    ),
    Relation(of=Account, to=ORGANIZATION, news=News(_needs_of_organization)),
    Relation(of=Account, to=ORGANIZATION, news=News(_given_back, on=frozenset({On.CHANGES}))),
    # Accounts that exist when the watcher starts are validated by the next sweep.
    Relation(of=Account, to=THE_VALIDATION, news=News(_validated, on=frozenset({On.CHANGES}))),
    Relation(
        of=AccountClaim,
        to=AccountPool,
        by=lambda claim: _pool_named(claim.spec.account_pool),
        known_as=_pool_names,
        # Without the pool, a waiting claim looks for an Account itself.
        matters=News(on=frozenset({On.GOES}), whom=Whom.UNSETTLED),
        news=News(_needs_of_pool),
    ),
    _CLAIM_TO_ACCOUNT,
    Relation(
        of=AccountClaim,
        to=built_in_kinds.SECRET,
        by=_key_awaited,
        matters=News(version, onward=(_CLAIM_TO_ACCOUNT,)),
        watched=WhileNamed(Scope.NAME, "customer's Secret", "customers' Secrets"),
    ),
    # The Organization shares the account limit among the pools.
    Relation(of=AccountPool, to=ORGANIZATION, news=News(_named_pool)),
    CONFIG,
    PAYER,
    *federated.RELATIONS,
)
