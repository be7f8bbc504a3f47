"""Lifecycles of resource claims. `domain/claims/` decides, within a pass.

| lifecycle | one for each |
|---|---|
| ClaimBinder | operator namespace: gives handles to claims |
| ResourceClaim | ResourceClaim; also reconciles its handle |
| ResourceHandle | ResourceHandle; acts while no claim reconciles the handle |
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
from domain.claims.phases import RETRYABLE
from domain.decision import Action
from domain.identity import Key
from workflows.lifecycle_declaration import lifecycle
from workflows.passes import Passes


@lifecycle("ClaimBinder", world=BinderWorld, observe=Serve)
class ClaimBinderWorkflow(Passes[BinderWorld]):
    """Gives handles to the claims of one operator namespace, one batch after another.

        wake, claim's request, expiry --> batch (claims that arrive within seconds join it) --> wait, or next batch

    A single binder handles one batch at a time, so no handle is given twice and no lock is needed. Changes of claims,
    free handles or providers wake it. The signal `serve` names a claim to be answered even if nothing has changed. The
    timer is for the nearest expiry of a claim; claims that expire together are deleted by one batch.
    """

    has_object: ClassVar[bool] = False

    def begin(self) -> None:
        self._queued = set(self.world.known.asked)  # the claims of `known.asked`, for quick look-ups
        self._given: set[Key] = set()  # claims in the current batch that have not asked again

    def observation(self, *, dry_run: bool = False) -> Action:
        if dry_run:
            return Serve(key=self.key, dry_run=True)
        requested = self.world.known.asked[:MOST_ASKED]
        self._given = set(requested)
        return Serve(key=self.key, asked=requested, seen=dict(self._seen))

    def observed(self) -> None:
        self.world = self.world.learn(asked=tuple(key for key in self.world.known.asked if key not in self._given))
        self._queued = set(self.world.known.asked)
        self.dirty = self.dirty or self.world.more or bool(self._queued)

    @workflow.signal(description="A claim that has no handle asks for one.")
    def serve(self, claim: Key) -> None:
        self.serve_all(Asked(claims=(claim,)))

    @workflow.signal(description="Claims that have no handle ask for one.")
    def serve_all(self, asked: Asked) -> None:
        self._given.difference_update(asked.claims)
        if new := tuple(claim for claim in asked.claims if claim not in self._queued):
            self._queued.update(new)
            self.replace_world(self.world.learn(asked=(*self.world.known.asked, *new)))
        self.wake()


@lifecycle("ResourceClaim", world=ObjectWorld, observe=PassClaim)
class ResourceClaimWorkflow(Passes[ObjectWorld]):
    """A ResourceClaim, from its first binding on.

        served --> wait for the nearest moment (expiry, refresh) or a wake --> pass --> wait ... --> ended

    Each pass is one activity over the claim, its handle and their resources. If the claim has no handle, the pass asks
    the binder, which answers with `served`. When the claim expires, the binder deletes it and signals `ended`.
    """

    retryable_phases = RETRYABLE

    @workflow.signal(description="The binder has handled the claim; this is the claim's state.")
    def served(self, world: ObjectWorld) -> None:
        self.replace_world(self.world.updated_by(world))

    @workflow.signal(description="The binder has deleted the claim at its expiry: it is gone.")
    def ended(self, world: ObjectWorld) -> None:
        """Adopt the result in any case: the claim is gone, so no newer result can exist."""
        self.replace_world(world.recall(self.world))


@lifecycle("ResourceHandle", world=ObjectWorld, observe=PassHandle)
class ResourceHandleWorkflow(Passes[ObjectWorld]):
    """A ResourceHandle, while it is not bound to a claim.

    While it is bound, the claim's lifecycle reconciles claim and handle, and the handle's lifecycle waits for a wake.
    """

    retryable_phases = RETRYABLE


@lifecycle("ResourcePool", world=PoolWorld, observe=PassPool)
class ResourcePoolWorkflow(Passes[PoolWorld]):
    """A ResourcePool: each pass counts its handles, creates missing ones, and writes the status."""

    retryable_phases = RETRYABLE
