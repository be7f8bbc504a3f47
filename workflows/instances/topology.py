"""The workflow of a place's queues and rules: looked at when Perdure starts, every hour, and when someone wakes it.

woken --> look (one activity, a dozen calls) --> kept --an hour--> look
               └--> AWS refuses: waiting --two minutes--> look
               └--> the settings name the place no more: (end; what stands there is left)
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.instances.constants import TOPOLOGY_WORKFLOW
    from domain.instances.upkeep import KeepTopology, TopologyWorld
    from workflows.lifecycle import lifecycle
    from workflows.passes import Passes


@lifecycle(TOPOLOGY_WORKFLOW, TopologyWorld)
class EventTopologyWorkflow(Passes[TopologyWorld]):
    """One place."""

    has_object: ClassVar[bool] = False

    def observation(self, *, dry_run: bool = False) -> Action:
        """One look."""
        return KeepTopology(key=self.key, dry_run=dry_run)
