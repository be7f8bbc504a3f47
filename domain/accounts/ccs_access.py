"""The ConfigMap's key `CCS-Access-Arn`: the ARN of the payer's role `RH-SRE-CCS-Access`, read by `osdctl` only.

The role is looked up once when the Organization's lifecycle starts, and once after each change of the ConfigMap.
"""

from __future__ import annotations

import hashlib

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import CCS_ACCESS_KEY
from domain.model import Model


class ConfigState(Model):
    arn: str = ""  # the key's value, empty if it is missing
    others: str = ""  # a digest of the other keys


class CcsAccess(Model):
    """The latest look-up of the role. `problem` says why its ARN could not be written to the ConfigMap."""

    compared: ConfigState | None = None  # the ConfigMap's state at that time
    problem: str = ""


class AccessRole(Model):
    """The role's ARN, found in or written to the ConfigMap. If `arn` is empty, `problem` says why."""

    arn: str = ""
    problem: str = ""


def state_of(config: OperatorConfig) -> ConfigState | None:
    if not config.present:
        return None
    others = config.model_dump_json(exclude={"ccs_access_arn"})
    return ConfigState(arn=config.ccs_access_arn, others=hashlib.sha256(others.encode()).hexdigest()[:16])


def comparison_due(observed: ConfigState | None, last: CcsAccess) -> bool:
    return observed is not None and observed != last.compared


def with_problem(why: str, last: CcsAccess) -> str:
    return f"{why}; key {CCS_ACCESS_KEY} is not written: {last.problem}" if last.problem else why
