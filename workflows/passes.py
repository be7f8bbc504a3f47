"""Lifecycles whose whole pass, decision included, is one activity."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, TypeVar

from domain.decision import Action
from domain.passes import PassedWorld
from domain.runner import OBSERVE
from workflows.durable_driver import Entity

P = TypeVar("P", bound=PassedWorld)


class Passes(Entity[P]):
    looks_at_deadline: ClassVar[bool] = True

    @property
    def rest(self) -> timedelta:
        return self.world.rest

    @property
    def gather(self) -> timedelta:
        return self.world.gather

    def offered(self) -> dict[str, object]:
        refusals = {slot: refusal for slot, refusal in self.world.refusals.items() if slot != OBSERVE}
        return {**super().offered(), "refusals": refusals, "recorded": self.world.recorded}

    def summary_of_look(self, look: Action) -> str:
        """The summary of an observing activity in the web UI: the result of the previous pass."""
        if refused := self.world.refusals.get(OBSERVE):
            return f"observe again; the last attempt failed: {refused.message}"
        if self.decision is None:
            return look.summary
        return f"observe again; the last result was {self.decision.phase}: {self.decision.why}"
