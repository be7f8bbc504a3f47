"""A Service's workflow: each pass is one activity; what it waits for is a wake.

    Creating ──► Ready ──► Releasing ──► (end)
        └──► Unservable ◄──┘

It ends when the Service is gone, and also when the Service lives on without a load balancer of ours: its type or class
has changed. Should that change back in the moment of the end, the wake that says so is heard before the end.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.decision import Action
    from domain.loadbalancers.services.passes import PassService, ServiceWorld
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("Service", ServiceWorld)
class ServiceWorkflow(Passes[ServiceWorld]):
    """The lifecycle of one Service's load balancer, on the Service's side."""

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until nothing is left to look after."""
        await self.live()
        while self.dirty and self.world.exists:
            await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassService(key=self.key, dry_run=dry_run)
