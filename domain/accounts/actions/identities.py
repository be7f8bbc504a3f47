"""The IAM users and roles that are made in an Account's AWS account, their keys, and the end of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.decision import Facts
from domain.identity import Key
from domain.model import Model

# A deletion that began meanwhile has to look again.
_MADE = {"identities_deleted": False}


class EnsureSupportRole(MemberAction):
    """The role ManagedOpenShift-Support-<id>: trusted by the operator and the jump role, with AdministratorAccess."""

    activity: ClassVar[str] = "aws.ensure_support_role"
    title: ClassVar[str] = "create support role ManagedOpenShift-Support-{iam_user_id}"
    learns: ClassVar[Mapping[str, object]] = {"support_role": True, **_MADE}
    awaited_when_cancelled: ClassVar[bool] = True

    iam_user_id: str
    jump_role: str
    tags: dict[str, str]


class AdminSecret(Facts):
    """Where the key was put; the key itself never leaves the activity."""

    admin_secret: str


class EnsureAdminUser(MemberAction):
    """The user osdManagedAdmin-<id> with AdministratorAccess, and its one access key in the Secret `<account>-secret`.

    An existing Secret is kept; without one all keys of the user are deleted first, so that no key lives unknown.
    """

    activity: ClassVar[str] = "aws.ensure_admin_user"
    title: ClassVar[str] = "create user osdManagedAdmin-{iam_user_id} and Secret {secret}"
    learns: ClassVar[Mapping[str, object]] = _MADE
    result: ClassVar[type[Model] | None] = AdminSecret
    awaited_when_cancelled: ClassVar[bool] = True

    owner: Key
    iam_user_id: str
    secret: str
    tags: dict[str, str]


class DeleteIdentities(MemberAction):
    """Delete every IAM user and role in the account whose tags say that this Account made them."""

    activity: ClassVar[str] = "aws.delete_identities"
    title: ClassVar[str] = "delete IAM users and roles of {name} in {account_id}"
    learns: ClassVar[Mapping[str, object]] = {"identities_deleted": True}
    # A dozen changes in one attempt, and IAM throttles each by itself: one that went further soon goes on.
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    namespace: str


class RotateKeys(MemberAction):
    """A new access key for the admin user, in the Account's Secret; every older key is deleted."""

    activity: ClassVar[str] = "aws.rotate_keys"
    title: ClassVar[str] = "rotate the key of osdManagedAdmin-{iam_user_id}"
    learns: ClassVar[Mapping[str, object]] = {"keys_rotated": True}

    owner: Key
    iam_user_id: str
    secret: str


# --- of fleet managers' claims ---


class EnsureFleetRole(MemberAction):
    """The role `managed-sts-role` with its one inline policy, trusted by one principal; no IAM user of ours beside it.

    A role that exists is made what it should be, without a moment in which it is not there.
    """

    activity: ClassVar[str] = "aws.ensure_fleet_role"
    title: ClassVar[str] = "create role managed-sts-role for {trusted_arn}"
    learns: ClassVar[Mapping[str, object]] = {"fleet_role": True}
    awaited_when_cancelled: ClassVar[bool] = True

    trusted_arn: str
    name: str
    namespace: str
    tags: dict[str, str]


class DeleteFleetRole(MemberAction):
    """Delete `managed-sts-role` with its policies: nobody from outside comes in any more."""

    activity: ClassVar[str] = "aws.delete_fleet_role"
    title: ClassVar[str] = "delete role managed-sts-role in {account_id}"
    learns: ClassVar[Mapping[str, object]] = {"fleet_role_deleted": True}
