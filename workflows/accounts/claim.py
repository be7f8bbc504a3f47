"""An AccountClaim's workflow: from the wish to the Secret, and back to a clean account.

    Pending --bound by the pool--> OU, Secret --> Ready --deleted--> keys rotated --> cleaned --> account free --> gone

What should happen is decided in `domain/accounts/claim.py`; binding is the work of the AccountPool's workflow.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.claim import decide
    from domain.accounts.observations import ObserveClaim
    from domain.accounts.worlds import ClaimWorld
    from domain.decision import Action
    from workflows.entity import Entity
    from workflows.lifecycle import lifecycle


@lifecycle("AccountClaim", ClaimWorld, decide)
class AccountClaimWorkflow(Entity[ClaimWorld]):
    """The lifecycle of one AccountClaim."""

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the claim."""
        return ObserveClaim(key=self.key, thorough=dry_run)
