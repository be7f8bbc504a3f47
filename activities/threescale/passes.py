from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.inline_driver import Inline
from activities.threescale import metrics
from activities.threescale.effects import Effects
from activities.threescale.pass_context import PassContext
from domain.decision import World
from domain.threescale.passes import PassObject, ThreescaleWorld

# How often a pass observes again at once if a call is refused as outdated. After that the call counts as refused.
SECOND_LOOKS = 3


class PassActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self.context = context
        self._half_done: set[str] = set()

    @activity.defn(name=PassObject.activity)
    async def pass_object(self, look: PassObject) -> ThreescaleWorld:
        await self.context.cache.reached(look.seen)
        with metrics.passing(look.key.kind):
            async with Effects.of(self.context, look, self._half_done) as pass_:
                inline: Inline[World] = Inline(
                    pass_.decide,
                    pass_.by_activity(),
                    pass_.observe,
                    in_order=True,
                    second_looks=SECOND_LOOKS,
                )
                world = pass_.outcome(await inline.carry_out(look, look.memory))
        if not world.hold and not look.dry_run:
            self._half_done.discard(look.key.uid)  # `begun` in the lifecycle's memory now records the change
        metrics.passed(look.key.kind, world.decision)
        return world
