"""A claim as a pass sees it, and the first half of each pass: what its own object has to be is found out and written.

    validated --> metadata and defaults written --> status written --> its handle is reconciled, or it gets one
                                                        '-> approval pending, refused, at fault: nothing reaches the handle

The binder leaves the status to the step that gives the claim its handle, so that both are seen together.
"""  # noqa: E501 - a picture

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import SkipValidation

from domain.claims import RESOURCE_CLAIM, standing
from domain.claims.conditions import with_own_stalled
from domain.claims.domain_names import DomainNames
from domain.claims.durations import UnreadableMoment
from domain.claims.finalizers import in_hand
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.objects import (
    GivenObject,
    JsonObject,
    object_at,
    objects_at,
    only,
    text_at,
    with_metadata,
    with_spec,
)
from domain.claims.plans import ClaimPlan, Fault, Halt
from domain.claims.standing import shown_validation_errors
from domain.claims.timestamps import start_of
from domain.claims.writes import ClaimsAction, PutObject, PutStatus
from domain.decision import Action, Decision
from domain.identity import Key
from domain.model import Model
from domain.notices import Notice, warning

VALIDATION_FAILED = "ValidationFailed"  # the reason of an Event


class Claim(HandleWorld):
    """A claim as a pass has brought it, with the handle that it has; `handle` is empty while there is none.

    Attributes:
        claim_observed: the claim as it was observed.
        claim_read: the claim is as the API server has it, the handle as it is known: its end has come.
        claim_plan: what the claim's own object has to be; None while that is not known.
        validated_again: the plan was made a second time in this pass, upon the statuses that it has written.
        plans_only: nothing is written, so what would follow upon a write is found out without it.
        has_another: whether a handle holds the claim that names one which does not exist; None while that is not known.
        binds: the pass is the binder's.
        handle_hold: why nothing may be done with the handle.
        made: the handle was made for the claim in this pass.
        tries: how often a free handle could not be had, by name.
        unusable: why free handles could not be bound as they are written.
        none_free: no free handle fits.
        salt: how many names for a new handle were taken.
    """

    claim_observed: GivenObject = {}
    claim_read: bool = False
    claim_plan: Annotated[ClaimPlan | None, SkipValidation] = None
    validated_again: bool = False
    plans_only: bool = False
    has_another: bool | None = None
    binds: bool = False
    handle_hold: str = ""
    made: bool = False
    tries: dict[str, int] = {}
    unusable: tuple[Fault, ...] = ()
    none_free: bool = False
    salt: int = 0

    @property
    def names(self) -> DomainNames:
        """The names under the installation's domain."""
        return self.question.names

    @property
    def own(self) -> JsonObject:
        """The claim as it is stored."""
        return self.claim_observed if self.plans_only else self.question.claim or {}

    @property
    def validation(self) -> ClaimPlan:
        """What the claim's own object has to be; nothing else than it is, where that is not known."""
        return self.claim_plan or ClaimPlan(status=object_at(self.claim, "status"))

    @property
    def halted(self) -> bool:
        """Whether nothing is bound, created or pushed to the handle."""
        return self.validation.halt is not Halt.NONE

    @property
    def validated(self) -> JsonObject:
        """The claim with the status that it has to have, whether that is written or not."""
        return {**self.own, "status": self.validation.status}

    def stored(self, kind: str, obj: JsonObject) -> HandleWorld:
        """What was written before the handle is evaluated is what that begins with."""
        after = super().stored(kind, obj)
        begins = kind == RESOURCE_CLAIM.name and not self.read
        return after.model_copy(update={"claim_before": obj}) if begins else after

    def at_fault(self, fault: Fault) -> Claim:
        """The claim with a fault that was found after its plan was made."""
        status = {**self.validation.status, **only(object_at(self.own, "status"), "conditions")}
        return self.model_copy(update={"claim_plan": faulty_plan(status, fault, self.question.now)})


class Validated(Model):
    """What the claim's own object has to be, and the providers of its entries (list mode)."""

    plan: Annotated[ClaimPlan, SkipValidation] = ClaimPlan()
    assigned: tuple[str, ...] = ()


