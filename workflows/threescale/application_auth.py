"""An ApplicationAuth's workflow: the credentials of an application, set once. The phases are drawn in `lifecycle.py`.

It waits for the application and for its Secret; once it is done it never acts again.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="ApplicationAuth")
class ApplicationAuthWorkflow(Lifecycle):
    """The lifecycle of one ApplicationAuth."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
