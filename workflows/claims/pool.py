"""A ResourcePool's workflow: each pass counts its handles, makes those that lack, and writes the status."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.claims.passes import PassPool, PoolWorld
    from domain.claims.standing import RETRYABLE
    from domain.decision import Action
    from workflows.passes import Passes


@workflow.defn(name="ResourcePool")
class ResourcePoolWorkflow(Passes[PoolWorld]):
    """The lifecycle of one ResourcePool."""

    retryable_phases = RETRYABLE

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, PoolWorld(key=carry.key))

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the pool is gone."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassPool(key=self.key, woken=self.woken, known=self.world.known, dry_run=dry_run)
