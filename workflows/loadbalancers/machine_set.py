"""A LoadBalancerSet's workflow: each pass is one activity; what it waits for is a wake or the nearest moment."""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.loadbalancers.passes import RETRYABLE, LoadBalancerWorld, PassSet
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle("LoadBalancerSet", LoadBalancerWorld)
class LoadBalancerSetWorkflow(Passes[LoadBalancerWorld]):
    """The lifecycle of one LoadBalancerSet."""

    retryable_phases = RETRYABLE

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassSet(key=self.key, memory=self.world.known, dry_run=dry_run)
