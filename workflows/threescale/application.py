"""An Application's workflow: an account's use of a product. The phases are drawn in `lifecycle.py`.

It waits for account, product, plan and credentials, and goes with its account.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="Application")
class ApplicationWorkflow(Lifecycle):
    """The lifecycle of one Application."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
