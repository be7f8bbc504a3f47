"""A ResourcePool's workflow: each pass counts its handles, makes those that lack, and writes the status."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.claims.passes import PassPool, PoolWorld
    from domain.claims.standing import RETRYABLE
    from domain.decision import Action
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("ResourcePool", PoolWorld)
class ResourcePoolWorkflow(Passes[PoolWorld]):
    """The lifecycle of one ResourcePool."""

    retryable_phases = RETRYABLE

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassPool(key=self.key, woken=self.woken, known=self.world.known, dry_run=dry_run)
