"""The lifecycles of EC2 instances. What should happen is decided in `domain/instances/`.

| lifecycle | one for each |
|---|---|
| Ec2Instance | EC2 instance that an event names |
| AutoScalingGroup | Auto Scaling group of an AWSMachinePool |
| InstanceSweep | installation: all instances and groups in bulk, for lost events |
| EventTopology | account and region: its queues and rules |
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

from domain.decision import Action
from domain.instances.actions import Answer, LookAtInstance
from domain.instances.constants import GROUP_WORKFLOW, INSTANCE_WORKFLOW, SWEEP_WORKFLOW, TOPOLOGY_WORKFLOW
from domain.instances.event_handover import ANSWERED, ENDED, HAND_OVER, HandOver, Outcome, Taken
from domain.instances.event_topology_upkeep import KeepTopology, TopologyWorld
from domain.instances.instance_lifecycle import decide_instance, look_at
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.observed import InstanceWorld
from domain.instances.passes import GroupWorld, LookAtGroup, SweepInstances
from domain.passes import SweptWorld
from workflows.durable_driver import Entity
from workflows.lifecycle_declaration import lifecycle
from workflows.passes import Passes


@lifecycle(INSTANCE_WORKFLOW, world=InstanceWorld, observe=LookAtInstance, decide=decide_instance)
class Ec2InstanceWorkflow(Entity[InstanceWorld]):
    """An EC2 instance: takes events, observes and labels its AWSMachine or Node, and waits for deadlines.

        hand_over ──► record ──► observe (objects read, label written) ──► answered: the message may be deleted
                                    │
                                    ├─ half a minute later ──► query AWS ──► (label again, if AWS says otherwise)
                                    ├─ a reaction to what AWS has confirmed: delete the Machine, cordon and drain
                                    ├─ a hook: heartbeats; completed when the Node is drained or the hook's time is over
                                    ├─ a scheduled event: from 24 h before its date on
                                    └─ terminated, and an hour of quiet ──► (end)

    An update records its events; its answer follows the next observation, which concurrent updates share. An event
    that comes after the lifecycle's end starts it again. Nothing is lost in between: states and scheduled events can be
    queried from AWS, and notices and tokens are in the AWSMachine's annotation.
    """

    has_object: ClassVar[bool] = False

    def begin(self) -> None:
        self.world = self.world.begun(workflow.now())

    async def life(self) -> None:
        await self.live()
        while self.dirty or not workflow.all_handlers_finished():
            await workflow.wait_condition(lambda: self.dirty or workflow.all_handlers_finished())
            if self.dirty:
                await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        return look_at(self.world, workflow.now(), dry_run=dry_run)

    @workflow.update(name=HAND_OVER, description="Take events of this instance, and answer after an observation.")
    async def hand_over(self, given: HandOver) -> Taken:
        world, outcomes = self.world.with_events(given.events, workflow.now())
        self.replace_world(world)
        known = all(outcome is Outcome.DUPLICATE for outcome in outcomes.values())
        done = known and self.up_to_date and world.managed
        observed = done or await self.look_now()
        return self.world.taken(outcomes, looked=observed)

    @workflow.signal(name=ANSWERED, description="AWS's answer about this instance, from a query about many.")
    def answered(self, answer: Answer) -> None:
        """Adopt AWS's answer. The labels are observed again, because someone may have edited them."""
        self.replace_world(self.world.with_answer(answer.facts, answer.timings))
        self.dirty = True


@lifecycle(GROUP_WORKFLOW, world=GroupWorld, observe=LookAtGroup)
class AutoScalingGroupWorkflow(Passes[GroupWorld]):
    """An Auto Scaling group: woken by events of its instances and changes of its AWSMachinePool.

    woken ──► observe (Auto Scaling is queried, the pool is labelled) ──► wait for the next wake
                 └──► no AWSMachinePool and no such group: (end)
    """

    has_object: ClassVar[bool] = False

    async def life(self) -> None:
        await self.live()
        while self.dirty:
            await self.live()

    @workflow.signal(name=ENDED, description="Results of this group's launches and terminations; a wake follows.")
    def ended(self, record: GroupRecord) -> None:
        """Remember the result of a launch or termination, which Auto Scaling may not list yet."""
        self.world = self.world.with_record(record)


@lifecycle(SWEEP_WORKFLOW, world=SweptWorld, observe=SweepInstances)
class InstanceSweepWorkflow(Passes[SweptWorld]):
    """The sweep over the instances and groups of all accounts and regions, every ten minutes while there are any.

        woken by a new AWSMachine or AWSMachinePool
          --> sweep (one activity, two calls for 200 instances, one for 100 groups) --> wait for the next one

    If an instance's state or scheduled events differ from its AWSMachine or Node, the instance's lifecycle gets AWS's
    answer, and is started if it is closed. If a group differs from its AWSMachinePool, the group's lifecycle is woken.
    """

    has_object: ClassVar[bool] = False


@lifecycle(TOPOLOGY_WORKFLOW, world=TopologyWorld, observe=KeepTopology)
class EventTopologyWorkflow(Passes[TopologyWorld]):
    """The queues and rules of an account and region: checked at Perdure's start, every hour, and at a wake.

    woken --> observe (one activity, a dozen calls) --> up to date --an hour--> observe
                 └--> AWS refuses: waiting --two minutes--> observe
                 └--> the settings no longer name the queue: (end; queue and rules stay)
    """

    has_object: ClassVar[bool] = False
