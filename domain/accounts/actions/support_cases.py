from __future__ import annotations

from typing import ClassVar

from domain.accounts.observed import AccountWorld
from domain.decision import Action, Facts, Queue, WhenUnwanted
from domain.model import Model


class SupportCase(Facts):
    case_id: str


class OpenSupportCase(Action):
    """With `search`, an existing case with the same subject is adopted. With `once`, a failure is not retried,
    because retries would delay the Account's next state.
    """

    activity: ClassVar[str] = "aws.open_support_case"
    title: ClassVar[str] = "open a support case for {account_id}"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION
    result: ClassVar[type[Model] | None] = SupportCase
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    account_id: str
    name: str
    search: bool
    once: bool = False

    @property
    def most_attempts(self) -> int:
        return 1 if self.once else 0


class ResolveSupportCase(Action):
    """A resolved or unknown case counts as done."""

    activity: ClassVar[str] = "aws.resolve_support_case"
    title: ClassVar[str] = "resolve support case {case_id} of {account_id}"
    queue: ClassVar[str] = Queue.AWS_ORGANIZATION

    account_id: str
    case_id: str

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        return world.learn(resolved_case=self.case_id)
