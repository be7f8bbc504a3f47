"""An ActiveDoc's workflow: a document for readers of an API. The phases are drawn in `lifecycle.py`.

It waits for the product that it describes, and for the Secret with the document.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="ActiveDoc")
class ActiveDocWorkflow(Lifecycle):
    """The lifecycle of one ActiveDoc."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
