"""The upkeep of queues and rules: one activity checks an account and region, and corrects it up to the first error.

In observe mode and for `plan` the differences are only reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime

from temporalio import activity

from activities.activity_class import Activities
from activities.aws.event_topology import EventTopology
from activities.aws.session import Services
from domain.decision import Decision, Outcome
from domain.instances import EVENT_TOPOLOGY
from domain.instances.event_topology_upkeep import LOOK_AGAIN, LOOK_EVERY, KeepTopology, TopologyWorld, place_of_key
from domain.instances.served_queues import Place
from domain.model import Model
from engine.clock import now
from engine.errors import ApiError
from engine.pauses import paused_area

logger = logging.getLogger(__name__)


class Comparison(Model):
    changes: tuple[str, ...] = ()
    trouble: str = ""


class TopologyActivities(Activities):
    def __init__(
        self, places: Sequence[Place], caller: Callable[[Place], Services], *, group_prefix: str, observing: bool
    ) -> None:
        self._places = places
        self._caller = caller
        self._group_prefix = group_prefix
        self._observing = observing

    @activity.defn(name=KeepTopology.activity)
    async def keep_topology(self, look: KeepTopology) -> TopologyWorld:
        place = place_of_key(look.key, self._places)
        if place is None:
            gone = Decision(phase="Gone", outcome=Outcome.GONE, why="the settings do not name this queue any more")
            return TopologyWorld(key=look.key, exists=False, decision=gone)
        paused = paused_area(EVENT_TOPOLOGY.area)
        dry = look.dry_run or self._observing or bool(paused)
        comparison = await asyncio.to_thread(self.keep, place, dry=dry)
        return TopologyWorld(key=look.key, hold=paused, decision=_decision(comparison, now(), dry=dry))

    def keep(self, place: Place, *, dry: bool) -> Comparison:
        """Correct the queues and rules of an account and region; with `dry` only compare them. The call blocks its
        thread.
        """
        changes: list[str] = []
        try:
            for change in EventTopology(place, self._caller(place), self._group_prefix).changes():
                if not dry:
                    change.mend()
                    logger.info("%s: %s", place, change.what)
                changes.append(change.what)
        except (ApiError, ValueError) as error:
            return Comparison(changes=tuple(changes), trouble=str(error))
        return Comparison(changes=tuple(changes))


def _decision(comparison: Comparison, moment: datetime, *, dry: bool) -> Decision:
    if comparison.trouble:
        return Decision(
            phase="Waiting",
            outcome=Outcome.WAITING,
            why=comparison.trouble,
            waits_for=("AWS",),
            deadline=moment + LOOK_AGAIN,
            at_deadline="observe again",
        )
    did = "; ".join(comparison.changes)
    return Decision(
        phase="Differs" if dry and comparison.changes else "Kept",
        outcome=Outcome.SETTLED,
        why=f"{'to be done' if dry else 'done'}: {did}" if did else "queues and rules are up to date",
        planned=comparison.changes if dry else (),
        deadline=moment + LOOK_EVERY,
        at_deadline="observe again",
    )