class Validate(ClaimsAction):
    """Find out what the claim's own object has to be."""

    activity: ClassVar[str] = "claims.validate_claim"
    title: ClassVar[str] = "validate the claim"
    result: ClassVar[type[Model] | None] = Validated
    reads: ClassVar[bool] = True

    key: Key
    at: datetime
    claim: GivenObject
    handle: GivenObject | None = None

    def fold(self, world: Claim, result: Model | None) -> Claim:  # type: ignore[override]
        """The handle is evaluated upon it; anew where it was before."""
        answer = result if isinstance(result, Validated) else Validated()
        accepted = answer.plan.halt is Halt.NONE
        spec = object_at(self.claim, "spec")
        asked: dict[str, object] = {"assigned": answer.assigned, "push": accepted}
        if world.plans_only:
            asked["claim"] = {**self.claim, "status": answer.plan.status}
        changes: dict[str, object] = {
            "claim_plan": answer.plan,
            "question": world.question.model_copy(update=asked),
            "conditional": accepted and any(object_at(spec, field) for field in ("autoDelete", "autoDetach")),
        }
        if world.claim_plan is not None:
            changes |= {"validated_again": True, "read": False, "answer": None, "wrote": ()}
        return world.model_copy(update=changes)


def to_validate(world: Claim) -> tuple[Action, ...]:
    """What is to be done next until the claim's own object is as it has to be."""
    plan, claim = world.claim_plan, world.own
    if plan is None:
        return (validate(world),)
    if world.read and not world.plans_only:
        return ()
    prepared = _prepared(world.names, claim, plan)
    first = world.to_write(
        PutObject(kind=RESOURCE_CLAIM, before=claim, after=prepared, what="metadata and defaults"),
    )
    if (first and not world.plans_only) or (world.binds and not world.halted):
        return first
    after = {**claim, "status": plan.status}
    status = PutStatus(kind=RESOURCE_CLAIM, before=claim, after=after, what="validated status")
    return (*first, *world.to_write(status))


def validate(world: Claim) -> Validate:
    """The question after the claim as it is stored, and after its handle."""
    return Validate(key=world.key, at=world.question.now, claim=world.own, handle=world.handle or None)


def not_begun(claim: JsonObject, now: datetime) -> Decision | None:
    """How a claim stands whose start lies ahead; None once it has come. An unreadable one is a fault, found later."""
    try:
        start = start_of(claim)
    except UnreadableMoment:
        return None
    return standing.not_begun(start) if start > now else None


def notices(world: Claim) -> tuple[Notice, ...]:
    """What a person is told once the claim's status says something new."""
    if world.claim_plan is None or (world.binds and not world.halted):
        return ()
    return tuple(_notices(world.claim_observed, world.claim_plan))


def faulty_plan(status: JsonObject, fault: Fault, now: datetime) -> ClaimPlan:
    """The plan of a claim of which only its fault is known."""
    return ClaimPlan(status=with_own_stalled(status, fault, now, bound=False), halt=Halt.FAULT, fault=fault)


def _notices(before: JsonObject, plan: ClaimPlan) -> Iterator[Notice]:
    if plan.halt is Halt.INVALID:
        errors = shown_validation_errors(plan.status)
        if errors and errors != shown_validation_errors(object_at(before, "status")):
            yield warning(VALIDATION_FAILED, "; ".join(errors))
    if plan.fault is not None and plan.fault.message not in _messages(objects_at(before, "status", "conditions")):
        yield warning(plan.fault.reason, plan.fault.message)


def _messages(conditions: Sequence[JsonObject]) -> str:
    return " ".join(text_at(each, "message") for each in conditions)


def _prepared(names: DomainNames, claim: JsonObject, plan: ClaimPlan) -> JsonObject:
    """The claim as one that we look after, with what its plan adds."""
    prepared = in_hand(names, RESOURCE_CLAIM, claim)
    for part, added in (("annotations", plan.annotations), ("labels", plan.labels)):
        if added:
            prepared = with_metadata(prepared, **{part: {**object_at(prepared, "metadata", part), **added}})
    return prepared if plan.resources is None else with_spec(prepared, resources=[*plan.resources])
