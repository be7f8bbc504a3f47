"""Tags of IAM users, roles and instances: `aws-managed-tags`, the claim's `customTags`, the names of Account and claim.

Only objects that are tagged with the Account's name are Perdure's. For tags of AWS accounts see `aws_account_tags.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from domain.accounts.config import parse_tags
from domain.accounts.observed import AccountWorld, ClaimWorld
from domain.accounts.resources import Account

OWNER_TAGS = ("clusterAccountName", "clusterNamespace")
REGION_INIT_TAG_NAME = "red-hat-region-init"


def owner_tags(name: str, namespace: str) -> dict[str, str]:
    return dict(zip(OWNER_TAGS, (name, namespace), strict=True))


def ownership_tags(world: AccountWorld | ClaimWorld, account: Account) -> dict[str, str]:
    custom = parse_tags(world.claim.spec.custom_tags) if world.claim else {}
    meta, spec = account.metadata, account.spec
    claim = {"clusterClaimLink": spec.claim_link, "clusterClaimLinkNamespace": spec.claim_link_namespace}
    return _merged(world.config.managed_tags, custom, owner_tags(meta.name, meta.namespace), claim)


def _merged(*groups: Mapping[str, str]) -> dict[str, str]:
    """One tag per name, from the last group that has it. Case is ignored, because IAM refuses names that differ only
    in case.
    """
    last = {name.lower(): (name, value) for tags in groups for name, value in tags.items()}
    return dict(last.values())


def has_owner(tags: Iterable[Mapping[str, object]], wanted: Mapping[str, str]) -> bool:
    found = {tag["Key"]: tag["Value"] for tag in tags}
    return all(found.get(name) == wanted.get(name, "") for name in OWNER_TAGS)
