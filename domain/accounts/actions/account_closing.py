from __future__ import annotations

from typing import ClassVar

from domain.accounts.actions.handover import PatchAccount
from domain.accounts.observed import ClaimWorld
from domain.decision import Action, Queue, WhenUnwanted
from domain.model import Model


class Closing(Model):
    """`limited`: AWS's message about the limit that postpones the closing; empty if AWS has closed the account or is
    closing it.
    """

    limited: str = ""


class CloseAccount(Action):
    """Close the account if it is still active. Raises Denied, Invalid or Absent if AWS refuses."""

    activity: ClassVar[str] = "aws.close_account"
    title: ClassVar[str] = "CloseAccount {account_id}"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = Closing
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    account_id: str

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        assert isinstance(result, Closing)  # noqa: S101 - the activity's type
        if result.limited:
            return world.learn(closing_limited=result.limited)
        return world.learn(closed=self.account_id, closing_limited="")


class NoteClosing(PatchAccount):
    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        return super().fold(world, result).learn(closing_limited="")
