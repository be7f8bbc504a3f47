"""An Auto Scaling group's workflow: woken by events of its instances and changes of its AWSMachinePool.

woken ──► look (Auto Scaling is asked, the pool is labelled) ──► wait for the next wake
             └──► no AWSMachinePool and no such group: (end)

How launches and terminations ended is told before the wake, and remembered: Auto Scaling may not list it yet.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.decision import Action
    from domain.instances.groups import GroupRecord
    from domain.instances.handover import ENDED, GROUP_WORKFLOW
    from domain.instances.passes import GroupWorld, LookAtGroup
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle(GROUP_WORKFLOW, GroupWorld)
class AutoScalingGroupWorkflow(Passes[GroupWorld]):
    """The lifecycle of one Auto Scaling group."""

    has_object: ClassVar[bool] = False

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until nobody has such a group."""
        await self.live()
        while self.dirty:
            await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One look."""
        return LookAtGroup(key=self.key, record=self.world.known, dry_run=dry_run)

    @workflow.signal(name=ENDED, description="How its launches and terminations ended; a wake follows.")
    def ended(self, record: GroupRecord) -> None:
        """Remembered, and no more: an older worker, whose history is replayed here, has heard the wake alone."""
        self.world = self.world.told(record)
