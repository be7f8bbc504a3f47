"""The upkeep of queues and rules: one activity looks at a place, mends what differs, and says when to look again.

What could not be mended does not hold up the rest of a place more than it must: the look ends with it, tells it, and
begins anew two minutes later. In observe mode and for `plan` nothing is mended, and what would be is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from temporalio import activity

from activities.aws.event_topology import EventTopology
from activities.aws.session import Services
from activities.defined import Activities
from domain.decision import Decision, Outcome
from domain.instances import EVENT_TOPOLOGY
from domain.instances.places import Place
from domain.instances.upkeep import LOOK_AGAIN, LOOK_EVERY, KeepTopology, TopologyWorld, place_of_key
from domain.model import Model
from engine.clock import now
from engine.errors import ApiError
from engine.pauses import paused_area

logger = logging.getLogger(__name__)


class Looked(Model):
    """What a look found: what was mended, or would be, and what stood in the way."""

    changes: tuple[str, ...] = ()
    trouble: str = ""


class TopologyActivities(Activities):
    """The activity over a place's queues and rules.

    Args:
        places: those of the settings.
        caller: who calls AWS in a place.
        group_prefix: only events of Auto Scaling groups whose name begins so.
        observing: nothing is written anywhere.
    """

    def __init__(
        self, places: Sequence[Place], caller: Callable[[Place], Services], *, group_prefix: str, observing: bool
    ) -> None:
        self._places = places
        self._caller = caller
        self._group_prefix = group_prefix
        self._observing = observing

    @activity.defn(name=KeepTopology.activity)
    async def keep_topology(self, look: KeepTopology) -> TopologyWorld:
        """One look at a place, and what it came to."""
        place = place_of_key(look.key, self._places)
        if place is None:
            gone = Decision(phase="Gone", outcome=Outcome.GONE, why="the settings do not name this queue any more")
            return TopologyWorld(key=look.key, exists=False, decision=gone)
        paused = paused_area(EVENT_TOPOLOGY.area)
        dry = look.dry_run or self._observing or bool(paused)
        looked = await asyncio.to_thread(self.keep, place, dry=dry)
        return TopologyWorld(key=look.key, hold=paused, decision=_decision(looked, now(), dry=dry))

    def keep(self, place: Place, *, dry: bool) -> Looked:
        """Look at a place, and mend what differs unless it is only asked what would be. On a thread."""
        changes: list[str] = []
        try:
            for change in EventTopology(place, self._caller(place), self._group_prefix).changes():
                if not dry:
                    change.mend()
                    logger.info("%s: %s", place, change.what)
                changes.append(change.what)
        except ApiError as error:
            return Looked(changes=tuple(changes), trouble=error.message)
        except ValueError as error:
            return Looked(changes=tuple(changes), trouble=str(error))
        return Looked(changes=tuple(changes))


def _decision(looked: Looked, moment: datetime, *, dry: bool) -> Decision:
    if looked.trouble:
        return Decision(
            phase="Waiting",
            outcome=Outcome.WAITING,
            why=looked.trouble,
            waits_for=("AWS",),
            deadline=moment + LOOK_AGAIN,
            at_deadline="observe again",
        )
    did = "; ".join(looked.changes)
    return Decision(
        phase="Differs" if dry and looked.changes else "Kept",
        outcome=Outcome.SETTLED,
        why=f"{'to be done' if dry else 'done'}: {did}" if did else "queues and rules are up to date",
        planned=looked.changes if dry else (),
        deadline=moment + LOOK_EVERY,
        at_deadline="observe again",
    )
