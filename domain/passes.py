"""Lifecycles whose whole pass is one activity: it observes, decides and acts, and hands back what it came to."""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.decision import Decision, Outcome, World


class PassedWorld(World):
    """What a pass came to."""

    decision: Decision = Decision(phase="New", outcome=Outcome.WORKING, why="not looked at yet")
    rest: timedelta = timedelta(0)  # the least time until the next pass, in which changes gather
    gather: timedelta = timedelta(0)  # how long a wake waits for others before the next pass


def passed(world: PassedWorld, now: datetime) -> Decision:
    """The decision of a one-activity pass was made in the activity."""
    return world.decision if world.exists else world.decision.model_copy(update={"outcome": Outcome.GONE})
