"""The lifecycles of resource claims. What should happen is decided in `domain/claims/`, within a pass.

| lifecycle | one for each |
|---|---|
| ClaimBinder | operator namespace: gives handles to claims |
| ResourceClaim | ResourceClaim; looks after its handle, too |
| ResourceHandle | ResourceHandle; acts while no claim holds the handle |
| ResourcePool | ResourcePool |
"""

from __future__ import annotations

from typing import ClassVar

from temporalio import workflow

from domain.claims.passes import (
    MOST_ASKED,
    Asked,
    BinderWorld,
    ObjectWorld,
    PassClaim,
    PassHandle,
    PassPool,
    PoolWorld,
    Serve,
)
from domain.claims.standing import RETRYABLE
from domain.decision import Action
from domain.identity import Key
from workflows.lifecycle import lifecycle
from workflows.passes import Passes


@lifecycle("ClaimBinder", world=BinderWorld, observe=Serve)
class ClaimBinderWorkflow(Passes[BinderWorld]):
    """The binder gives handles to claims, for a whole operator namespace, one batch after the other.

        wake, a claim asks, an expiry --> batch (claims are served as they come, for seconds) --> wait, or next batch

    There is one binder, and one batch at a time, so that every handle is given once without any lock. It is woken when
    claims, free handles or providers change; `serve` names a claim that wants to be served whatever has changed. Its
    timer is for the nearest expiry of a claim: claims that expire together are ended by one batch.
    """

    has_object: ClassVar[bool] = False

    def begin(self) -> None:
        """Index those who have asked."""
        self._asked = set(self.world.known.asked)  # the same claims: a tuple would be searched for each that asks
        self._given: set[Key] = set()  # who is served by the batch under way, and has not asked again since

    def observation(self, *, dry_run: bool = False) -> Action:
        """One batch."""
        if dry_run:
            return Serve(key=self.key, dry_run=True)
        asked = self.world.known.asked[:MOST_ASKED]
        self._given = set(asked)
        return Serve(key=self.key, asked=asked)

    def observed(self) -> None:
        """Those whom the batch was given are answered. While a claim still waits, the next batch follows at once."""
        self.world = self.world.learn(asked=tuple(key for key in self.world.known.asked if key not in self._given))
        self._asked = set(self.world.known.asked)
        self.dirty = self.dirty or self.world.more or bool(self._asked)

    @workflow.signal(description="A claim that has no handle wants to be served.")
    def serve(self, claim: Key) -> None:
        """Remember it for the next batch."""
        self.serve_all(Asked(claims=(claim,)))

    @workflow.signal(description="Claims that have no handle want to be served.")
    def serve_all(self, asked: Asked) -> None:
        """Remember them for the next batches."""
        self._given.difference_update(asked.claims)
        if new := tuple(claim for claim in asked.claims if claim not in self._asked):
            self._asked.update(new)
            self.tell(self.world.learn(asked=(*self.world.known.asked, *new)))
        self.wake()


@lifecycle("ResourceClaim", world=ObjectWorld, observe=PassClaim)
class ResourceClaimWorkflow(Passes[ObjectWorld]):
    """A ResourceClaim: opened by the binder once it is served, it looks after the claim from then on.

        served --> wait for the nearest moment (expiry, refresh) or a wake --> pass --> wait ... --> ended

    Each pass is one activity over the claim, its handle and their resources. While the claim has no handle a pass asks
    the binder, which answers with `served`. At its expiry the binder ends the claim, and signals `ended`.
    """

    retryable_phases = RETRYABLE

    @workflow.signal(description="The binder has served the claim: this is how it stands.")
    def served(self, world: ObjectWorld) -> None:
        """Take it over, unless something newer is known."""
        self.tell(self.world.heard(world))

    @workflow.signal(description="The binder has ended the claim at its expiry: it is gone.")
    def ended(self, world: ObjectWorld) -> None:
        """Take it over: nothing that is known of it is newer than that it is gone."""
        self.tell(world.recall(self.world))


@lifecycle("ResourceHandle", world=ObjectWorld, observe=PassHandle)
class ResourceHandleWorkflow(Passes[ObjectWorld]):
    """A ResourceHandle, while it is free and after its claim is gone or left alone.

    While a claim holds the handle, the claim's lifecycle looks after both; this one then waits for a wake.
    """

    retryable_phases = RETRYABLE


@lifecycle("ResourcePool", world=PoolWorld, observe=PassPool)
class ResourcePoolWorkflow(Passes[PoolWorld]):
    """A ResourcePool: each pass counts its handles, makes those that lack, and writes the status."""

    retryable_phases = RETRYABLE
