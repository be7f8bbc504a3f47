"""A Product's workflow: a product of 3scale, with metrics, rules, plans and gateway. `lifecycle.py` draws the phases.

It waits for its backends and for the Secrets that it draws on; what backends do makes it deploy anew.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("Product", ThreescaleWorld)
class ProductWorkflow(Lifecycle):
    """The lifecycle of one Product."""
