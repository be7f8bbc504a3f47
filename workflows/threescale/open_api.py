"""An OpenAPI's workflow: a document becomes a Product and a Backend. The phases are drawn in `lifecycle.py`.

It waits for the document and for the Product; a document at an address is fetched again every five minutes.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="OpenAPI")
class OpenApiWorkflow(Lifecycle):
    """The lifecycle of one OpenAPI."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
