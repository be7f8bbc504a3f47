"""A CustomPolicyDefinition's workflow: a policy of the tenant's own. The phases are drawn in `lifecycle.py`.

It waits for its tenant only. Being deleted, it is refused as long as a product's chain has it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("CustomPolicyDefinition", ThreescaleWorld)
class CustomPolicyDefinitionWorkflow(Lifecycle):
    """The lifecycle of one CustomPolicyDefinition."""
