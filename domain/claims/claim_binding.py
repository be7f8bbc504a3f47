"""The binder's pass over a claim without a handle: validate it, bind a free handle or create one, and reconcile both.

    before its start | on hold --> nothing
    validated --> approval pending, values refused, faults: shown in the status
          '-> a handle that names the claim | the best free handle | a new handle --> status --> the handle's resources

Binding requires the free handle's resourceVersion, so two binders cannot bind it twice. A new handle's name derives
from the claim's uid, so a repeated creation finds the existing handle.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import SkipValidation

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, phases
from domain.claims.claim_lifecycle import BIND, ends_with_others
from domain.claims.claim_preparation import Claim, notices, to_validate
from domain.claims.delayed_start import not_begun
from domain.claims.durations import UnreadableDuration, parse_duration
from domain.claims.evaluator_interface import ClaimPlan, Fault, HandlePlan
from domain.claims.handle_lifecycle import RECONCILING, ObserveAgain, disturbed
from domain.claims.handle_matching import Wanted
from domain.claims.handle_reconciliation import begun_with, reconciled
from domain.claims.ignore_label import is_left_alone, is_managed
from domain.claims.json_objects import GivenObject, JsonObject, object_at, objects_at, text_at, value_at, without
from domain.claims.lifespan_end import bound_status
from domain.claims.references import handle_name, reference_to
from domain.claims.stalled_condition import with_own_stalled
from domain.claims.timestamps import born, end_of_handle
from domain.claims.writes import ClaimsAction, PutStatus
from domain.decision import Decision
from domain.identity import Key
from domain.model import Model

# At most this many names are tried for a handle. A name ends in five characters of an alphabet of 27: among a thousand
# claims, the probability that two get the same name is one in thirty.
MOST_SALTS = 8
# How many times a claim tries to bind the same handle while other clients write to the handle.
MOST_TRIES = 3
# The longest time from the start of a binding to the creation of its new handle, including the clock difference to the
# API server.
MADE_WITHIN = timedelta(seconds=10)

_WITH_HANDLE = "status with its handle"


def wanted_of(plan: ClaimPlan) -> Wanted:
    return Wanted(plan.wanted, pool=plan.wanted_pool, provider=plan.provider)


class OfClaim(ClaimsAction):
    key: Key
    at: datetime
    claim: GivenObject
    plan: Annotated[ClaimPlan, SkipValidation]


class Taken(Model):
    name: str = ""  # the chosen handle, empty if none matches
    handle: GivenObject | None = None  # None if the chosen handle is no longer available
    unusable: Fault | None = None  # why the chosen handle cannot be bound
    fault: Fault | None = None  # why no handle can be bound


class TakeHandle(OfClaim):
    activity: ClassVar[str] = "claims.take_handle"
    title: ClassVar[str] = "bind a free handle"
    result: ClassVar[type[Model] | None] = Taken

    passed_over: tuple[str, ...] = ()

    def fold(self, world: Claim, taken: Taken) -> Claim:  # type: ignore[override]
        if taken.fault is not None:
            return world.at_fault(taken.fault)
        if taken.handle is not None:
            return _with_handle(world, taken.handle)
        if taken.unusable is not None:
            unusable = (*world.unusable, taken.unusable)
            after = world.model_copy(update={"unusable": unusable, "tries": {**world.tries, taken.name: MOST_TRIES}})
            # If several handles cannot be bound, the handles are not the cause: try no more.
            return _without_free(after) if len(unusable) >= MOST_TRIES else after
        if not taken.name:
            return _without_free(world)
        return world.model_copy(update={"tries": {**world.tries, taken.name: world.tries.get(taken.name, 0) + 1}})


class Created(Model):
    handle: GivenObject | None = None  # None if another object has this name
    plan: Annotated[HandlePlan | None, SkipValidation] = None  # the evaluation that gave the handle's body
    fault: Fault | None = None  # why no handle can be created


class CreateHandle(OfClaim):
    """Create a handle, or adopt an earlier attempt's handle."""

    activity: ClassVar[str] = "claims.create_handle"
    title: ClassVar[str] = "create a handle for the claim"
    result: ClassVar[type[Model] | None] = Created

    salt: int = 0
    assigned: tuple[str, ...] = ()
    push: bool = False

    def fold(self, world: Claim, created: Created) -> Claim:  # type: ignore[override]
        if created.fault is not None:
            return world.at_fault(created.fault)
        if created.handle is not None:
            return _with_new_handle(world, created.handle, created.plan)
        if world.salt + 1 < MOST_SALTS:
            return world.model_copy(update={"salt": world.salt + 1})
        return world.at_fault(Fault(reason="NameTaken", message=f"all {MOST_SALTS} names for its handle are taken"))


def _with_handle(world: Claim, handle: JsonObject) -> Claim:
    return world.asking(handle=handle).model_copy(update={"handle_before": handle})


def _with_new_handle(world: Claim, handle: JsonObject, plan: HandlePlan | None) -> Claim:
    states = tuple(None for _ in objects_at(handle, "spec", "resources"))
    known: dict[str, object] = {"made": True, "states_known": True}
    if plan is not None and not world.conditional:  # autoDelete and autoDetach read a status that is not written yet
        known["answer"] = begun_with(plan, handle, world.names)
    return _with_handle(world, handle).asking(states=states).model_copy(update=known)


