"""An ActiveDoc's workflow: a document for readers of an API. The phases are drawn in `lifecycle.py`.

It waits for the product that it describes, and for the Secret with the document.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("ActiveDoc", ThreescaleWorld)
class ActiveDocWorkflow(Lifecycle):
    """The lifecycle of one ActiveDoc."""
