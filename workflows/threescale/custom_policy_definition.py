"""A CustomPolicyDefinition's workflow: a policy of the tenant's own. The phases are drawn in `lifecycle.py`.

It waits for its tenant only. Being deleted, it is refused as long as a product's chain has it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="CustomPolicyDefinition")
class CustomPolicyDefinitionWorkflow(Lifecycle):
    """The lifecycle of one CustomPolicyDefinition."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
