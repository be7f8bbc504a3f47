"""A Backend's workflow: a backend of 3scale. The phases are drawn in `lifecycle.py`.

It waits for its tenant only. Being deleted, it waits until no Product uses it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("Backend", ThreescaleWorld)
class BackendWorkflow(Lifecycle):
    """The lifecycle of one Backend."""
