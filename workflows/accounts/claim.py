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
    from domain.carry import Carry
    from domain.decision import Action
    from workflows.entity import Entity


@workflow.defn(name="AccountClaim")
class AccountClaimWorkflow(Entity[ClaimWorld]):
    """The lifecycle of one AccountClaim."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, ClaimWorld(key=carry.key), decide)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the claim is gone."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """Look at the claim."""
        return ObserveClaim(key=self.key, thorough=dry_run)
