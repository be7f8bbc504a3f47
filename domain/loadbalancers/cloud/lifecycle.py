"""Common parts of load balancer and machine lifecycles: observing the cloud, blockers, Events."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar, TypeVar

from domain.decision import Action, Queue
from domain.identity import Key
from domain.loadbalancers.cloud.world import CloudWorld
from domain.loadbalancers.hindrances import Hindrance, Nature, notices_of, overdue
from domain.loadbalancers.object_world import Moment
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal
from domain.resource import EVENTS_KEPT

W = TypeVar("W", bound=CloudWorld)

MOST_TOLD = 20  # more than the number of different notices in an object's life


class Blocker(Model):
    """The most important refusal, and its classification; empty if nothing blocks."""

    refusal: Refusal | None = None
    hindrance: Hindrance | None = None

    @property
    def why(self) -> str:
        """Empty if nothing blocks."""
        return self.hindrance.why if self.hindrance else ""

    @property
    def problem(self) -> str:
        """Empty for a blocker that resolves by itself."""
        return self.hindrance.problem if self.hindrance else ""

    def notices(self, problem: str, now: datetime) -> tuple[Notice, ...]:
        """Also for a temporary blocker that lasts too long."""
        since = self.refusal.lasts_since if self.refusal else None
        return (*notices_of(problem, self.hindrance), *overdue(self.hindrance, since, now))


class TellPeople(Action):
    """Failures are ignored."""

    activity: ClassVar[str] = "loadbalancers.tell_people"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)

    about: Key
    notices: tuple[Notice, ...]
    at: datetime

    @property
    def summary(self) -> str:
        return f"write an Event: {self.notices[0].message}"

    def fold(self, world: W, result: Model | None) -> W:  # type: ignore[override]
        told = {**world.known.told, **{each.digest: self.at for each in self.notices}}
        return world.learn(told=dict(list(told.items())[-MOST_TOLD:]))


def needs_look(world: CloudWorld, steps: Iterable[Action]) -> bool:
    """Whether the cloud must be observed first; after a failed step, once its pause is over."""
    current = world.look in (world.seen, world.known.settled)
    waits = any(world.refused(each.slot) for each in steps)
    return not current or (world.stale and not waits)


def blocker_of(world: CloudWorld, wanted: Iterable[Action]) -> Blocker:
    """The runner reports our own bugs."""
    refusals = [refusal for each in wanted if (refusal := world.refused(each.slot))]
    blockers = [
        Blocker(refusal=each, hindrance=Hindrance.of_refusal(each))
        for each in refusals
        if each.type is not ErrorType.BUG
    ]
    return max(blockers, key=lambda each: each.hindrance.weight if each.hindrance else (0, False), default=Blocker())


def looked_again(world: CloudWorld, problem: str) -> list[Moment]:
    """For a problem that is not a refused call."""
    if not (world.known.blocked_since and world.seen_at):
        return []
    again = Hindrance(why=problem, nature=Nature.REFUSED).until(world.known.blocked_since, world.seen_at)
    return [Moment(at=again)]


def tell(world: CloudWorld, about: Key, notices: Iterable[Notice], now: datetime) -> tuple[TellPeople, ...]:
    """Each Event once, and again after the API server has expired it."""
    told = world.known.told
    fresh = tuple(each for each in notices if each.digest not in told or now - told[each.digest] >= EVENTS_KEPT)
    return (TellPeople(about=about, notices=fresh, at=now),) if fresh else ()