def _without_free(world: Claim) -> Claim:
    plan = world.validation
    if plan.creation is None and (fault := next(iter(world.unusable), plan.fault)) is not None:
        return world.at_fault(fault)
    return world.model_copy(update={"none_free": True})


def decide(world: Claim, now: datetime) -> Decision:
    claim = world.claim
    if (interrupted := disturbed(world)) is not None:
        return interrupted
    if not world.exists or claim is None or not is_managed(world.names, claim):
        return phases.GONE
    if world.hold:
        return phases.awaiting_binder(now).model_copy(update={"deadline": None, "planned": (BIND,)})
    if not world.handle and handle_name(world.own):
        if not world.fresh:
            return RECONCILING.doing(ObserveAgain())
        # The claim was bound, but its handle is gone or being deleted: the claim's own workflow deletes the claim.
        return phases.awaiting_binder(now).model_copy(update={"phase": "Bound", "why": "its handle is being deleted"})
    if (waiting := not_begun(claim, now)) is not None:
        return waiting
    if first := to_validate(world):
        return RECONCILING.doing(*first)
    if not world.handle:
        return _halted(world, now + world.cadence.faulty) if world.halted else _without_handle(world, now)
    if not world.read and (first := world.to_write(_bound(world))):
        return RECONCILING.doing(*first)
    if world.halted:
        # The claim's own workflow reconciles the handle, which expires although the claim is not accepted.
        return _halted(world, now).model_copy(update={"deadline": now, "at_deadline": "observe again"})
    if is_left_alone(world.names, world.handle) or world.handle_hold:
        # During a restore, the claim may be resumed before its handle; both are reconciled once both are resumed.
        as_it_is = HandlePlan(handle_status=object_at(world.handle, "status"))
        return _settled(world.model_copy(update={"answer": as_it_is}), now)
    if world.over:
        # The claim's own workflow deletes the claim, after reading it from the API server.
        return phases.awaiting_binder(now).model_copy(update={"phase": "Bound", "why": "it has expired"})
    return reconciled(world, RECONCILING if world.answer is None else _settled(world, now))


def lacks(world: Claim) -> Wanted | None:
    """What the claim requires of a free handle; None if it waits for none, or if its requirements depend on time."""
    waits = world.none_free and not world.handle and not world.halted and world.validation.creation is None
    return wanted_of(world.validation) if waits and not world.validation.by_clock else None


def _halted(world: Claim, look_at: datetime) -> Decision:
    return phases.halted(world.validation, look_at).model_copy(update={"notices": notices(world)})


def _settled(world: Claim, now: datetime) -> Decision:
    look_at = world.cadence.next(now, by_clock=world.plan.by_clock, faulty=bool(world.faults))
    ends_at = ends_with_others(world, now)
    return phases.settled(world.handle, world.plan, world.faults, claimed=True, look_at=look_at, binder_ends_at=ends_at)


def _without_handle(world: Claim, now: datetime) -> Decision:
    plan, binding = world.validation, phases.awaiting_binder(now)
    common = {"key": world.key, "at": world.question.now, "claim": world.validated, "plan": plan}
    if not world.none_free:
        passed_over = tuple(name for name, tries in world.tries.items() if tries >= MOST_TRIES)
        return binding.doing(TakeHandle(passed_over=passed_over, **common))
    if plan.creation is not None:
        answers = {"assigned": world.question.assigned, "push": world.question.push}
        return binding.doing(CreateHandle(salt=world.salt, **answers, **common))
    # No handle may be created, so the claim waits for a free handle.
    status = with_own_stalled(plan.status, None, world.question.now, bound=False)
    write = PutStatus(kind=RESOURCE_CLAIM, before=world.own, after={**world.own, "status": status})
    waits = phases.waits_for_free(plan, now + world.cadence.faulty)
    return waits.doing(*world.to_write(write))


def _bound(world: Claim) -> PutStatus:
    """The status write that adds handle and lifespan. A later write adds the rendered maximum lifespans."""
    claim, handle, now = world.validated, world.handle, world.question.now
    ready = value_at(handle, "status", "ready") is True
    lifespan = bound_status(end_of_handle(handle), ready=ready, now=_bound_at(claim, handle, now))
    status: JsonObject = {
        **object_at(claim, "status"),
        "resourceHandle": reference_to(world.names, RESOURCE_HANDLE, handle),
        "lifespan": {**lifespan, **without(object_at(claim, "status", "lifespan"), ("end",))},
    }
    return PutStatus(kind=RESOURCE_CLAIM, before=world.own, after={**claim, "status": status}, what=_WITH_HANDLE)


def _bound_at(claim: JsonObject, handle: JsonObject, now: datetime) -> datetime:
    """When the claim got its handle: now or, after an interrupted attempt, a time computed from the handle's end."""
    end, default = end_of_handle(handle), text_at(handle, "spec", "lifespan", "default")
    if end is None or not default or value_at(claim, "spec", "lifespan", "end"):
        return now
    try:
        began = end - parse_duration(default)
    except (UnreadableDuration, OverflowError):
        return now  # the default is a template or too long, so the start cannot be derived
    return began if max(born(handle), born(claim)) <= began + MADE_WITHIN and began < now else now
