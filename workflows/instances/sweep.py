"""The workflow that looks at the instances of all places in bulk, every few minutes while there are AWSMachines.

    woken by a new AWSMachine or AWSMachinePool
      --> sweep (one activity, two calls for 200 instances, one for 100 groups) --> wait for the next one

It stands behind no custom resource. Whose state or scheduled events differ from what its AWSMachine tells has its
workflow told what AWS said, which opens it if it is not open: events may be lost, states are not. A group that stands
otherwise than its AWSMachinePool tells is woken.
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.instances.constants import SWEEP_WORKFLOW
    from domain.instances.passes import SweepInstances, SweepWorld
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle(SWEEP_WORKFLOW, SweepWorld)
class InstanceSweepWorkflow(Passes[SweepWorld]):
    """All places together."""

    has_object: ClassVar[bool] = False

    def observation(self, *, dry_run: bool = False) -> Action:
        """One sweep."""
        return SweepInstances(key=self.key, memory=self.world.known, dry_run=dry_run)
