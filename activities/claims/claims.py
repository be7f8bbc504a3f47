"""The pass over a ResourceClaim that has its own workflow to look after it: bound, detached, ignored or on its way out.

gone | held, or its handle is | ignored | being deleted | not begun | detached --> each its own short way
no handle --> the binder is asked
bound --> judged (claim_validation.py) --> reconciled (handle_reconciliation.py) --> ended, detached or settled
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from temporalio import activity

from activities.claims import metrics
from activities.claims.evaluation import Beyond
from activities.claims.handle_reconciliation import Bundle
from activities.claims.tools import Tools, binder_ends_at, world_of
from activities.conflicts import until_undisturbed
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, standing
from domain.claims.durations import UnreadableMoment
from domain.claims.finalizers import finalizers_of
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.objects import JsonObject, object_at, text_at, value_at
from domain.claims.passes import ObjectWorld, PassClaim
from domain.claims.plans import Halt
from domain.claims.standing import SOON
from domain.claims.timestamps import end_of_detached, end_of_handle, passed, start_of
from domain.decision import Decision
from domain.identity import Key
from engine.clock import now
from engine.errors import ApiError

# A binder that was asked and has not answered by then is asked again.
BINDER_PATIENCE = timedelta(seconds=15)


class ClaimActivities:
    """The ResourceClaim's activity."""

    def __init__(self, tools: Tools, ask_binder: Callable[[Key], Awaitable[None]]) -> None:
        self._tools = tools
        self._known = tools.known
        self._writer = tools.writer
        self._ask_binder = ask_binder

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_claim,)

    @activity.defn(name=PassClaim.activity)
    async def pass_claim(self, look: PassClaim) -> ObjectWorld:
        """One pass."""
        await self._known.settled()
        return await self.look(look)

    async def look(self, look: PassClaim) -> ObjectWorld:
        """One pass; another one at once where what was read was written meanwhile."""

        async def attempt(number: int) -> ObjectWorld:
            began = now()
            world = await self._pass(look if not number else look.model_copy(update={"woken": True}))
            return world.model_copy(update={"at": began})

        return await until_undisturbed(look.key, attempt)

    async def _pass(self, look: PassClaim) -> ObjectWorld:
        key, moment = look.key, now()
        claim = await self._read(key, fresh=look.woken)
        if claim is None or text_at(claim, "metadata", "uid") != key.uid:
            return ObjectWorld(key=key, exists=False, decision=standing.GONE)
        hold = self._tools.hold(claim)
        if hold or look.dry_run:
            return await self._would(look, claim, hold, moment)
        if self._known.names.ignore_label in object_at(claim, "metadata", "labels"):
            await self._writer.let_go(RESOURCE_CLAIM, claim)
            return world_of(key, standing.LEFT_ALONE)
        if value_at(claim, "metadata", "deletionTimestamp"):
            return await self._end(key, claim)
        if value_at(claim, "status", "resourceHandle", "detached") is True:
            return await self._detached(key, claim, moment)
        if (waiting := self._not_begun(claim, moment)) is not None:
            return world_of(key, waiting)
        return await self._held(look, claim, moment)

    async def _read(self, key: Key, *, fresh: bool) -> JsonObject | None:
        if fresh:
            return await self._known.fresh(RESOURCE_CLAIM, key.namespace, key.name)
        return self._known.get(RESOURCE_CLAIM, key.namespace, key.name)

    @staticmethod
    def _not_begun(claim: JsonObject, moment: datetime) -> Decision | None:
        try:
            start = start_of(claim)
        except UnreadableMoment:
            return None  # told as a fault when the claim is judged
        return standing.not_begun(start) if start > moment else None

    async def _held(self, look: PassClaim, claim: JsonObject, moment: datetime) -> ObjectWorld:
        """A claim that says it has a handle."""
        key, name = look.key, text_at(claim, "status", "resourceHandle", "name")
        if not name:
            return await self._unbound(key, moment)
        handle = await self._handle(name, fresh=look.woken)
        if handle is None and not await self._has_another(key):
            await self._writer.delete(RESOURCE_CLAIM, claim)
            return await self._again(look)
        holder = object_at(handle, "spec", "resourceClaim")
        if handle is None or (text_at(holder, "namespace"), text_at(holder, "name")) != (key.namespace, key.name):
            # The handle is the truth. What it says not, the claim only believes: the binder finds the right one.
            believed = {n: v for n, v in object_at(claim, "status").items() if n not in ("resourceHandle", "lifespan")}
            await self._writer.put_status(RESOURCE_CLAIM, claim, believed)
            return await self._unbound(key, moment)
        if hold := self._tools.hold(handle):
            return await self._would(look, claim, f"its handle is {hold}", moment)
        if value_at(handle, "metadata", "deletionTimestamp"):
            if self._known.names.ignore_label in object_at(handle, "metadata", "labels"):
                return world_of(key, standing.HANDLE_LEFT_ALONE)
            return await self._end_handle(look, handle, "its handle is being deleted")
        if not look.woken and passed(end_of_handle(handle), moment):
            return await self._settle_at_end(look, handle, moment)
        return await self._settle(look, claim, handle, moment)

    async def _settle_at_end(self, look: PassClaim, handle: JsonObject, moment: datetime) -> ObjectWorld:
        """The known end has come: the claim is read, as it may ask for another; the handle ends only as it is known.

        So what cannot be undone is done on what the API server says now, with one read less at every end.
        """
        claim = await self._known.fresh(RESOURCE_CLAIM, look.key.namespace, look.key.name)
        link = object_at(claim, "status", "resourceHandle")
        gone = claim is None or text_at(claim, "metadata", "uid") != look.key.uid
        going = bool(value_at(claim, "metadata", "deletionTimestamp")) or link.get("detached") is True
        labelled = self._known.names.ignore_label in object_at(claim, "metadata", "labels")
        held = text_at(link, "name") == text_at(handle, "metadata", "name")
        if claim is None or gone or going or labelled or not held or self._tools.hold(claim):
            return await self._again(look)
        return await self._settle(look, claim, handle, moment, read=True)

    async def _handle(self, name: str, *, fresh: bool) -> JsonObject | None:
        known = None if fresh else self._known.get(RESOURCE_HANDLE, self._known.namespace, name)
        return known or await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)

    async def _has_another(self, key: Key) -> bool:
        """Whether some handle says that it holds the claim: a wrong name was written into the status."""
        for handle in self._known.handles_of_claim(key.namespace, key.name):
            there = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, text_at(handle, "metadata", "name"))
            if there is not None and not value_at(there, "metadata", "deletionTimestamp"):
                return True
        return False

    async def _unbound(self, key: Key, moment: datetime) -> ObjectWorld:
        await self._ask_binder(key)
        return world_of(key, standing.asked_binder(moment + BINDER_PATIENCE))

    async def _settle(
        self,
        look: PassClaim,
        claim: JsonObject,
        handle: JsonObject,
        moment: datetime,
        *,
        read: bool = False,
        judged_before: bool = False,
    ) -> ObjectWorld:
        """`read`: the claim is as the API server has it; `judged_before`: this pass has refused it already."""
        key = look.key
        judged = await self._tools.judging.judge(key, claim, moment, handle=handle)
        ignored = self._known.names.ignore_label in object_at(handle, "metadata", "labels")
        if ignored:
            return world_of(key, standing.HANDLE_LEFT_ALONE)
        bundle = Bundle(key, handle, judged.claim, assigned=judged.assigned, push=not judged.halted, known=look.memory)
        settled = await self._tools.bundles.settle(bundle, moment)
        if settled.over:
            if not look.woken and not (read and settled.expired):
                return await self._again(look)
            return await self._over(look, settled, moment)
        ends_at = binder_ends_at(settled)
        if judged.halted and judged.plan.halt is not Halt.FAULT:
            if (
                settled.claim
                and object_at(settled.handle, "status") != object_at(handle, "status")
                and not judged_before
            ):
                # It was refused by statuses that are not so any more; our own write of them wakes nothing.
                return await self._settle(look, settled.claim, settled.handle, moment, read=read, judged_before=True)
            look_at = self._tools.next_look(settled, moment, faulty=judged.plan.by_clock)
            decision = standing.halted_holding(judged.plan, settled.plan, look_at, ends_at)
            return world_of(key, decision, known=settled.memory)
        faults = (*((judged.plan.fault,) if judged.plan.fault else ()), *settled.faults)
        look_at = self._tools.next_look(settled, moment, faulty=bool(faults))
        decision = standing.settled(
            settled.handle,
            settled.plan,
            faults,
            claimed=True,
            look_at=look_at,
            binder_ends_at=ends_at,
        )
        return world_of(key, decision, known=settled.memory)

    async def _over(self, look: PassClaim, settled: HandleWorld, moment: datetime) -> ObjectWorld:
        """The end has come, or a condition of the claim says so."""
        claim, handle = settled.claim, settled.handle
        if claim is None:
            raise RuntimeError(f"{look.key} was settled without its claim")
        if settled.expired and settled.plan.end is not None:
            world = await self._end_handle(look, handle, "it has expired", settled)
            metrics.expired(RESOURCE_CLAIM.name, settled.plan.end, moment)
            return world
        if settled.plan.auto_delete:
            await self._writer.delete(RESOURCE_CLAIM, claim)
            return await self._again(look)
        link = {**object_at(claim, "status", "resourceHandle"), "detached": True}
        claim = await self._writer.put_status(
            RESOURCE_CLAIM, claim, {**object_at(claim, "status"), "resourceHandle": link}
        )
        await self._tools.releasing.end(handle, states=settled.states)
        return await self._detached(look.key, claim, moment)

    # --- ends ---

    async def _end_handle(
        self, look: PassClaim, handle: JsonObject, why: str, settled: HandleWorld | None = None
    ) -> ObjectWorld:
        """End the handle, with it the claim, which then lets go of itself.

        `settled` is what this very pass has read and found to be over: it ends only as it was seen.
        """
        ended = (
            await self._tools.releasing.end(handle)
            if settled is None
            else await self._tools.releasing.end(handle, as_seen=True, claim=settled.claim, states=settled.states)
        )
        claim = ended.claim or await self._known.fresh(RESOURCE_CLAIM, look.key.namespace, look.key.name)
        if claim is None or text_at(claim, "metadata", "uid") != look.key.uid:
            return ObjectWorld(key=look.key, exists=False, decision=standing.GONE)
        if value_at(claim, "metadata", "deletionTimestamp") and not ended.refused:
            return await self._let_go(look.key, claim)
        return world_of(look.key, _refused(why, ended.refused))

    async def _end(self, key: Key, claim: JsonObject) -> ObjectWorld:
        """A claim that is being deleted: its handle ends with it, and it waits for nothing."""
        names = {text_at(claim, "status", "resourceHandle", "name")} - {""}
        known = self._known.handles_of_claim(key.namespace, key.name)
        names |= {text_at(handle, "metadata", "name") for handle in known}
        for name in sorted(names):
            handle = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)
            holder = object_at(handle, "spec", "resourceClaim")
            if handle is None or (text_at(holder, "namespace"), text_at(holder, "name")) != (key.namespace, key.name):
                continue
            # What cannot be asked to go is the handle's to go on with: the claim disappears all the same. A handle that
            # is left alone or paused is only marked, which keeps it from a new claim of the name.
            if self._known.names.ignore_label in object_at(handle, "metadata", "labels") or self._tools.hold(handle):
                await self._writer.delete(RESOURCE_HANDLE, handle)
            else:
                await self._tools.releasing.end(handle)
        return await self._let_go(key, claim)

    async def _let_go(self, key: Key, claim: JsonObject | None) -> ObjectWorld:
        if claim is not None and text_at(claim, "metadata", "uid") == key.uid:
            await self._writer.let_go(RESOURCE_CLAIM, claim)
            others = [f for f in finalizers_of(claim) if f not in self._known.names.our_finalizers]
            if others:
                why = "its handle and resources are deleted; waits for other finalizers"
                return world_of(key, standing.ending(why, [f"finalizer {each}" for each in others]))
        return ObjectWorld(key=key, exists=False, decision=standing.GONE)

    async def _detached(self, key: Key, claim: JsonObject, moment: datetime) -> ObjectWorld:
        """A claim without resources, until its end."""
        end = end_of_detached(claim)
        if not passed(end, moment):
            return world_of(key, standing.detached(claim, end))
        metrics.expired(RESOURCE_CLAIM.name, end or moment, moment)
        return await self._let_go(key, await self._writer.delete(RESOURCE_CLAIM, claim, as_seen=True))

    async def _again(self, look: PassClaim) -> ObjectWorld:
        """The pass once more, on what the API server says now."""
        return await self._pass(look.model_copy(update={"woken": True}))

    # --- plans ---

    async def _would(self, look: PassClaim, claim: JsonObject, hold: str, moment: datetime) -> ObjectWorld:
        """What a pass would do."""
        decision, planned = await would(self._tools, look, claim, moment)
        if passed(decision.deadline, moment):  # nothing is done at it, and what ends the hold wakes
            decision = decision.model_copy(update={"deadline": moment + self._tools.settings.claims_interval})
        return ObjectWorld(key=look.key, hold=hold, known=look.memory, decision=standing.held(decision, planned))


