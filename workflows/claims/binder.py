"""The ClaimBinder's workflow: it gives handles to claims, for a whole operator namespace, one batch after the other.

    wake, or a claim asks --> batch (serve claims as they come, for some seconds) --> wait, or the next batch

There is one of it, and one batch at a time, so that every handle is given once without any lock. It is woken when
claims, free handles or providers change; `serve` names a claim that wants to be looked at whatever has changed.
"""

from __future__ import annotations

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.claims.passes import BinderWorld, Serve
    from domain.decision import Action
    from domain.identity import Key
    from workflows.passes import Passes


@workflow.defn(name="ClaimBinder")
class ClaimBinderWorkflow(Passes[BinderWorld]):
    """The one that gives handles to claims."""

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, BinderWorld(key=carry.key))
        self._asked: dict[str, Key] = {}

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """For ever."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One batch."""
        if dry_run:
            return Serve(key=self.key, dry_run=True)
        asked, self._asked = tuple(self._asked.values()), {}
        return Serve(key=self.key, asked=asked)

    def observed(self) -> None:
        """Somebody still waits: the next batch follows at once."""
        self.dirty = self.dirty or self.world.more

    @workflow.signal(description="A claim that has no handle wants to be looked at.")
    def serve(self, claim: Key) -> None:
        """Remember it for the next batch."""
        self._asked[claim.uid] = claim
        self.wake()
