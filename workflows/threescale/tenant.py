"""A Tenant's workflow: a tenant of a 3scale installation, made by its master. The phases are drawn in `lifecycle.py`.

It waits for the master's token, the first admin's password, and, if the tenant's own token was lost, for a person.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.threescale.passes import ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.threescale.lifecycle import Lifecycle


@lifecycle("Tenant", ThreescaleWorld)
class TenantWorkflow(Lifecycle):
    """The lifecycle of one Tenant."""
