"""A DeveloperUser's workflow: a person of an organisation. The phases are drawn in `lifecycle.py`.

It waits for its account, and goes with it.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("DeveloperUser", ThreescaleWorld)
class DeveloperUserWorkflow(Lifecycle):
    """The lifecycle of one DeveloperUser."""
