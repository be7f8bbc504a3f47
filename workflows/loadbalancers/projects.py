"""The workflow that looks at all OpenStack projects, every five minutes while there are load balancers.

    woken by a new LoadBalancer --> sweep (one activity, five lists a project) --> wait for the next one

It stands behind no custom resource. Whoever differs is woken by an annotation that the sweep writes.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.loadbalancers.passes import LoadBalancerWorld, SweepProjects
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("OpenStackProjects", LoadBalancerWorld)
class OpenStackProjectsWorkflow(Passes[LoadBalancerWorld]):
    """All projects together."""

    has_object: ClassVar[bool] = False

    def observation(self, *, dry_run: bool = False) -> Action:
        """One sweep."""
        return SweepProjects(key=self.key, memory=self.world.known, dry_run=dry_run)
