"""Support cases of the organization."""

from __future__ import annotations

from typing import ClassVar

from domain.accounts.worlds import AccountWorld
from domain.decision import Action, Queue
from domain.model import Model


class SupportCase(Model):
    """A support case by id."""

    case_id: str


class OpenSupportCase(Action):
    """Ask AWS Support to add the account to Enterprise Support; with `search`, a case of that subject is adopted.

    `once` is for the moment in which the state is still to be written: whatever hinders the case is told at once, so
    that the state is never held up by it.
    """

    activity: ClassVar[str] = "aws.open_support_case"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = SupportCase
    awaited_when_cancelled: ClassVar[bool] = True

    account_id: str
    name: str
    search: bool
    once: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"open a support case for {self.account_id}"

    @property
    def most_attempts(self) -> int:
        """One, where the state waits for it."""
        return 1 if self.once else 0

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """The case's id."""
        assert isinstance(result, SupportCase)  # noqa: S101
        return world.learn(case_id=result.case_id)


class ResolveSupportCase(Action):
    """Resolve a case whose account nobody has any more. One that is resolved, or that AWS does not know, is done."""

    activity: ClassVar[str] = "aws.resolve_support_case"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION

    account_id: str
    case_id: str

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"resolve support case {self.case_id} of {self.account_id}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """AWS Support has nothing to do for it any more."""
        return world.learn(resolved_case=self.case_id)
