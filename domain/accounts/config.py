"""The operator's ConfigMap, parsed key by key: a missing key stops only the steps that need it.

An unreadable flag is off, with two exceptions: `close_account.dry_run` is then on, and `fedramp` stops everything,
because the AWS partition is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from domain.accounts.constants import CCS_ACCESS_KEY, CONFIG_MAP, OPERATOR_NAMESPACE
from domain.accounts.resources import ServiceQuota
from domain.model import Model

_NAME = f"ConfigMap {OPERATOR_NAMESPACE}/{CONFIG_MAP}"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LARGEST = 2**63 - 1  # the API server refuses larger integers in AccountPools and Accounts


class PoolConfig(Model):
    """A pool in the ConfigMap. An invalid quota affects only this pool: `problem` is set, and the quotas are empty."""

    default: bool = False
    problem: str = ""
    regional_service_quotas: dict[str, dict[str, ServiceQuota]] = {}
    global_service_quotas: dict[str, ServiceQuota] = {}


class Features(Model):
    opt_in_regions: bool = False
    compliance_tags: bool = False
    validation_move_account: bool = False
    validation_tag_account: bool = False
    validation_delete_account: bool = False
    accountpool_validation: bool = False
    accountclaim_fleet_manager_trusted_arn: bool = False
    close_on_release: bool = False


class OperatorConfig(Model):
    """Absent keys are None or empty. `problems` says, by key, what is unreadable."""

    present: bool = True
    account_limit: int | None = None
    root: str = ""
    base: str = ""
    ami_owner: str = ""
    shard_name: str | None = None
    support_jump_role: str = ""
    sts_jump_role: str = ""
    managed_tags: dict[str, str] = {}
    vcpu_quota: int = 0
    payer_account_ids: tuple[str, ...] = ()
    opt_in_regions: tuple[str, ...] = ()
    disabled_regions: tuple[str, ...] = ()
    compliance_tags: dict[str, str] = {}
    fedramp: bool = False
    features: Features = Features()
    close_dry_run: bool = True  # a released account is only reported instead of closed
    ccs_access_arn: str = ""
    pools: dict[str, PoolConfig] | None = None
    problems: dict[str, str] = {}

    @property
    def default_pool(self) -> str:
        return next((name for name, pool in sorted((self.pools or {}).items()) if pool.default), "")

    @property
    def partition(self) -> str:
        return "aws-us-gov" if self.fedramp else "aws"

    def missing(self, *keys: str) -> tuple[str, ...]:
        return tuple(key for key in keys if key in self.problems or self._value(key) in (None, ""))

    def fault(self, *keys: str) -> str:
        """What is wrong with the ConfigMap or these keys, and what to do; empty if they are usable."""
        if not self.present:
            return f"{_NAME} does not exist: create it"
        return key_faults({key: self.problems.get(key, "missing") for key in self.missing(*keys)})

    def _value(self, key: str) -> object:
        return getattr(self, "pools" if key == "accountpool" else key.replace("-", "_"))


def parse_config(data: Mapping[str, str] | None) -> OperatorConfig:
    if data is None:
        return OperatorConfig(present=False)
    problems: dict[str, str] = {}
    features = Features(**{name: _flag(data, f"feature.{name}", problems) for name in Features.model_fields})
    compliance = {key: data[key] for key in ("app-code", "service-phase", "cost-center") if data.get(key)}
    return OperatorConfig(
        account_limit=_integer(data, "account-limit", problems),
        root=data.get("root", "").strip(),
        base=data.get("base", "").strip(),
        ami_owner=data.get("ami-owner", "").strip(),
        shard_name=data.get("shard-name"),
        support_jump_role=data.get("support-jump-role", "").strip(),
        sts_jump_role=data.get("sts-jump-role", "").strip(),
        managed_tags=parse_tags(data.get("aws-managed-tags", "")),
        vcpu_quota=_integer(data, "quota.vcpu", problems) or 0,
        payer_account_ids=_names(data, "payer-account-ids"),
        opt_in_regions=_names(data, "opt-in-regions"),
        disabled_regions=_names(data, "disabled-regions"),
        compliance_tags=compliance if features.compliance_tags else {},
        fedramp=_flag(data, "fedramp", problems),
        features=features,
        close_dry_run=_flag(data, "close_account.dry_run", problems, default=True),
        ccs_access_arn=data.get(CCS_ACCESS_KEY, "").strip(),
        pools=_pools(data, problems),
        problems=problems,
    )


def key_faults(faults: Mapping[str, str]) -> str:
    listed = "; ".join(f"key {key}: {fault}" for key, fault in faults.items())
    return f"{_NAME}: {listed}. Correct the ConfigMap; work continues as soon as it changes." if listed else ""


def parse_tags(text: str) -> dict[str, str]:
    """Tags from lines `k=v`, split at the first `=`. Other lines are ignored."""
    pairs = (line.strip().split("=", 1) for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs if name.strip()}


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in data.get(key, "").split(",") if name.strip())


def _integer(data: Mapping[str, str], key: str, problems: dict[str, str]) -> int | None:
    text = data.get(key)
    if text is None:
        return None
    try:
        return _whole(text)
    except ValueError:
        problems[key] = f"{text!r} is not a whole number of at most 64 bits"
        return None


def _flag(data: Mapping[str, str], key: str, problems: dict[str, str], *, default: bool = False) -> bool:
    """Returns the default, too, if Go's ParseBool would refuse the value: guessing its meaning might close accounts."""
    text = data.get(key)
    if text is None:
        return default
    if text not in _TRUE | _FALSE:
        problems[key] = f"{text!r} is neither true nor false"
        return default
    return text in _TRUE


def _pools(data: Mapping[str, str], problems: dict[str, str]) -> dict[str, PoolConfig] | None:
    text = data.get("accountpool")
    if text is None:
        return None
    try:
        raw = yaml.safe_load(text) or {}
        return {str(name): _pool(str(name), entry or {}) for name, entry in raw.items()}
    except (yaml.YAMLError, ValidationError, ValueError, TypeError, AttributeError) as error:
        problems["accountpool"] = f"cannot be read: {str(error).splitlines()[0]}"
        return None


def _pool(name: str, entry: Mapping[str, Any]) -> PoolConfig:
    default = False if entry.get("default") is None else entry["default"]
    if not isinstance(default, bool):
        raise TypeError(f"default: {default!r} is neither true nor false")
    regional = {region: codes or {} for region, codes in (entry.get("servicequotas") or {}).items()}
    everywhere = entry.get("globalservicequotas") or {}
    try:
        return PoolConfig(
            default=default,
            regional_service_quotas={region: _quotas(codes) for region, codes in regional.items()},
            global_service_quotas=_quotas(everywhere),
        )
    except ValueError as error:
        return PoolConfig(default=default, problem=f"the quotas of {name} cannot be read: {str(error).splitlines()[0]}")


def _quotas(codes: Mapping[str, object]) -> dict[str, ServiceQuota]:
    return {code: ServiceQuota(value=_whole(str(value))) for code, value in codes.items()}


def _whole(text: str) -> int:
    number = int(text.strip())
    if abs(number) > _LARGEST:
        raise ValueError(f"{text!r} is too large")
    return number
