"""The pass over a ResourceClaim. `domain/claims/claim_lifecycle.py` decides."""

from __future__ import annotations

from functools import partial

from temporalio import activity

from activities.activity_class import Activities
from activities.claims import metrics
from activities.claims.tools import Tools
from activities.inline_driver import effects_of
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.claim_deleted_with_handle import ClaimEnded, DeleteClaim, EndHandleAndClaim, FindAnother
from domain.claims.claim_lifecycle import ClaimRead, EndHandles, ReadClaim, decide, needs_its_handle
from domain.claims.claim_preparation import Claim
from domain.claims.expiry_batch import may_end
from domain.claims.handle_lifecycle import Found
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import JsonObject, is_deleting, name_of, text_at
from domain.claims.passes import ObjectWorld, PassClaim
from domain.claims.references import handle_name, holder_of
from domain.claims.timestamps import end_of_detached, end_of_handle
from domain.claims.writes import Stored
from engine.clock import now


class ClaimActivities(Activities):
    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._cache = tools.cache
        tools.reconciliation.effects |= effects_of(*self.all())

    @activity.defn(name=PassClaim.activity)
    async def pass_claim(self, look: PassClaim) -> ObjectWorld:
        return await self.look(look, cached=await self._cache.reached(look.versions))

    async def look(self, look: PassClaim, *, cached: bool = True) -> ObjectWorld:
        observe = partial(self._observe, look)
        _, world = await self._tools.reconciliation.carry_out(look, decide, observe, cached=cached)
        return world

    async def _observe(self, look: PassClaim, fresh: bool) -> Claim:
        key, cache, tools, moment = look.key, self._cache, self._tools, now()
        claim = await cache.own(RESOURCE_CLAIM, key, fresh=fresh)
        if claim is None:
            return Claim.of(key, now=moment, names=cache.names, handle={}, exists=False)
        handle: JsonObject | None = None
        if needs_its_handle(cache.names, claim, moment):
            place = (RESOURCE_HANDLE, cache.namespace, handle_name(claim))
            handle = await (cache.fresh if fresh else cache.find)(*place)
        hold = tools.hold(claim)
        if not hold and handle is not None and holder_of(handle) == name_of(claim):
            hold = f"its handle is {of_handle}" if (of_handle := tools.hold(handle)) else ""
        return Claim.of(
            key,
            now=moment,
            names=cache.names,
            handle=handle or {},
            claim=claim,
            claim_observed=claim,
            honoured=look.memory.honoured,
            hold=hold,
            plans_only=bool(hold) or look.dry_run,
            fresh=fresh,
            cadence=tools.cadence,
        )

    # --- effects ---

    @activity.defn(name=ReadClaim.activity)
    async def read_claim(self, action: ReadClaim) -> ClaimRead:
        """The result is empty if the claim must not be deleted with this handle."""
        claim = await self._cache.own(RESOURCE_CLAIM, action.key, fresh=True)
        if claim is None or is_deleting(claim) or self._tools.hold(claim):
            return ClaimRead()
        return ClaimRead(claim=claim if may_end(self._cache.names, claim, action.handle) else None)

    @activity.defn(name=FindAnother.activity)
    async def find_another_handle(self, action: FindAnother) -> Found:
        cache = self._cache
        for handle in cache.handles_of_claim(*name_of(action.claim)):
            there = await cache.fresh(RESOURCE_HANDLE, cache.namespace, text_at(handle, "metadata", "name"))
            if there is not None and not is_deleting(there):
                return Found(found=True)
        return Found()

    @activity.defn(name=DeleteClaim.activity)
    async def delete_claim(self, action: DeleteClaim) -> Stored:
        """Raises Conflict if the claim was recreated or, with `expired`, has changed since it was read."""
        if action.expired:
            metrics.expired(RESOURCE_CLAIM.name, end_of_detached(action.claim), now())
        return Stored(obj=await self._tools.writer.delete(RESOURCE_CLAIM, action.claim, as_seen=action.expired))

    @activity.defn(name=EndHandleAndClaim.activity)
    async def end_handle_and_claim(self, action: EndHandleAndClaim) -> ClaimEnded:
        """With `as_seen`, raises Conflict if the handle has changed since it was read."""
        ended = await self._tools.releasing.end(
            action.handle, as_seen=action.as_seen, claim=action.claim, states=action.states
        )
        if action.expired:
            metrics.expired(RESOURCE_CLAIM.name, end_of_handle(action.handle), now())
        refused = tuple(error.message for error in ended.refused)
        claim = ended.claim or await self._cache.own(RESOURCE_CLAIM, action.key, fresh=True)
        return ClaimEnded(why=action.why, refused=refused, claim=claim)

    @activity.defn(name=EndHandles.activity)
    async def end_handles(self, action: EndHandles) -> None:
        """Delete the claim's handles and their resources.

        An ignored or paused handle keeps its resources: only its own deletion is requested, so that no claim gets it.
        """
        cache, holder = self._cache, name_of(action.claim)
        names = {text_at(handle, "metadata", "name") for handle in cache.handles_of_claim(*holder)}
        for name in sorted((names | {handle_name(action.claim)}) - {""}):
            handle = await cache.fresh(RESOURCE_HANDLE, cache.namespace, name)
            if handle is None or holder_of(handle) != holder:
                continue
            if is_left_alone(cache.names, handle) or self._tools.hold(handle):
                await self._tools.writer.delete(RESOURCE_HANDLE, handle)
            else:
                await self._tools.releasing.end(handle)
