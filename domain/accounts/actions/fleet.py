"""What a fleet manager's claim gets in the place of a key: a role of the account that its principal may assume."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model


class EnsureFleetRole(MemberAction):
    """The role `managed-sts-role` with its one inline policy, trusted by one principal; no IAM user of ours beside it.

    A role that exists is made what it should be, without a moment in which it is not there.
    """

    activity: ClassVar[str] = "aws.ensure_fleet_role"
    awaited_when_cancelled: ClassVar[bool] = True

    trusted_arn: str
    name: str
    namespace: str
    tags: dict[str, str]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create role managed-sts-role for {self.trusted_arn}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """It is there."""
        return world.learn(fleet_role=True)


class DeliverRole(Action):
    """The role's ARN into the claim's Secret; the Account's key Secret, whose user is gone, is deleted and forgotten.

    Raises Denied when the Account does not name this claim as its holder.
    """

    activity: ClassVar[str] = "accounts.deliver_role"
    queue: ClassVar[str] = Queue.KUBE
    start_to_close: ClassVar[timedelta] = timedelta(seconds=30)

    claim: Key
    account: str
    secret: str
    role_arn: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"write the role's ARN into Secret {self.secret}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Both are done."""
        return world.learn(role_delivered=True)


class DeleteFleetRole(MemberAction):
    """Delete `managed-sts-role` with its policies: nobody from outside comes in any more."""

    activity: ClassVar[str] = "aws.delete_fleet_role"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete role managed-sts-role in {self.account_id}"

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """It is gone."""
        return world.learn(fleet_role_deleted=True)
