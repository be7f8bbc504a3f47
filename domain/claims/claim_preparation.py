"""The first half of a claim's pass: validate the claim, then write its metadata, defaults and status.

    validated --> metadata and defaults written --> status written --> its handle is bound or reconciled
    '-> approval pending, refused, at fault: nothing reaches the handle

The binder writes the status together with the handle's name: both appear at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, Self

from pydantic import SkipValidation

from domain.claims import RESOURCE_CLAIM
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import ClaimPlan, Fault, Halt
from domain.claims.events import validation_events
from domain.claims.finalizers import in_hand
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.json_objects import GivenObject, JsonObject, object_at, only, with_added, with_spec
from domain.claims.stalled_condition import with_own_stalled
from domain.claims.writes import ClaimsAction, PutObject, PutStatus
from domain.decision import Action, World
from domain.identity import Key
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal

CLAIM_REFUSED = "ClaimRefused"
_PREPARED, _VALIDATED = "metadata and defaults", "validated status"
_REFUSED = {_PREPARED: "what the provider adds to the claim", _VALIDATED: "the status of the claim"}


class Claim(HandleWorld):
    """A claim and its handle during a pass; `handle` is `{}` while the claim has none."""

    claim_observed: GivenObject = {}
    claim_read: bool = False  # the expired claim was read from the API server; the handle is from the cache
    claim_plan: Annotated[ClaimPlan | None, SkipValidation] = None  # the claim's evaluation; None before it
    validated_again: bool = False  # validated twice in this pass, the second time from the written statuses
    plans_only: bool = False  # on hold, or a dry run: nothing is written; later steps use the desired objects
    # If the handle in the claim's status does not exist: whether another handle names the claim; None if not looked up.
    has_another: bool | None = None
    binds: bool = False  # the binder makes this pass
    handle_hold: str = ""  # why the handle must not be changed
    made: bool = False  # the handle was created in this pass
    tries: dict[str, int] = {}  # failed attempts to bind, by name of the free handle
    unusable: tuple[Fault, ...] = ()  # why free handles cannot be bound
    none_free: bool = False
    salt: int = 0  # how many names for a new handle were already taken

    @property
    def names(self) -> DomainNames:
        return self.question.names

    @property
    def own(self) -> JsonObject:
        return self.claim_observed if self.plans_only else self.question.claim or {}

    @property
    def validation(self) -> ClaimPlan:
        return self.claim_plan or ClaimPlan(status=object_at(self.claim, "status"))

    @property
    def halted(self) -> bool:
        return self.validation.halt is not Halt.NONE

    @property
    def validated(self) -> JsonObject:
        return {**self.own, "status": self.validation.status}

    def stored(self, kind: str, obj: JsonObject) -> HandleWorld:
        after = super().stored(kind, obj)
        begins = kind == RESOURCE_CLAIM.name and not self.read
        return after.model_copy(update={"claim_before": obj}) if begins else after

    def at_fault(self, fault: Fault) -> Claim:
        status = {**self.validation.status, **only(object_at(self.own, "status"), "conditions")}
        return self.model_copy(update={"claim_plan": faulty_plan(status, fault, self.question.now)})

    def with_refused(self, write: PutObject, refusal: Refusal) -> Claim | None:
        """The claim with a fault if the API server refuses its metadata or its validated status; else None."""
        before = self.validation.fault
        shown = before is not None and before.reason == CLAIM_REFUSED
        lasting = refusal.type in (ErrorType.INVALID, ErrorType.DENIED)
        if shown or not lasting or write.what not in _REFUSED:
            return None
        fault = Fault(reason=CLAIM_REFUSED, message=f"the API server refuses {_REFUSED[write.what]}: {refusal.message}")
        accepted = self if write.what == _PREPARED else self.model_copy(update={"claim_plan": None})
        return accepted.at_fault(fault).asking(push=False).model_copy(update={"conditional": False})

    @property
    def unwritten(self) -> bool:
        """Whether a write of this module was refused in this pass."""
        return not self.question.shown

    def with_unwritten(self, write: PutObject) -> Self:
        """The world if the claim cannot be written: its handle is reconciled and ends on time, but gets no edits of the
        claim, and first readiness restarts no lifespan.
        """
        if write.what not in _REFUSED:
            return self
        return self.asking(push=False, shown=False).model_copy(update={"conditional": False})

    def recall(self, before: World) -> Self:
        world = super().recall(before)
        return world.asking(shown=before.question.shown) if isinstance(before, Claim) else world


class Validated(Model):
    plan: Annotated[ClaimPlan, SkipValidation] = ClaimPlan()
    assigned: tuple[str, ...] = ()


class Validate(ClaimsAction):
    activity: ClassVar[str] = "claims.validate_claim"
    title: ClassVar[str] = "validate the claim"
    result: ClassVar[type[Model] | None] = Validated
    reads: ClassVar[bool] = True

    key: Key
    at: datetime
    claim: GivenObject
    handle: GivenObject | None = None

    def fold(self, world: Claim, answer: Validated) -> Claim:  # type: ignore[override]
        accepted = answer.plan.halt is Halt.NONE and not world.unwritten
        spec = object_at(self.claim, "spec")
        answers: dict[str, object] = {"assigned": answer.assigned, "push": accepted}
        if world.plans_only:
            answers["claim"] = {**self.claim, "status": answer.plan.status}
        changes: dict[str, object] = {
            "claim_plan": answer.plan,
            "conditional": accepted and any(object_at(spec, field) for field in ("autoDelete", "autoDetach")),
        }
        if world.claim_plan is not None:
            changes |= {"validated_again": True, "read": False, "answer": None, "wrote": ()}
        return world.asking(**answers).model_copy(update=changes)


def to_validate(world: Claim) -> tuple[Action, ...]:
    plan, claim = world.claim_plan, world.own
    if plan is None:
        return (validate(world),)
    if world.read and not (world.plans_only or world.unwritten):
        return ()
    after = with_added(in_hand(world.names, RESOURCE_CLAIM, claim), annotations=plan.annotations, labels=plan.labels)
    after = after if plan.resources is None else with_spec(after, resources=[*plan.resources])
    first = world.to_write(PutObject(kind=RESOURCE_CLAIM, before=claim, after=after, what=_PREPARED))
    if (first and not world.plans_only) or (world.binds and not world.halted):
        return first
    after = {**claim, "status": plan.status}
    status = PutStatus(kind=RESOURCE_CLAIM, before=claim, after=after, what="validated status")
    return (*first, *world.to_write(status))


def validate(world: Claim) -> Validate:
    return Validate(key=world.key, at=world.question.now, claim=world.own, handle=world.handle or None)


def notices(world: Claim) -> tuple[Notice, ...]:
    if world.claim_plan is None or (world.binds and not world.halted):
        return ()
    return tuple(validation_events(world.claim_observed, world.claim_plan))


def faulty_plan(status: JsonObject, fault: Fault, now: datetime) -> ClaimPlan:
    return ClaimPlan(status=with_own_stalled(status, fault, now, bound=False), halt=Halt.FAULT, fault=fault)
