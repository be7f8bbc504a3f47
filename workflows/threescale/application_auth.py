"""An ApplicationAuth's workflow: the credentials of an application, set once. The phases are drawn in `lifecycle.py`.

It waits for the application and for its Secret; once it is done it never acts again.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("ApplicationAuth", ThreescaleWorld)
class ApplicationAuthWorkflow(Lifecycle):
    """The lifecycle of one ApplicationAuth."""
