"""A Product's workflow: a product of 3scale, with metrics, rules, plans and gateway. `lifecycle.py` draws the phases.

It waits for its backends and for the Secrets that it draws on; what backends do makes it deploy anew.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="Product")
class ProductWorkflow(Lifecycle):
    """The lifecycle of one Product."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
