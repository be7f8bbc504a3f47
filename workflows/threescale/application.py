"""An Application's workflow: an account's use of a product. The phases are drawn in `lifecycle.py`.

It waits for account, product, plan and credentials, and goes with its account.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("Application", ThreescaleWorld)
class ApplicationWorkflow(Lifecycle):
    """The lifecycle of one Application."""