async def would(tools: Tools, look: PassClaim, claim: JsonObject, moment: datetime) -> tuple[Decision, Sequence[str]]:
    """How a claim stands, and what a pass would write, a line each."""
    if value_at(claim, "metadata", "deletionTimestamp"):
        return standing.ending("it is being deleted"), ["delete its handle and its resources, drop its finalizer"]
    name = text_at(claim, "status", "resourceHandle", "name")
    handle = await tools.known.fresh(RESOURCE_HANDLE, tools.known.namespace, name) if name else None
    plan, assigned = await tools.judging.plan(look.key, claim, moment, handle=handle)
    planned = []
    if plan.status != object_at(claim, "status"):
        planned.append("write the claim's status")
    if plan.halt is not Halt.NONE:
        return standing.halted(plan, moment + SOON), planned
    if handle is None:
        return standing.asked_binder(moment + BINDER_PATIENCE), [*planned, "bind a free handle, or create one"]
    bundle = Bundle(look.key, handle, {**claim, "status": plan.status}, assigned=assigned, push=True, known=look.memory)
    try:
        handle_plan = await tools.bundles.plan(bundle, moment)
    except Beyond as beyond:
        return standing.faulty(beyond.fault, moment + SOON), planned
    if handle_plan.spec != object_at(handle, "spec"):
        planned.append(f"write the spec of ResourceHandle {name}")
    planned += [f"create {text_at(d, 'kind')} {text_at(d, 'metadata', 'name')}" for _, d in handle_plan.creations]
    planned += [f"patch resource {each.index}: {len(each.patch)} operations" for each in handle_plan.updates]
    if passed(handle_plan.end, moment):
        planned = ["delete claim, handle and resources: the claim has expired"]
    return standing.would_stand(handle, handle_plan, claimed=True), planned


def _refused(why: str, refused: Sequence[ApiError]) -> Decision:
    if not refused:
        return standing.ending(why, look_at=now() + SOON)
    return standing.ending(f"{why}; {refused[0].message}", [error.message for error in refused], look_at=now() + SOON)
