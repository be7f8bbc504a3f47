from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.account_access import MakingAction, MemberAction
from domain.accounts.constants import NOT_ENTERED
from domain.accounts.observed import AccountWorld, ClaimWorld
from domain.decision import Facts
from domain.identity import Key
from domain.model import Model
from domain.refusal import Refusal


class IdentityAction(MakingAction, MemberAction):
    undone: ClassVar[str] = "identities_deleted"


class EnsureSupportRole(IdentityAction):
    """Create the support role with AdministratorAccess. The payer's identity and the jump role may assume it."""

    activity: ClassVar[str] = "aws.ensure_support_role"
    title: ClassVar[str] = "create support role ManagedOpenShift-Support-{iam_user_id}"
    learns: ClassVar[Mapping[str, object]] = {"support_role": True, "support_role_shut": False}

    iam_user_id: str
    jump_role: str
    tags: dict[str, str]


class AdminSecret(Facts):
    admin_secret: str


class EnsureAdminUser(IdentityAction):
    """Create the admin user with AdministratorAccess and one access key, which is in the Secret `<account>-secret`. If
    that Secret does not exist, all keys of the user are deleted first, so that no unknown key stays valid.
    """

    activity: ClassVar[str] = "aws.ensure_admin_user"
    title: ClassVar[str] = "create user osdManagedAdmin-{iam_user_id} and Secret {secret}"
    result: ClassVar[type[Model] | None] = AdminSecret

    owner: Key
    iam_user_id: str
    secret: str
    tags: dict[str, str]

    def refuse(self, world: AccountWorld, refusal: Refusal) -> AccountWorld:  # type: ignore[override]
        after = super().refuse(world, refusal)
        customers = self.access is not None
        return after.learn(support_role_shut=True) if customers and refusal.code == NOT_ENTERED else after


class DeleteIdentities(MemberAction):
    """Delete only the IAM users and roles with this Account's tags."""

    activity: ClassVar[str] = "aws.delete_identities"
    title: ClassVar[str] = "delete IAM users and roles of {name} in {account_id}"
    learns: ClassVar[Mapping[str, object]] = {"identities_deleted": True}
    # One attempt makes a dozen changes, which IAM throttles separately.
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    namespace: str


class RotateKeys(MemberAction):
    """Put a new key of the admin user into the Secret, and delete the user's older keys."""

    activity: ClassVar[str] = "aws.rotate_keys"
    title: ClassVar[str] = "rotate the key of osdManagedAdmin-{iam_user_id}"
    learns: ClassVar[Mapping[str, object]] = {"keys_rotated": True}

    owner: Key
    iam_user_id: str
    secret: str


class EnsureFleetRole(MakingAction, MemberAction):
    """Create or update the fleet role, with one inline policy and one trusted principal. Then delete our IAM user."""

    activity: ClassVar[str] = "aws.ensure_fleet_role"
    title: ClassVar[str] = "create role managed-sts-role for {trusted_arn}"
    undone: ClassVar[str] = "fleet_role_deleted"

    trusted_arn: str
    name: str
    namespace: str
    tags: dict[str, str]

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        return super().fold(world, result).learn(fleet_principal=self.trusted_arn)


class DeleteFleetRole(MemberAction):
    """Delete the fleet role, which ends all outside access to the account."""

    activity: ClassVar[str] = "aws.delete_fleet_role"
    title: ClassVar[str] = "delete role managed-sts-role in {account_id}"
    learns: ClassVar[Mapping[str, object]] = {"fleet_role_deleted": True}
