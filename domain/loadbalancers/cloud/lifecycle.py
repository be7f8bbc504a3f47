"""Common parts of load balancer and machine lifecycles: observing the cloud, and blockers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.decision import Action
from domain.loadbalancers.blockers import PAUSES, Blocker, Nature, notices_of, overdue
from domain.loadbalancers.cloud.world import CloudWorld
from domain.loadbalancers.object_world import Moment
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal


class BlockedStep(Model):
    refusal: Refusal | None = None
    blocker: Blocker | None = None

    @property
    def why(self) -> str:
        return self.blocker.why if self.blocker else ""

    @property
    def problem(self) -> str:
        return self.blocker.problem if self.blocker else ""

    def notices(self, problem: str, now: datetime) -> tuple[Notice, ...]:
        since = self.refusal.lasts_since if self.refusal else None
        return (*notices_of(problem, self.blocker), *overdue(self.blocker, since, now))


def needs_look(world: CloudWorld, steps: Iterable[Action]) -> bool:
    current = world.look in (world.seen, world.known.settled)
    waits = any(world.refused(each.slot) for each in steps)
    return not current or (world.stale and not waits)


def blocked_step(world: CloudWorld, wanted: Iterable[Action]) -> BlockedStep:
    """The most important blocker of the wanted steps. Bugs of Perdure are left out, because the runner reports them."""
    refusals = [refusal for each in wanted if (refusal := world.refused(each.slot))]
    blocked = [
        BlockedStep(refusal=each, blocker=Blocker.of(each)) for each in refusals if each.type is not ErrorType.BUG
    ]
    return max(blocked, key=lambda each: each.blocker.weight if each.blocker else (0, False), default=BlockedStep())


def observed_again(world: CloudWorld) -> list[Moment]:
    """When to observe the cloud again after a problem that is not a refused call; empty without such a problem."""
    since, seen = world.known.blocked_since, world.seen_at
    if not (since and seen):
        return []
    first, longest = PAUSES[Nature.REFUSED]
    return [Moment(at=seen + max(first, min(longest, seen - since)))]
