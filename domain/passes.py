"""Lifecycles whose whole pass is one activity: it observes, decides and acts, and hands back what it came to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from domain.decision import Decision, Outcome, World


class PassedWorld(World):
    """What a pass came to. It was told what was known, and has said what is to be known from now on."""

    decision: Decision = Decision(phase="New", outcome=Outcome.WORKING, why="not observed yet")
    rest: timedelta = timedelta(0)  # the least time until the next pass, in which changes gather
    gather: timedelta = timedelta(0)  # how long a wake waits for others before the next pass

    def recall(self, before: Self) -> Self:
        """The memory is the pass's own; of what was before, only refusals are kept."""
        return self.model_copy(update={"refusals": before.refusals})


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
