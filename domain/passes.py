"""Lifecycles whose whole pass is one activity: it observes, decides, acts, and returns its result."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Self

from domain.decision import Action, Decision, Outcome, World
from domain.identity import Key
from domain.model import Model
from domain.refusal import Refusal


class Observation(Action):
    """The action that observes an object or makes its whole pass. `Entity.observation` sets its fields."""

    key: Key
    dry_run: bool = False  # report the actions without running them


class Pass(Observation):
    woken: bool = True  # something may have changed; False: only the deadline has passed
    seen: dict[str, str] = {}  # by kind, the newest resourceVersion that a wake has named
    refusals: dict[str, Refusal] = {}  # the refusals of the last pass, by slot
    recorded: dict[str, datetime | None] = {}  # the notices that were recorded as Events (see `World`)


class PassedWorld(World):
    decision: Decision = Decision(phase="New", outcome=Outcome.WORKING, why="not observed yet")
    rest: timedelta = timedelta(0)  # the least time until the next pass, so that changes are batched
    gather: timedelta = timedelta(0)  # how long a wake waits for further wakes before the next pass

    def recall(self, before: Self) -> Self:
        """Return this world unchanged: the pass that made it has already included the old memory."""
        return self


class SweepMemory(Model):
    next_sweep: datetime | None = None


class SweptWorld(PassedWorld):
    known: SweepMemory = SweepMemory()


class Sweep(Observation):
    result: ClassVar[type[Model] | None] = SweptWorld
    compares: ClassVar[str]  # the compared objects in words, for messages

    memory: SweepMemory = SweepMemory()

    def swept(self, why: str, due: datetime | None) -> SweptWorld:
        return SweptWorld(key=self.key, known=SweepMemory(next_sweep=due), decision=swept(why, due, over=self.compares))


def passed(world: PassedWorld, now: datetime) -> Decision:
    return world.decision if world.exists else world.decision.model_copy(update={"outcome": Outcome.GONE})


def swept(why: str, due: datetime | None, *, over: str) -> Decision:
    """The decision to compare all objects at `due`, which is None if there are no objects."""
    return Decision(
        phase="Sweeping" if due else "Idle",
        outcome=Outcome.SETTLED,
        why=why,
        deadline=due,
        at_deadline=f"compare all {over}" if due else "",
    )
