"""A ProxyConfigPromote's workflow: a product's gateway configuration goes on, once. `lifecycle.py` draws the phases.

It waits for its product; once it is done it never acts again.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from workflows.threescale.lifecycle import Lifecycle


@workflow.defn(name="ProxyConfigPromote")
class ProxyConfigPromoteWorkflow(Lifecycle):
    """The lifecycle of one ProxyConfigPromote."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry)

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """Until the object is gone."""
        await self.live()
