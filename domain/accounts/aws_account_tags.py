"""The tags of an AWS account: its owner and, with `feature.compliance_tags`, three from the ConfigMap.

Without `shard-name` in the ConfigMap, new accounts get an empty owner tag, and the validation ignores owner tags.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import OWNER_TAG


def tags_at_creation(config: OperatorConfig) -> dict[str, str]:
    return {OWNER_TAG: config.shard_name or "", **config.compliance_tags}


def wanted_tags(config: OperatorConfig) -> dict[str, str]:
    owner = {OWNER_TAG: config.shard_name} if config.shard_name else {}
    return {**owner, **config.compliance_tags}


def differing_tags(present: Mapping[str, str], config: OperatorConfig) -> dict[str, str]:
    return {name: value for name, value in wanted_tags(config).items() if present.get(name) != value}
