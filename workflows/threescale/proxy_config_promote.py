"""A ProxyConfigPromote's workflow: a product's gateway configuration goes on, once. `lifecycle.py` draws the phases.

It waits for its product; once it is done it never acts again.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("ProxyConfigPromote", ThreescaleWorld)
class ProxyConfigPromoteWorkflow(Lifecycle):
    """The lifecycle of one ProxyConfigPromote."""
