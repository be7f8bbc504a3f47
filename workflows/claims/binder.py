"""The ClaimBinder's workflow: it gives handles to claims, for a whole operator namespace, one batch after the other.

    wake, a claim asks, the next end --> batch (serve claims as they come, for some seconds) --> wait, or the next batch

There is one of it, and one batch at a time, so that every handle is given once without any lock. It is woken when
claims, free handles or providers change; `serve` names a claim that wants to be looked at whatever has changed. Its
timer is for the nearest end of a claim's lifespan: those that end together are ended by one batch.
"""

from __future__ import annotations

from typing import ClassVar

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

    has_object: ClassVar[bool] = False

    @workflow.init
    def __init__(self, carry: Carry) -> None:
        super().__init__(carry, BinderWorld(key=carry.key))
        self._asked = set(self.world.known.asked)  # the same claims: a tuple would be searched for each that asks
        self._given: set[Key] = set()  # who is looked at by the batch under way, and has not asked again since

    @workflow.run
    async def run(self, carry: Carry) -> None:
        """For ever."""
        await self.live()

    def observation(self, *, dry_run: bool = False) -> Action:
        """One batch."""
        if dry_run:
            return Serve(key=self.key, dry_run=True)
        asked = self.world.known.asked
        self._given = set(asked)
        return Serve(key=self.key, asked=asked)

    def observed(self) -> None:
        """Those who had asked are answered. While somebody still waits, the next batch follows at once."""
        self.world = self.world.learn(asked=tuple(key for key in self.world.known.asked if key not in self._given))
        self._asked = set(self.world.known.asked)
        self.dirty = self.dirty or self.world.more

    @workflow.signal(description="A claim that has no handle wants to be looked at.")
    def serve(self, claim: Key) -> None:
        """Remember it for the next batch."""
        self._given.discard(claim)
        if claim not in self._asked:
            self._asked.add(claim)
            self.tell(self.world.learn(asked=(*self.world.known.asked, claim)))
        self.wake()
