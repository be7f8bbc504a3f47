"""The lifecycle of a ResourceClaim in its own workflow: bound, detached, ignored or being deleted.

    ignored | being deleted | detached | before its start --> decided without validation
    no handle, or another claim's handle --> asks the binder
    its handle is gone or being deleted --> claim_deleted_with_handle.py
    bound --> validated (claim_preparation.py) --> reconciled (handle_reconciliation.py) --> ended, detached or settled

Irreversible steps are decided on objects from the API server, not from the cache.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from domain.claims import RESOURCE_CLAIM, phases
from domain.claims.claim_deleted_with_handle import deleting, ending, ends_with_handle
from domain.claims.claim_preparation import Claim, notices, to_validate, validate
from domain.claims.delayed_start import not_begun
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Halt
from domain.claims.expiry_batch import agreed_end
from domain.claims.finalizers import others_finalizers
from domain.claims.handle_lifecycle import RECONCILING, AskBinder, EndHandle, ObserveAgain, disturbed, refused
from domain.claims.handle_reconciliation import HandleEnded, reconciled
from domain.claims.ignore_label import is_left_alone, is_managed
from domain.claims.json_objects import GivenObject, JsonObject, is_deleting, name_of, object_at, without
from domain.claims.references import handle_name, holder_of, is_detached
from domain.claims.timestamps import ahead, end_of_detached, end_of_handle, passed
from domain.claims.writes import ClaimsAction, PutStatus, let_go
from domain.decision import Action, Decision
from domain.identity import Key
from domain.model import Model

# After this time without an answer, the claim asks the binder again.
BINDER_PATIENCE = timedelta(seconds=15)
BIND = "bind a free handle, or create one"


class ClaimRead(Model):
    claim: GivenObject | None = None


class ReadClaim(ClaimsAction):
    """Read the claim before it is deleted as expired: its end may have been extended, or its handle replaced."""

    activity: ClassVar[str] = "claims.read_claim"
    result: ClassVar[type[Model] | None] = ClaimRead
    reads: ClassVar[bool] = True

    key: Key
    handle: GivenObject

    def fold(self, world: Claim, read: ClaimRead) -> Claim:  # type: ignore[override]
        if (claim := read.claim) is None:
            return world.model_copy(update={"lost": True})
        seen = {"claim_before": claim, "claim_observed": claim, "claim_read": True}
        return world.asking(claim=claim).model_copy(update=seen)


class EndHandles(ClaimsAction):
    activity: ClassVar[str] = "claims.end_handles"
    title: ClassVar[str] = "delete the claim's handle and its resources"

    claim: GivenObject

    def fold(self, world: Claim, result: Model | None) -> Claim:  # type: ignore[override]
        return world.model_copy(update={"end": HandleEnded(why="its handle and resources are deleted")})


def needs_its_handle(names: DomainNames, claim: JsonObject, now: datetime) -> bool:
    goes_on = is_managed(names, claim) and not is_detached(claim)
    return goes_on and not_begun(claim, now) is None and bool(handle_name(claim))


def decide(world: Claim, now: datetime) -> Decision:
    claim, handle = world.claim, world.handle
    if (first := disturbed(world)) is not None:
        return first
    if not world.exists or claim is None:
        return phases.GONE
    if is_left_alone(world.names, claim):
        return phases.LEFT_ALONE.doing(*let_go(world.names, RESOURCE_CLAIM, claim))
    if is_deleting(claim):
        return _leaving(world, claim, now)
    if is_detached(claim):
        return _detached(world, claim, now)
    if world.end is not None:
        return refused(world.end, now)
    if (waiting := not_begun(claim, now)) is not None:
        return waiting
    if not handle_name(claim):
        return _unbound(world, now)
    if (ends := ends_with_handle(world, claim)) is not None:
        return ends
    if holder_of(handle) != name_of(claim) and not world.fresh:
        return RECONCILING.doing(ObserveAgain())
    if holder_of(handle) != name_of(claim):
        # The handle is authoritative: status fields that it does not confirm are dropped, and the binder finds
        # the claim's own handle.
        confirmed = without(object_at(claim, "status"), ("resourceHandle", "lifespan"))
        return _unbound(world, now, _with_status(claim, confirmed, "status without that handle"))
    if not world.fresh and not world.claim_read and passed(end_of_handle(handle), now):
        return RECONCILING.doing(ReadClaim(key=world.key, handle=handle))
    return _bound(world, claim, now)


def _bound(world: Claim, claim: JsonObject, now: datetime) -> Decision:
    first = to_validate(world)
    if first and (world.claim_plan is None or not (world.plans_only or world.unwritten)):
        reported = notices(world) if world.validated_again else ()
        return RECONCILING.model_copy(update={"actions": first, "notices": reported})
    if is_left_alone(world.names, world.handle):
        return phases.HANDLE_LEFT_ALONE.model_copy(update={"actions": first, "notices": notices(world)})
    if world.over:
        return _over(world, claim)
    decision = reconciled(world, _settled(world, now))
    actions = decision.actions or _validated_again(world)
    reported = (*notices(world), *decision.notices)
    return decision.model_copy(update={"actions": (*first, *actions), "notices": reported})


def _settled(world: Claim, now: datetime) -> Decision:
    plan, validation = world.plan, world.validation
    if world.answer is None:
        return RECONCILING
    if world.plans_only and world.halted:
        return phases.halted(validation, now + phases.SOON)
    if world.plans_only:
        return phases.would_stand(world.handle, plan, claimed=True)
    ends_at = ends_with_others(world, now)
    faults = (*((validation.fault,) if validation.fault else ()), *world.faults)
    if world.halted and validation.halt is not Halt.FAULT:
        faulty = validation.by_clock or bool(world.faults)
        look_at = world.cadence.next(now, by_clock=plan.by_clock, faulty=faulty)
        return phases.halted_holding(validation, plan, look_at, ends_at)
    look_at = world.cadence.next(now, by_clock=plan.by_clock, faulty=bool(faults))
    return phases.settled(world.handle, plan, faults, claimed=True, look_at=look_at, binder_ends_at=ends_at)


def ends_with_others(world: Claim, now: datetime) -> datetime | None:
    """The time at which the binder deletes the claim together with other expired claims; None if there is no such time,
    or it has passed.
    """
    return ahead(agreed_end(world.claim, world.handle), now)


def _validated_again(world: Claim) -> tuple[Action, ...]:
    """If this pass has changed the handle's status, which templates read, validate a refused claim again."""
    refused = world.halted and world.validation.halt is not Halt.FAULT
    if not refused or world.validated_again or world.answer is None or world.plans_only:
        return ()
    changed = object_at(world.handle, "status") != object_at(world.handle_before, "status")
    return (validate(world),) if changed else ()


