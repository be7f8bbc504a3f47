"""What the workflows of all 3scale kinds share: each pass is one activity; what it waits for is a wake or a moment.

    New ─► Syncing ─► Synced ─new spec, other referents, drift─► Syncing
      any ─► Orphan: something it refers to is missing; looked for again after 5 s, doubling to ten minutes
      any ─► Invalid, Failed: told in the status; tried again after 5 s, doubling to ten minutes
      any ─deletion─► Deleting ─► (end)

A wake makes the next pass at once, and drops what 3scale has refused: the reason may have gone.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.decision import Action
    from domain.threescale.passes import RETRYABLE, PassObject, ThreescaleWorld
    from workflows.passes import Passes


class Lifecycle(Passes[ThreescaleWorld]):
    """The lifecycle of one object. A subclass says of which kind."""

    retryable_phases = RETRYABLE

    def observation(self, *, dry_run: bool = False) -> Action:
        """One pass."""
        return PassObject(key=self.key, memory=self.world.known, woken=self.woken, dry_run=dry_run)
