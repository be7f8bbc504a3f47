"""The support role of an account. It trusts the jump role; while the ConfigMap names none, no credentials are created.

In STS mode there is no support role, and the jump role enters the account itself.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.actions.account_access import Access
from domain.accounts.actions.iam_identities import EnsureSupportRole
from domain.accounts.arns import role_arn
from domain.accounts.constants import SUPPORT_ROLE_PREFIX
from domain.accounts.iam_and_instance_tags import ownership_tags
from domain.accounts.observed import AccountWorld
from domain.decision import Decision


def support_role_arn(partition: str, account_id: str, user_id: str) -> str:
    return role_arn(partition, account_id, f"{SUPPORT_ROLE_PREFIX}{user_id}")


def without_jump_role(
    world: AccountWorld, *more: str, deadline: datetime | None = None, at: str = ""
) -> Decision | None:
    """The decision to wait for the jump role's key and `more` keys; None if none is missing."""
    key = "sts-jump-role" if world.account.spec.manual_sts_mode else "support-jump-role"
    return world.lacking(*more, key, deadline=deadline, at=at)


def support_role(world: AccountWorld, access: Access | None = None) -> EnsureSupportRole:
    return EnsureSupportRole(
        **world.member,
        access=access,
        iam_user_id=world.account.iam_user_id,
        jump_role=world.config.support_jump_role,
        tags=ownership_tags(world, world.account),
    )
