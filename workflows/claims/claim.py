"""A ResourceClaim's workflow: opened by the binder when it has served the claim, it looks after it from then on.

    served --> wait for the nearest moment (end, slow look) or a wake --> pass --> wait ... --> ended

Each pass is one activity over the claim, its handle and their resources. While the claim has no handle a pass asks the
binder, which answers with `served`. At the end it is the binder that acts, and says `ended`; else a pass does.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.claims.passes import ObjectWorld, PassClaim
    from domain.claims.standing import RETRYABLE
    from domain.decision import Action
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("ResourceClaim", ObjectWorld)
class ResourceClaimWorkflow(Passes[ObjectWorld]):
    """The lifecycle of one ResourceClaim."""

    retryable_phases = RETRYABLE

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassClaim(key=self.key, woken=self.woken, known=self.world.known, dry_run=dry_run)

    @workflow.signal(description="The binder has looked at the claim: this is how it stands.")
    def served(self, world: ObjectWorld) -> None:
        """Take it over, unless it is known better by now."""
        self.tell(self.world.heard(world))

    @workflow.signal(description="The binder has ended the claim, as its end had come: it is gone.")
    def ended(self, world: ObjectWorld) -> None:
        """Take it over: nothing that is known of it is newer than that it is gone."""
        self.tell(world.recall(self.world))
