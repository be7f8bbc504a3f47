"""Validation of existing accounts: finds, reports and corrects drift from the configuration.

docs/accounts.md lists the checks and their flags; a check whose flag is off makes no call. (`perdure audit accounts
--thorough` reports wrong OUs and tags even then.) All accounts are checked every ten hours, and when the configuration
changes. A single account is checked when it changes, or five minutes after a failed correction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from domain.accounts.aws_account_tags import wanted_tags
from domain.accounts.config import OperatorConfig
from domain.accounts.resources import Account, AccountSpec, AccountState, ServiceQuota
from domain.decision import Queue
from domain.model import Model
from domain.passes import Observation, PassedWorld

# The pause after a failed correction.
TRIED_AGAIN = timedelta(minutes=5)
# How many accounts with a failed correction are remembered for another attempt. Further ones wait for the next sweep.
MOST_REMEMBERED = 100
# The tolerated difference between our clock and the API server's timestamps, which are whole seconds.
ALLOWED_FOR = timedelta(seconds=30)
# The legal entity of an account that was never claimed. Such an account stays in the organization's root.
ROOT = ""


class Check(StrEnum):
    REMOVAL = "removal"
    PLACE = "place"
    TAGS = "tags"
    QUOTAS = "quotas"


class Sighted(Model):
    account: Account
    written_at: datetime | None = None


class ValidationMemory(Model):
    """What the validation remembers. If it is lost, all accounts are checked once more.

    `measure` is a digest of the configuration. `failed` are the Accounts (namespace/name) whose correction failed.
    """

    measure: str = ""
    swept_at: datetime | None = None
    looked_at: datetime | None = None
    failed: tuple[str, ...] = ()


class ValidationWorld(PassedWorld):
    known: ValidationMemory = ValidationMemory()


class PassValidation(Observation):
    activity: ClassVar[str] = "accounts.pass_validation"
    title: ClassVar[str] = "validate the OUs, tags and quotas of all accounts"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = ValidationWorld
    start_to_close: ClassVar[timedelta] = timedelta(hours=1)
    heartbeat: ClassVar[timedelta] = timedelta(minutes=1)

    memory: ValidationMemory


def enabled(config: OperatorConfig) -> frozenset[Check]:
    if config.fault("fedramp"):
        return frozenset()
    features = config.features
    flags = {
        Check.REMOVAL: features.validation_delete_account,
        Check.PLACE: features.validation_move_account,
        Check.TAGS: features.validation_tag_account and bool(wanted_tags(config)),
        Check.QUOTAS: features.accountpool_validation and bool(config.pools),
    }
    return frozenset(check for check, on in flags.items() if on)


def measure(config: OperatorConfig) -> str:
    pools = {name: pool.model_dump() for name, pool in sorted((config.pools or {}).items())}
    parts = (sorted(enabled(config)), config.root, config.base, sorted(wanted_tags(config).items()), pools)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def all_due(known: ValidationMemory, config: OperatorConfig, interval: timedelta, now: datetime) -> bool:
    return known.swept_at is None or known.measure != measure(config) or now >= known.swept_at + interval


def chosen(sighted: Iterable[Sighted], known: ValidationMemory, *, everything: bool) -> tuple[Account, ...]:
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


def due_again(known: ValidationMemory, interval: timedelta) -> datetime | None:
    if known.failed and known.looked_at:
        return known.looked_at + TRIED_AGAIN
    return known.swept_at + interval if known.swept_at else None


def name_of(account: Account) -> str:
    return f"{account.metadata.namespace}/{account.metadata.name}"


def concerned(account: Account, protected: Iterable[str]) -> bool:
    meta = account.metadata
    return not (meta.deleting or account.on_hold or account.spec.aws_account_id in set(protected))


def removable(account: Account) -> bool:
    return account.status.state == AccountState.FAILED and not account.spec.aws_account_id


def settled(account: Account) -> bool:
    spec, status = account.spec, account.status
    own = not (spec.byoc or spec.manual_sts_mode)
    moving = bool(spec.claim_link) and not status.claimed
    return own and status.state == AccountState.READY and bool(spec.aws_account_id) and not moving


def legal_entity_of(account: Account) -> str:
    return account.spec.legal_entity.id or ROOT


def wanted_spec(account: Account, config: OperatorConfig) -> AccountSpec | None:
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
    """Whether a change of the spec's quotas was interrupted, so that the status still shows earlier quotas."""
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
    spec, status = account.spec, account.status
    wants = any(spec.regional_service_quotas.values()) or bool(spec.global_service_quotas)
    return settled(account) and wants and not (status.regional_service_quotas or status.global_service_quotas)


def _regional(quotas: Mapping[str, Mapping[str, ServiceQuota]]) -> dict[str, dict[str, int]]:
    return {region: _values(codes) for region, codes in quotas.items()}


def _values(quotas: Mapping[str, ServiceQuota]) -> dict[str, int]:
    return {code: quota.value for code, quota in quotas.items()}
