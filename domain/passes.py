"""Lifecycles whose whole pass is one activity: it observes, decides and acts, and hands back what it came to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from domain.decision import Action, Decision, Outcome, World
from domain.identity import Key
from domain.notices import Notice
from domain.refusal import Refusal


class Pass(Action):
    """A pass over one object, as its workflow asks for it.

    Attributes:
        woken: something may have changed; False: only a moment has come.
        dry_run: say what would be done.
        refusals: of the last pass, by slot.
        told: the notices that stood at its end.
    """

    key: Key
    woken: bool = True
    dry_run: bool = False
    refusals: dict[str, Refusal] = {}
    told: tuple[Notice, ...] = ()


class PassedWorld(World):
    """What a pass came to. It was told what was known, and has said what is to be known from now on."""

    decision: Decision = Decision(phase="New", outcome=Outcome.WORKING, why="not observed yet")
    rest: timedelta = timedelta(0)  # the least time until the next pass, in which changes gather
    gather: timedelta = timedelta(0)  # how long a wake waits for others before the next pass

    def recall(self, before: Self) -> Self:
        """The pass was given all that was known, and says what is to be known from now on."""
        return self


def passed(world: PassedWorld, now: datetime) -> Decision:
    """The decision of a one-activity pass was made in the activity."""
    return world.decision if world.exists else world.decision.model_copy(update={"outcome": Outcome.GONE})


def swept(why: str, due: datetime | None, *, over: str) -> Decision:
    """How a lifecycle stands that looks at many at once: `over` whom, and when again; never while there are none."""
    return Decision(
        phase="Sweeping" if due else "Idle",
        outcome=Outcome.SETTLED,
        why=why,
        deadline=due,
        at_deadline=f"compare all {over}" if due else "",
    )
