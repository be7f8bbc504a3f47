"""The pass over a ResourceHandle that no claim looks after: a free one, or one whose claim is gone or left alone.

A handle that a claim holds is looked after by that claim's workflow, together with the claim; this pass then only sees
that it is so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from temporalio import activity

from activities.claims import metrics
from activities.claims.evaluation import Beyond
from activities.claims.handle_reconciliation import Bundle
from activities.claims.surplus import is_surplus
from activities.claims.tools import SOON, Tools, world_of
from activities.conflicts import until_undisturbed
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, standing
from domain.claims.moments import end_of_handle, passed
from domain.claims.objects import JsonObject, object_at, text_at, value_at
from domain.claims.passes import ObjectWorld, PassHandle
from domain.claims.references import key_of
from domain.decision import Decision
from domain.identity import Key
from engine.clock import now


class HandleActivities:
    """The ResourceHandle's activity."""

    def __init__(self, tools: Tools, ask_binder: Callable[[Key], Awaitable[None]]) -> None:
        self._tools = tools
        self._known = tools.known
        self._ask_binder = ask_binder

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_handle,)

    @activity.defn(name=PassHandle.activity)
    async def pass_handle(self, look: PassHandle) -> ObjectWorld:
        """One pass; another one at once where somebody has written what was read."""
        await self._known.settled()
        afresh = look.model_copy(update={"woken": True})
        return await until_undisturbed(look.key, lambda number: self._pass(afresh if number else look))

    async def _pass(self, look: PassHandle) -> ObjectWorld:
        key, moment = look.key, now()
        handle = await self._read(key, fresh=look.woken)
        if handle is None or text_at(handle, "metadata", "uid") != key.uid:
            return ObjectWorld(key=key, exists=False, decision=standing.GONE)
        hold = self._tools.hold(handle)
        if hold or look.dry_run:
            return await self._would(look, handle, hold, moment)
        if self._tools.known.names.ignore_label in object_at(handle, "metadata", "labels"):
            await self._tools.writer.let_go(RESOURCE_HANDLE, handle)
            return world_of(key, standing.LEFT_ALONE)
        if value_at(handle, "metadata", "deletionTimestamp"):
            return await self._end(key, handle, "it is being deleted")
        if object_at(handle, "spec", "resourceClaim"):
            return await self._held(look, handle, moment)
        return await self._settle(look, Bundle(key, handle, known=look.memory), moment)

    async def _read(self, key: Key, *, fresh: bool) -> JsonObject | None:
        if fresh:
            return await self._known.fresh(RESOURCE_HANDLE, key.namespace, key.name)
        return self._known.get(RESOURCE_HANDLE, key.namespace, key.name)

    async def _held(self, look: PassHandle, handle: JsonObject, moment: datetime) -> ObjectWorld:
        """A handle that names a claim."""
        holder = object_at(handle, "spec", "resourceClaim")
        namespace, name = text_at(holder, "namespace"), text_at(holder, "name")
        claim = await self._known.fresh(RESOURCE_CLAIM, namespace, name)
        if claim is None:
            return await self._end(look.key, handle, "its claim does not exist any more")
        if self._left_alone(claim):
            return await self._settle(look, Bundle(look.key, handle, claim, shown=False, known=look.memory), moment)
        if value_at(claim, "status", "resourceHandle", "detached") is True:
            return await self._end(look.key, handle, "its claim was detached from it")
        named = text_at(claim, "status", "resourceHandle", "name")
        if not named:
            await self._ask_binder(key_of(RESOURCE_CLAIM, claim, self._tools.settings.cluster))
        elif named != look.key.name:
            if not look.woken:
                return await self._pass(look.model_copy(update={"woken": True}))
            if await is_surplus(self._known, handle, claim):
                return await self._end(look.key, handle, f"its claim has handle {named}", as_seen=True)
        return world_of(look.key, standing.carried(handle))

    def _left_alone(self, claim: JsonObject) -> bool:
        """Whether nobody looks after the claim, so that its handle has to look after itself."""
        ignored = self._tools.known.names.ignore_label in object_at(claim, "metadata", "labels")
        return ignored or bool(self._tools.hold(claim))

    async def _settle(self, look: PassHandle, bundle: Bundle, moment: datetime) -> ObjectWorld:
        settled = await self._tools.bundles.settle(bundle, moment)
        if settled.expired:
            if not look.woken:
                return await self._pass(look.model_copy(update={"woken": True}))
            end = end_of_handle(settled.handle)
            metrics.expired(RESOURCE_HANDLE.name, end or moment, moment)
            return await self._end(look.key, settled.handle, "it has expired", as_seen=True)
        decision = standing.settled(
            settled.handle,
            settled.plan,
            settled.faults,
            claimed=bundle.claim is not None,
            look_at=self._tools.next_look(settled, moment),
        )
        return world_of(look.key, decision, known=settled.memory)

    async def _end(self, key: Key, handle: JsonObject, why: str, *, as_seen: bool = False) -> ObjectWorld:
        ended = await self._tools.releasing.end(handle, as_seen=as_seen)
        if ended.refused:
            waits = [error.message for error in ended.refused]
            return world_of(key, standing.ending(f"{why}; {waits[0]}", waits, now() + SOON))
        finalizers = value_at(handle, "metadata", "finalizers")
        ours = self._tools.known.names.our_finalizers
        others = [str(f) for f in finalizers if f not in ours] if isinstance(finalizers, list) else []
        if others:
            return world_of(
                key, standing.ending(f"{why}; waits for other finalizers", [f"finalizer {f}" for f in others])
            )
        return ObjectWorld(key=key, exists=False, decision=standing.GONE)

    async def _would(self, look: PassHandle, handle: JsonObject, hold: str, moment: datetime) -> ObjectWorld:
        """What a pass would do, for a free handle; one that a claim holds is in the claim's plan."""
        decision, planned = await self._planned(look, handle, moment)
        return ObjectWorld(key=look.key, hold=hold, known=look.memory, decision=standing.held(decision, planned))

    async def _planned(self, look: PassHandle, handle: JsonObject, moment: datetime) -> tuple[Decision, Sequence[str]]:
        if object_at(handle, "spec", "resourceClaim"):
            return standing.carried(handle), []
        if value_at(handle, "metadata", "deletionTimestamp") or passed(end_of_handle(handle), moment):
            return standing.ending("it has expired"), ["delete its resources and itself"]
        try:
            plan = await self._tools.bundles.plan(Bundle(look.key, handle, known=look.memory), moment)
        except Beyond as beyond:
            return standing.faulty(beyond.fault, moment + SOON), []
        planned = [f"create {text_at(d, 'kind')} {text_at(d, 'metadata', 'name')}" for _, d in plan.creations]
        planned += [f"patch resource {each.index}: {len(each.patch)} operations" for each in plan.updates]
        return standing.would_stand(handle, plan, claimed=False), planned
