"""The IAM users and roles that an Account makes in its AWS account, their keys, and the end of them."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.worlds import AccountWorld, ClaimWorld
from domain.identity import Key
from domain.model import Model


class EnsureSupportRole(MemberAction):
    """The role ManagedOpenShift-Support-<id>: trusted by the operator and the jump role, with AdministratorAccess."""

    activity: ClassVar[str] = "aws.ensure_support_role"
    awaited_when_cancelled: ClassVar[bool] = True

    iam_user_id: str
    jump_role: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create support role ManagedOpenShift-Support-{self.iam_user_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Done; a deletion that began meanwhile has to look again."""
        return world.learn(support_role=True, identities_deleted=False)


class AdminSecret(Model):
    """Where the key was put; the key itself never leaves the activity."""

    secret: str


class EnsureAdminUser(MemberAction):
    """The user osdManagedAdmin-<id> with AdministratorAccess, and its one access key in the Secret `<account>-secret`.

    An existing Secret is kept; without one all keys of the user are deleted first, so that no key lives unknown.
    """

    activity: ClassVar[str] = "aws.ensure_admin_user"
    result: ClassVar[type[Model] | None] = AdminSecret
    awaited_when_cancelled: ClassVar[bool] = True

    owner: Key
    iam_user_id: str
    secret: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create user osdManagedAdmin-{self.iam_user_id} and Secret {self.secret}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The Secret's name; a deletion that began meanwhile has to look again."""
        assert isinstance(result, AdminSecret)  # noqa: S101
        return world.learn(admin_secret=result.secret, identities_deleted=False)


class DeleteIdentities(MemberAction):
    """Delete every IAM user and role in the account whose tags say that this Account made them."""

    activity: ClassVar[str] = "aws.delete_identities"
    # A dozen changes in one attempt, and IAM throttles each by itself: one that went further soon goes on.
    longest_retry: ClassVar[timedelta] = timedelta(seconds=15)

    name: str
    namespace: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete IAM users and roles of {self.name} in {self.account_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Done."""
        return world.learn(identities_deleted=True)


class RotateKeys(MemberAction):
    """A new access key for the admin user, in the Account's Secret; every older key is deleted."""

    activity: ClassVar[str] = "aws.rotate_keys"

    owner: Key
    iam_user_id: str
    secret: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"rotate the key of osdManagedAdmin-{self.iam_user_id}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The previous tenant's key is dead."""
        return world.learn(keys_rotated=True)
