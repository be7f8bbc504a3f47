"""A Backend's workflow: a backend of 3scale. The phases are drawn in `lifecycle.py`.

It waits for its tenant only. Being deleted, it waits until no Product uses it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="Backend")
class BackendWorkflow(Lifecycle):
    """The lifecycle of one Backend."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
