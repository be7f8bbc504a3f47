"""Calls that OpenStack refuses: when they are tried again, and the Event `Failed` with the refusal.

The first pause depends on the nature of the blocker; later pauses grow up to a maximum. A wake causes an attempt at
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from domain.decision import Action, World
from domain.model import Model
from domain.notices import Notice, warning
from domain.refusal import AREA_PAUSED, WORKER_SHUTDOWN, ErrorType, Refusal, doubled

# Codes of refusals: the project's quota is exhausted; this process has reached its own limit of concurrent calls, or of
# calls per second to the project.
QUOTA = "OverQuota"
BUSY = "ProjectBusy"
SPENT = "ProjectBudget"


class Nature(StrEnum):
    UNDER_WAY = "under way"  # ends by itself, such as the deletion of a server or the release of a port
    OUTAGE = "outage"  # OpenStack does not answer, or refuses a call because there are too many calls
    QUOTA = "quota"
    REFUSED = "refused"  # a person has to correct something


PAUSES = {
    Nature.UNDER_WAY: (timedelta(seconds=3), timedelta(seconds=30)),
    Nature.OUTAGE: (timedelta(seconds=1), timedelta(minutes=1)),
    Nature.QUOTA: (timedelta(seconds=10), timedelta(minutes=5)),
    Nature.REFUSED: (timedelta(seconds=15), timedelta(minutes=10)),
}
# How long a blocker that ends by itself may last before it is reported. Most end within seconds, a slow deletion of a
# server within minutes.
OVERDUE_AFTER = timedelta(minutes=10)
_OURS = frozenset({BUSY, SPENT, WORKER_SHUTDOWN, AREA_PAUSED})
_NATURES = {
    ErrorType.PENDING: Nature.UNDER_WAY,
    ErrorType.CONFLICT: Nature.UNDER_WAY,
    ErrorType.ABSENT: Nature.UNDER_WAY,
    ErrorType.THROTTLED: Nature.OUTAGE,
    ErrorType.UNAVAILABLE: Nature.OUTAGE,
}


class Blocker(Model):
    why: str
    nature: Nature
    ours: bool = False  # caused by Perdure: a limit of calls, a shutdown or a pause; not reported

    @classmethod
    def of(cls, refusal: Refusal) -> Blocker:
        """A conflict or an absent object counts as under way, because the next observation resolves it."""
        nature = Nature.QUOTA if refusal.code == QUOTA else _NATURES.get(refusal.type, Nature.REFUSED)
        return cls(why=refusal.message, nature=nature, ours=refusal.code in _OURS)

    @property
    def weight(self) -> tuple[int, bool]:
        return list(Nature).index(self.nature), not self.ours

    @property
    def problem(self) -> str:
        """The problem to show to people; empty if the blocker ends by itself."""
        return "" if self.nature is Nature.UNDER_WAY else self.why


def with_pause(refusal: Refusal) -> Refusal:
    first, longest = PAUSES[Blocker.of(refusal).nature]
    return refusal.model_copy(update={"pause": doubled(refusal.attempts, first, longest)})


def notices_of(problem: str, blocker: Blocker | None) -> tuple[Notice, ...]:
    waits_its_turn = blocker is not None and blocker.ours and problem == blocker.problem
    return (warning("Failed", problem),) if problem and not waits_its_turn else ()


def overdue(blocker: Blocker | None, since: datetime | None, now: datetime) -> tuple[Notice, ...]:
    if blocker is None or since is None or blocker.nature is not Nature.UNDER_WAY or now - since < OVERDUE_AFTER:
        return ()
    return (warning("Failed", f"{blocker.why}; this has lasted for more than ten minutes"),)


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


def blocked_step(world: World, wanted: Iterable[Action]) -> BlockedStep:
    """The most important blocker among the wanted steps. Bugs of Perdure are left out: `runner.py` reports them."""
    refusals = [refusal for each in wanted if (refusal := world.refused(each.slot))]
    blocked = [
        BlockedStep(refusal=each, blocker=Blocker.of(each)) for each in refusals if each.type is not ErrorType.BUG
    ]
    return max(blocked, key=lambda each: each.blocker.weight if each.blocker else (0, False), default=BlockedStep())
