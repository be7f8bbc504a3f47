"""Closing an AWS account instead of keeping it for its next use."""

from __future__ import annotations

from typing import ClassVar

from domain.accounts.actions.handover import PatchAccount
from domain.accounts.worlds import ClaimWorld
from domain.decision import Action, Queue
from domain.model import Model


class Closing(Model):
    """What became of it: closed (or closing), or put off by AWS's limit on closing accounts, which says why."""

    limited: str = ""


class CloseAccount(Action):
    """Ask the organization to close an account. One that is closed, or being closed, is done.

    Raises: Denied, Invalid, Absent where AWS will not close it.
    """

    activity: ClassVar[str] = "aws.close_account"
    title: ClassVar[str] = "CloseAccount {account_id}"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = Closing
    awaited_when_cancelled: ClassVar[bool] = True

    account_id: str

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """Closed, or to be tried again when the limit may have room."""
        assert isinstance(result, Closing)  # noqa: S101 - the activity's type
        if result.limited:
            return world.learn(closing_limited=result.limited)
        return world.learn(closed=self.account_id, closing_limited="")


class NoteClosing(PatchAccount):
    """Note on the Account that its closing begins, or until when it is put off; the one who writes is its claim's."""

    def fold(self, world: ClaimWorld, result: Model | None) -> ClaimWorld:  # type: ignore[override]
        """The Account with the note."""
        return super().fold(world, result).learn(closing_limited="")
