"""The workflow that compares all tenants' lists with the objects, every hour while there are any.

    woken by a new object --> wait for the first sweep --> sweep (one activity, one list of each kind a tenant) --> wait

It stands behind no custom resource. Whoever differs is woken by an annotation that the sweep writes.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.threescale.passes import SweepTenants, ThreescaleWorld
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("ThreescaleTenants", ThreescaleWorld)
class ThreescaleTenantsWorkflow(Passes[ThreescaleWorld]):
    """All tenants together."""

    has_object: ClassVar[bool] = False

    def observation(self, *, dry_run: bool = False) -> Action:
        """One sweep."""
        return SweepTenants(key=self.key, memory=self.world.known, dry_run=dry_run)
