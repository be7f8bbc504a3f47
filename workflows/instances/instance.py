"""An instance's workflow: events are handed over, a look writes the label, and what was promised is waited for.

    hand_over ──► record ──► look (objects read, label written) ──► answered: the message may be deleted
                                │
                                ├─ half a minute later ──► ask AWS ──► (label again, if AWS says otherwise)
                                ├─ a reaction, once AWS bears it out: delete the Machine, cordon and drain
                                ├─ a hook: heartbeats until drained or its end is near, then complete it
                                ├─ a scheduled event: from 24 h before its date on
                                └─ terminated, and an hour of quiet ──► (end)

An update answers when a look that began after its events were recorded has ended, so several that come together share
one. What AWS takes its time over holds up no answer. A later event opens the workflow anew; nothing is lost in between,
since states, tokens and scheduled events can be asked of AWS, and notices stand in the AWSMachine's annotation.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.decision import Action
    from domain.instances.acknowledgement import Outcome
    from domain.instances.actions import Answer
    from domain.instances.decision import decide_instance, look_at
    from domain.instances.handover import ANSWERED, HAND_OVER, INSTANCE_WORKFLOW, HandOver, Taken
    from domain.instances.lifecycle import InstanceWorld
    from workflows.entity import Entity


@workflow.defn(name=INSTANCE_WORKFLOW)
class Ec2InstanceWorkflow(Entity[InstanceWorld]):
    """The lifecycle of one EC2 instance."""

    has_object: ClassVar[bool] = False

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, InstanceWorld(key=carry.key), decide_instance)
        self.world = self.world.begun(workflow.now())

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until it is gone and nobody speaks of it any more."""
        await self.live()
        while self.dirty or not workflow.all_handlers_finished():
            await workflow.wait_condition(lambda: self.dirty or workflow.all_handlers_finished())
            if self.dirty:
                await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """A look at its objects, which also writes its label."""
        return look_at(self.world, workflow.now(), dry_run=dry_run)

    @workflow.update(name=HAND_OVER, description="Events of this instance; answers once its label says what they say.")
    async def hand_over(self, given: HandOver) -> Taken:
        """Record events, and have the label that follows from them written."""
        world, outcomes = self.world.heard(given.events)
        self.tell(world)
        known = all(outcome is Outcome.DUPLICATE for outcome in outcomes.values())
        done = known and self.up_to_date and world.managed
        looked = done or await self.look_now()
        return self.world.taken(outcomes, looked=looked)

    @workflow.signal(name=ANSWERED, description="AWS's answer about this instance, from a request for many.")
    def answered(self, answer: Answer) -> None:
        """As if it had been asked for; its labels may have been edited since they were looked at."""
        self.tell(self.world.told(answer.facts, answer.timings))
        self.dirty = True
