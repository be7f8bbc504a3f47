"""A DeveloperUser's workflow: a person of an organisation. The phases are drawn in `lifecycle.py`.

It waits for its account, and goes with it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="DeveloperUser")
class DeveloperUserWorkflow(Lifecycle):
    """The lifecycle of one DeveloperUser."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
