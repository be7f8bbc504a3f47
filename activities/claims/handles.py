"""The pass over a ResourceHandle. `domain/claims/handle_lifecycle.py` decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from temporalio import activity

from activities.activity_class import Activities
from activities.claims import metrics
from activities.claims.duplicate_bindings import is_surplus
from activities.claims.tools import Tools
from activities.inline_driver import effects_of
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.handle_lifecycle import AskBinder, EndHandle, FindDuplicate, Found, Handle, ObserveAgain, decide
from domain.claims.handle_reconciliation import HandleEnded
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import key_of
from domain.claims.passes import ObjectWorld, PassHandle
from domain.claims.references import holder_of
from domain.claims.timestamps import end_of_handle
from domain.identity import Key
from engine.clock import now


class HandleActivities(Activities):
    def __init__(self, tools: Tools, ask_binder: Callable[[Key], Awaitable[None]]) -> None:
        self._tools = tools
        self._cache = tools.cache
        self._ask_binder = ask_binder
        tools.reconciliation.effects |= effects_of(*self.all())

    @activity.defn(name=PassHandle.activity)
    async def pass_handle(self, look: PassHandle) -> ObjectWorld:
        cached = await self._cache.reached(look.versions)
        observe = partial(self._observe, look)
        _, world = await self._tools.reconciliation.carry_out(look, decide, observe, cached=cached)
        return world

    async def _observe(self, look: PassHandle, fresh: bool) -> Handle:
        key, cache = look.key, self._cache
        handle = await cache.own(RESOURCE_HANDLE, key, fresh=fresh)
        if handle is None:
            return Handle.of(key, now=now(), names=cache.names, handle={}, exists=False)
        hold, holder = self._tools.hold(handle), holder_of(handle)
        claim = await cache.fresh(RESOURCE_CLAIM, *holder) if holder and not hold else None
        left_alone = claim is not None and (is_left_alone(cache.names, claim) or bool(self._tools.hold(claim)))
        return Handle.of(
            key,
            now=now(),
            names=cache.names,
            handle=handle,
            claim=claim,
            shown=claim is None,
            honoured=look.memory.honoured,
            hold=hold,
            fresh=fresh,
            holder=claim and key_of(RESOURCE_CLAIM, claim, self._tools.settings.cluster),
            claim_left_alone=left_alone,
            cadence=self._tools.cadence,
        )

    # --- effects ---

    @activity.defn(name=ObserveAgain.activity)
    async def observe_again(self, action: ObserveAgain) -> None: ...
    @activity.defn(name=AskBinder.activity)
    async def ask_binder(self, action: AskBinder) -> None:
        await self._ask_binder(action.claim)

    @activity.defn(name=FindDuplicate.activity)
    async def find_duplicate(self, action: FindDuplicate) -> Found:
        return Found(found=await is_surplus(self._cache, action.handle, action.claim))

    @activity.defn(name=EndHandle.activity)
    async def end_handle(self, action: EndHandle) -> HandleEnded:
        """With `as_seen`, raises Conflict if the handle has changed since it was read."""
        ended = await self._tools.releasing.end(
            action.handle, as_seen=action.as_seen, claim=action.claim, states=action.states
        )
        if action.expired:
            metrics.expired(RESOURCE_HANDLE.name, end_of_handle(action.handle), now())
        return HandleEnded(why=action.why, refused=tuple(error.message for error in ended.refused))
