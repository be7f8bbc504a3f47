"""Validation of what stands already: accounts that drifted from the configuration are found, told and put right.

The aws-account-operator has two more controllers for that. Here it is one sweep over all Accounts:

| check | looked at | mended if | by |
|---|---|---|---|
| Accounts that failed without an id | state exactly `Failed` | `feature.validation_delete_account` | deleting it |
| where an account stands | Ready, not the customer's own | `feature.validation_move_account` | moving it |
| its tags | the same; `owner` where `shard-name` says one | `feature.validation_tag_account` | tagging it |
| its spec's quotas | of a pool in the ConfigMap | `feature.accountpool_validation` | its spec, a blank quota status |

Each check stands for itself, and one whose flag is off asks nothing of AWS (`perdure audit accounts` tells of drift
whatever the flags say). An account belongs into the root, or into the OU of the legal entity that it is, or was, used
by. Payers, protected and paused accounts are left alone.

All accounts are looked at when the sweep is due (every ten hours, as the replaced operator's resync was) and as soon
as what they are measured by has changed; one account when its object was written, or five minutes after it could not
be put right.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import OWNER_TAG
from domain.accounts.resources import Account, AccountSpec, AccountState, ServiceQuota
from domain.decision import Action, Queue
from domain.identity import Key
from domain.levers import paused
from domain.model import Model
from domain.passes import PassedWorld

# What could not be put right is tried again after so long.
TRIED_AGAIN = timedelta(minutes=5)
# A failing account more than so many is left to the next sweep: the memory stays small.
MOST_REMEMBERED = 100
# Clocks of API servers and ours are compared; written times are whole seconds.
ALLOWED_FOR = timedelta(seconds=30)
# The sources of an account's place in the organization: the root, as long as no legal entity has had it.
ROOT = ""


class Check(StrEnum):
    """What can be validated."""

    REMOVAL = "removal"
    PLACE = "place"
    TAGS = "tags"
    QUOTAS = "quotas"


class Sighted(Model):
    """An Account as a list shows it, and when anybody wrote it last (None where that is not said)."""

    account: Account
    written_at: datetime | None = None


class ValidationKnown(Model):
    """What one pass leaves to the next; losing it costs one look at all accounts.

    `measure` is a digest of what accounts were measured by, `failed` the Accounts (namespace/name) that could not be
    put right.
    """

    measure: str = ""
    swept_at: datetime | None = None
    looked_at: datetime | None = None
    failed: tuple[str, ...] = ()


class ValidationWorld(PassedWorld):
    """What a pass over all accounts came to."""

    known: ValidationKnown = ValidationKnown()


class PassValidation(Action):
    """Look at the accounts that are due, and put right what the flags allow."""

    activity: ClassVar[str] = "accounts.pass_validation"
    title: ClassVar[str] = "validate the places, tags and quotas of all accounts"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = ValidationWorld
    start_to_close: ClassVar[timedelta] = timedelta(hours=1)
    heartbeat: ClassVar[timedelta] = timedelta(minutes=1)

    key: Key
    memory: ValidationKnown
    dry_run: bool = False


def enabled(config: OperatorConfig) -> frozenset[Check]:
    """The checks that something would follow from."""
    features = config.features
    flags = {
        Check.REMOVAL: features.validation_delete_account,
        Check.PLACE: features.validation_move_account,
        Check.TAGS: features.validation_tag_account and bool(wanted_tags(config)),
        Check.QUOTAS: features.accountpool_validation and bool(config.pools),
    }
    return frozenset(check for check, on in flags.items() if on)


def measure(config: OperatorConfig) -> str:
    """A digest of everything that accounts are measured by."""
    pools = {name: pool.model_dump() for name, pool in sorted((config.pools or {}).items())}
    parts = (sorted(enabled(config)), config.root, config.base, sorted(wanted_tags(config).items()), pools)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def all_due(known: ValidationKnown, config: OperatorConfig, interval: timedelta, now: datetime) -> bool:
    """True if every account is to be looked at."""
    return known.swept_at is None or known.measure != measure(config) or now >= known.swept_at + interval


def chosen(sighted: Iterable[Sighted], known: ValidationKnown, *, everything: bool) -> tuple[Account, ...]:
    """The Accounts to look at: all of them, or those that were written since the last look or failed in it."""
    since = known.looked_at
    return tuple(
        each.account
        for each in sighted
        if everything
        or since is None
        or each.written_at is None
        or each.written_at >= since - ALLOWED_FOR
        or name_of(each.account) in known.failed
    )


def due_again(known: ValidationKnown, interval: timedelta) -> datetime | None:
    """When to look next without being woken."""
    if known.failed and known.looked_at:
        return known.looked_at + TRIED_AGAIN
    return known.swept_at + interval if known.swept_at else None


def name_of(account: Account) -> str:
    """Namespace and name."""
    return f"{account.metadata.namespace}/{account.metadata.name}"


# --- what each check wants ---


def concerned(account: Account, protected: Iterable[str]) -> bool:
    """True if anything may be done about the account."""
    meta = account.metadata
    return not (meta.deleting or account.paused or paused(meta) or account.spec.aws_account_id in set(protected))


def removable(account: Account) -> bool:
    """True for an Account that failed before it had an AWS account: nothing is lost with it."""
    return account.status.state == AccountState.FAILED and not account.spec.aws_account_id


def settled(account: Account) -> bool:
    """True for an account of ours whose place and tags are as they should be, or have drifted.

    One that its claim has just been given is being moved by that claim.
    """
    spec, status = account.spec, account.status
    own = not (spec.byoc or spec.manual_sts_mode)
    moving = bool(spec.claim_link) and not status.claimed
    return own and status.state == AccountState.READY and bool(spec.aws_account_id) and not moving


def legal_entity_of(account: Account) -> str:
    """Whose OU the account belongs into; `ROOT` for one that nobody has had."""
    return account.spec.legal_entity.id or ROOT


def wanted_tags(config: OperatorConfig) -> dict[str, str]:
    """The tags of every account of ours: its owner where the ConfigMap says one, and the compliance tags."""
    owner = {OWNER_TAG: config.shard_name} if config.shard_name else {}
    return {**owner, **config.compliance_tags}


def differing_tags(present: Mapping[str, str], config: OperatorConfig) -> dict[str, str]:
    """Those that are missing or say something else."""
    return {name: value for name, value in wanted_tags(config).items() if present.get(name) != value}


def wanted_spec(account: Account, config: OperatorConfig) -> AccountSpec | None:
    """The spec with its pool's quotas, None where the ConfigMap says none that can be read, or says these."""
    pool = (config.pools or {}).get(account.spec.account_pool)
    if pool is None or pool.problem or not account.pool_owned:
        return None
    spec = account.spec
    same = _regional(spec.regional_service_quotas) == _regional(pool.regional_service_quotas)
    if same and _values(spec.global_service_quotas) == _values(pool.global_service_quotas):
        return None
    return spec.model_copy(
        update={
            "regional_service_quotas": pool.regional_service_quotas,
            "global_service_quotas": pool.global_service_quotas,
        }
    )


def quotas_outdated(account: Account) -> bool:
    """True if the quota status is that of other quotas than the spec's: whoever changed the spec died before this."""
    spec, status = account.spec, account.status
    default = spec.regional_service_quotas.get("default", {})
    regional = any(
        _values(codes) != _values({**default, **spec.regional_service_quotas.get(region, {})})
        for region, codes in status.regional_service_quotas.items()
    )
    return regional or bool(
        status.global_service_quotas and _values(status.global_service_quotas) != _values(spec.global_service_quotas)
    )


def quotas_unbegun(account: Account) -> bool:
    """True for a Ready account that wants quotas and tells of none."""
    spec, status = account.spec, account.status
    wants = any(spec.regional_service_quotas.values()) or bool(spec.global_service_quotas)
    return settled(account) and wants and not (status.regional_service_quotas or status.global_service_quotas)


def _regional(quotas: Mapping[str, Mapping[str, ServiceQuota]]) -> dict[str, dict[str, int]]:
    return {region: _values(codes) for region, codes in quotas.items()}


def _values(quotas: Mapping[str, ServiceQuota]) -> dict[str, int]:
    return {code: quota.value for code, quota in quotas.items()}
