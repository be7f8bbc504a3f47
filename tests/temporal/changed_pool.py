"""A later version of a pool's workflow, changed so that no history of today's can be gone on with."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.accounts.observations import PoolWorld
    from domain.carry import Carry
    from workflows.accounts.pool import AccountPoolWorkflow
    from workflows.lifecycle import lifecycle


@lifecycle("AccountPool", PoolWorld)
class ChangedPool(AccountPoolWorkflow):
    """It waits before its first look."""

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """With a timer in the place of the first look."""
        await workflow.sleep(timedelta(milliseconds=10), summary="new in this version")
        await self.live()
