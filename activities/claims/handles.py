"""The pass over a ResourceHandle: what it observes and its effects. `domain/claims/handle_lifecycle.py` decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from temporalio import activity

from activities.claims import metrics
from activities.claims.duplicate_bindings import is_surplus
from activities.claims.tools import Tools
from activities.inline import Effect, Inline
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.handle_lifecycle import (
    AskBinder,
    Duplicate,
    EndHandle,
    FindDuplicate,
    Handle,
    HandleEnded,
    ObserveAgain,
    decide,
)
from domain.claims.objects import JsonObject, object_at, text_at
from domain.claims.passes import ObjectWorld, PassHandle
from domain.claims.references import holder_of, key_of
from domain.claims.timestamps import end_of_handle
from domain.claims.write_backoff import rest_in
from domain.identity import Key
from domain.notices import Notice
from engine.clock import now


class HandleActivities:
    """The ResourceHandle's activities."""

    def __init__(self, tools: Tools, ask_binder: Callable[[Key], Awaitable[None]]) -> None:
        self._tools = tools
        self._known = tools.known
        self._ask_binder = ask_binder

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_handle, self.ask_binder, self.find_duplicate, self.end_handle, self.observe_again)

    @activity.defn(name=PassHandle.activity)
    async def pass_handle(self, look: PassHandle) -> ObjectWorld:
        """One pass."""
        await self._known.settled()
        bundles, seen = self._tools.bundles, Handle.of(look.key, handle={})

        async def observe(fresh: bool) -> Handle:
            nonlocal seen
            seen = await self._observe(look, fresh=fresh)
            return seen

        async def tell(notice: Notice) -> None:
            await bundles.tell(seen, notice)

        effects: dict[str, Effect] = {
            **bundles.effects(),
            AskBinder.activity: self.ask_binder,
            FindDuplicate.activity: self.find_duplicate,
            EndHandle.activity: self.end_handle,
            ObserveAgain.activity: self.observe_again,
        }
        passed = await Inline(decide, effects, observe, tell).carry_out(look, look.memory)
        world = passed.world
        if world.answer is not None and not (world.hold or look.dry_run):
            await bundles.show_around(world)
        known = look.memory if world.answer is None else world.memory
        return passed.as_world(ObjectWorld, known=known, rest=rest_in(known.struggle, now(), passed.decision.deadline))

    async def _observe(self, look: PassHandle, *, fresh: bool) -> Handle:
        """The handle, and the claim that it names."""
        key, known = look.key, self._known
        place = (RESOURCE_HANDLE, key.namespace, key.name)
        handle = await known.fresh(*place) if fresh else known.get(*place)
        if handle is None or text_at(handle, "metadata", "uid") != key.uid:
            return Handle.of(key, handle=handle or {}, exists=False)
        hold, holder = self._tools.hold(handle), holder_of(handle)
        claim = await known.fresh(RESOURCE_CLAIM, *holder) if holder and not hold else None
        return Handle.of(
            key,
            now=now(),
            names=known.names,
            handle=handle,
            claim=claim,
            shown=claim is None,
            honoured=look.memory.honoured,
            hold=hold,
            fresh=fresh,
            holder=claim and key_of(RESOURCE_CLAIM, claim, self._tools.settings.cluster),
            claim_left_alone=claim is not None and self._left_alone(claim),
            cadence=self._tools.cadence,
        )

    def _left_alone(self, claim: JsonObject) -> bool:
        """Whether nothing looks after the claim, so that its handle has to look after itself."""
        ignored = self._known.names.ignore_label in object_at(claim, "metadata", "labels")
        return ignored or bool(self._tools.hold(claim))

    # --- effects ---

    @activity.defn(name=ObserveAgain.activity)
    async def observe_again(self, action: ObserveAgain) -> None:
        """Nothing: the observation follows."""

    @activity.defn(name=AskBinder.activity)
    async def ask_binder(self, action: AskBinder) -> None:
        """Ask the binder to look at the claim."""
        await self._ask_binder(action.claim)

    @activity.defn(name=FindDuplicate.activity)
    async def find_duplicate(self, action: FindDuplicate) -> Duplicate:
        """Whether the claim has another handle."""
        return Duplicate(found=await is_surplus(self._known, action.handle, action.claim))

    @activity.defn(name=EndHandle.activity)
    async def end_handle(self, action: EndHandle) -> HandleEnded:
        """Delete the handle's resources, its claim and itself.

        Raises:
            Conflict: it has changed since it was read.
        """
        ended = await self._tools.releasing.end(action.handle, as_seen=action.as_seen)
        if action.expired:
            moment = now()
            metrics.expired(RESOURCE_HANDLE.name, end_of_handle(action.handle) or moment, moment)
        return HandleEnded(why=action.why, refused=tuple(error.message for error in ended.refused))
