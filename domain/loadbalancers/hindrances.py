"""What stands in the way in the cloud, and when it is tried again.

Whatever can pass is waited for: a quota is raised, a Secret is mended, an API answers again. Each kind of hindrance has
a first pause; from then on the pauses grow with the time for which it has lasted, up to the kind's longest. A wake
tries at once.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from domain.model import Model
from domain.notices import Notice, warning
from domain.refusal import AREA_PAUSED, WORKER_SHUTDOWN, ErrorType, Refusal, doubled

# Codes: a quota of the project is used up; this process makes enough calls to the project at once, or a second.
QUOTA = "OverQuota"
BUSY = "ProjectBusy"
SPENT = "ProjectBudget"


class Nature(StrEnum):
    """What kind of hindrance it is."""

    UNDER_WAY = "under way"  # it ends by itself: a server goes, a port is let go
    OUTAGE = "outage"  # no answer, or too many calls
    QUOTA = "quota"
    REFUSED = "refused"  # a person has to look


_PAUSES = {
    Nature.UNDER_WAY: (timedelta(seconds=3), timedelta(seconds=30)),
    Nature.OUTAGE: (timedelta(seconds=1), timedelta(minutes=1)),
    Nature.QUOTA: (timedelta(seconds=10), timedelta(minutes=5)),
    Nature.REFUSED: (timedelta(seconds=15), timedelta(minutes=10)),
}
# What ends by itself takes seconds, a server that is slow to go some minutes.
OVERDUE_AFTER = timedelta(minutes=10)
_OURS = frozenset({BUSY, SPENT, WORKER_SHUTDOWN, AREA_PAUSED})
_NATURES = {
    ErrorType.PENDING: Nature.UNDER_WAY,
    ErrorType.CONFLICT: Nature.UNDER_WAY,
    ErrorType.ABSENT: Nature.UNDER_WAY,
    ErrorType.THROTTLED: Nature.OUTAGE,
    ErrorType.UNAVAILABLE: Nature.OUTAGE,
}


class Hindrance(Model):
    """One of them.

    Attributes:
        why: in a person's words.
        nature: of which kind it is.
        asked: how long the other side wants to be left alone.
        ours: it is a limit of this process: the turn comes, and nobody needs to hear of it.
    """

    why: str
    nature: Nature
    asked: timedelta = timedelta(0)
    ours: bool = False

    @classmethod
    def of(cls, type_: ErrorType, why: str, *, code: str = "", asked: timedelta | None = None) -> Hindrance:
        """What an error stands for. A conflict or an absence only says that another look is needed."""
        nature = Nature.QUOTA if code == QUOTA else _NATURES.get(type_, Nature.REFUSED)
        return cls(why=why, nature=nature, asked=asked or timedelta(0), ours=code in _OURS)

    @classmethod
    def of_refusal(cls, refusal: Refusal) -> Hindrance:
        """What a refused action stands for."""
        return cls.of(refusal.type, refusal.message, code=refusal.code, asked=refusal.asked)

    @property
    def weight(self) -> tuple[int, bool]:
        """How much it says to a person."""
        return list(Nature).index(self.nature), not self.ours

    @property
    def problem(self) -> str:
        """What a person is shown as a problem; empty for what ends by itself."""
        return "" if self.nature is Nature.UNDER_WAY else self.why

    def until(self, since: datetime, now: datetime) -> datetime:
        """When to try again."""
        first, longest = _PAUSES[self.nature]
        return now + max(first, self.asked, min(longest, now - since))


def with_pause(refusal: Refusal) -> Refusal:
    """The refusal with the pause that its kind of hindrance has."""
    first, longest = _PAUSES[Hindrance.of_refusal(refusal).nature]
    return refusal.model_copy(update={"pause": doubled(refusal.attempts, first, longest)})


def notices_of(problem: str, hindrance: Hindrance | None) -> tuple[Notice, ...]:
    """What people are told of a problem, which may be the hindrance's."""
    waits_its_turn = hindrance is not None and hindrance.ours and problem == hindrance.problem
    return (warning("Failed", problem),) if problem and not waits_its_turn else ()


def overdue(hindrance: Hindrance | None, since: datetime | None, now: datetime) -> tuple[Notice, ...]:
    """What people are told of something that should have ended by itself, and stands in the way since then."""
    if hindrance is None or since is None or hindrance.nature is not Nature.UNDER_WAY or now - since < OVERDUE_AFTER:
        return ()
    return (warning("Failed", f"{hindrance.why}; this has lasted for more than ten minutes"),)