def _over(world: Claim, claim: JsonObject) -> Decision:
    if not world.fresh and not (world.claim_read and world.expired):
        return RECONCILING.doing(ObserveAgain())
    if world.expired:
        seen = {"as_seen": True, "expired": True, "claim": claim, "states": world.states}
        return ending(world, "it has expired", **seen)
    if world.plan.auto_delete:
        return deleting(claim, "its autoDelete condition holds")
    link = {**object_at(claim, "status", "resourceHandle"), "detached": True}
    write = _with_status(claim, {**object_at(claim, "status"), "resourceHandle": link}, "detachment")
    return RECONCILING.doing(write)


def _unbound(world: Claim, now: datetime, *first: Action) -> Decision:
    awaiting_binder = phases.awaiting_binder(now + BINDER_PATIENCE)
    if first and not world.plans_only:
        return awaiting_binder.doing(*first)
    if world.plans_only:
        writes = (*first, *to_validate(world))
        if world.halted or world.claim_plan is None:
            decision = phases.halted(world.validation, now + phases.SOON) if world.halted else RECONCILING
            return decision.doing(*writes)
        return awaiting_binder.model_copy(update={"actions": writes, "planned": (BIND,)})
    return awaiting_binder if world.asked else awaiting_binder.doing(AskBinder(claim=world.key))


def _with_status(claim: JsonObject, status: JsonObject, what: str) -> PutStatus:
    return PutStatus(kind=RESOURCE_CLAIM, before=claim, after={**claim, "status": status}, what=what)


def _leaving(world: Claim, claim: JsonObject, now: datetime) -> Decision:
    """A claim that is being deleted does not wait until its handle is gone."""
    end = world.end
    if end is None:
        return phases.ending("it is being deleted").doing(EndHandles(claim=claim))
    if end.refused:
        return refused(end, now)
    if letting_go := let_go(world.names, RESOURCE_CLAIM, claim):
        return phases.ending(end.why).doing(*letting_go)
    if others := others_finalizers(world.names, claim):
        why = "its handle and resources are deleted; waits for other finalizers"
        return phases.ending(why, [f"finalizer {each}" for each in others])
    return phases.GONE


def _detached(world: Claim, claim: JsonObject, now: datetime) -> Decision:
    end = end_of_detached(claim)
    decision = phases.detached(claim, end)
    if world.plan.auto_detach and world.end is None:
        given_up = EndHandle(handle=world.handle, why="its claim was detached from it", states=world.states)
        return decision.doing(given_up)
    return deleting(claim, "it has expired", expired=True) if passed(end, now) else decision
