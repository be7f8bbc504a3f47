"""A DeveloperAccount's workflow: an organisation that uses APIs. The phases are drawn in `lifecycle.py`.

It waits for a DeveloperUser that is admin, with which 3scale makes it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="DeveloperAccount")
class DeveloperAccountWorkflow(Lifecycle):
    """The lifecycle of one DeveloperAccount."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
