"""A ResourceHandle's workflow: it looks after a free handle, and after one whose claim is gone or left alone.

While a claim holds the handle, the claim's workflow looks after both; this one then waits for a wake.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.claims.passes import ObjectWorld, PassHandle
    from domain.claims.standing import RETRYABLE
    from domain.decision import Action
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("ResourceHandle", ObjectWorld)
class ResourceHandleWorkflow(Passes[ObjectWorld]):
    """The lifecycle of one ResourceHandle."""

    retryable_phases = RETRYABLE

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassHandle(key=self.key, woken=self.woken, known=self.world.known, dry_run=dry_run)
