"""The upkeep of queues and rules: one activity corrects an account and region, and stops at the first error.

In observe mode and for `plan` the differences are only reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from temporalio import activity

from activities.activity_class import Activities
from activities.aws.event_topology import EventTopology
from activities.aws.session import Services
from domain.instances import EVENT_TOPOLOGY
from domain.instances.event_topology_upkeep import NOT_SERVED, Comparison, KeepTopology, TopologyWorld, place_of_key
from domain.instances.served_queues import Place
from engine.clock import now
from engine.errors import ApiError
from engine.pauses import paused_area

logger = logging.getLogger(__name__)


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
            return TopologyWorld(key=look.key, exists=False, decision=NOT_SERVED)
        paused = paused_area(EVENT_TOPOLOGY.area)
        dry = look.dry_run or self._observing or bool(paused)
        comparison = await asyncio.to_thread(self.keep, place, dry=dry)
        return TopologyWorld(key=look.key, hold=paused, decision=comparison.decision(now(), dry=dry))

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
