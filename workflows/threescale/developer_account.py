"""A DeveloperAccount's workflow: an organisation that uses APIs. The phases are drawn in `lifecycle.py`.

It waits for a DeveloperUser that is admin, with which 3scale makes it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("DeveloperAccount", ThreescaleWorld)
class DeveloperAccountWorkflow(Lifecycle):
    """The lifecycle of one DeveloperAccount."""
