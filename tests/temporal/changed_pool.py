"""A later version of a pool's workflow, changed so that no history of today's can be gone on with."""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow

from domain.accounts.passes import PassPool, PoolWorld
from workflows.accounts import AccountPoolWorkflow
from workflows.lifecycle_declaration import lifecycle


@lifecycle("AccountPool", world=PoolWorld, observe=PassPool)
class ChangedPool(AccountPoolWorkflow):
    """It waits before its first observation."""

    async def life(self) -> None:
        """With a timer in the place of the first observation."""
        await workflow.sleep(timedelta(milliseconds=10), summary="new in this version")
        await self.live()
