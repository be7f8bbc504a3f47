"""Instances that an initialisation has left in an account where nothing else may be removed."""

from __future__ import annotations

from typing import ClassVar

from domain.accounts.actions.member import MemberAction
from domain.accounts.worlds import AccountWorld
from domain.model import Model


class EndLaunches(MemberAction):
    """Terminate the instances of one region that carry this Account's marks, and no others."""

    activity: ClassVar[str] = "aws.end_launches"

    region: str
    tags: dict[str, str]

    @property
    def slot(self) -> str:
        """Regions are looked at side by side."""
        return f"{self.activity}/{self.region}"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"terminate initialisation instances in {self.region}"

    def fold(self, world: AccountWorld, result: Model | None) -> AccountWorld:  # type: ignore[override]
        """Nothing of ours runs there."""
        return world.learn(cleaned={**world.known.cleaned, self.region: "no instance of ours runs there"})
