"""The lifecycle of a ResourceHandle. While the handle is bound, its claim's lifecycle reconciles the handle.

    being deleted | its claim is gone, detached or has another handle | expired --> resources and handle deleted
    bound to a claim --> nothing; wake the binder if the claim names no handle
    free, or its claim has the label `ignore` or is paused --> reconciled (handle_reconciliation.py)

Irreversible steps are decided on objects from the API server, not from the cache.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.claims import RESOURCE_HANDLE, phases
from domain.claims.finalizers import others_finalizers
from domain.claims.handle_reconciliation import HandleEnded, HandleWorld, TakeBack, reconciled
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import GivenObject, is_deleting, object_at, text_at
from domain.claims.references import handle_name, is_detached
from domain.claims.timestamps import end_of_handle, passed
from domain.claims.writes import ClaimsAction, let_go
from domain.decision import Decision, Outcome
from domain.identity import Key
from domain.model import Model

RECONCILING = Decision(phase="Reconciling", outcome=Outcome.WORKING, why="its resources are read and evaluated")


class Handle(HandleWorld):
    holder: Key | None = None  # the key of the claim that the handle names; None if that claim does not exist
    claim_left_alone: bool = False  # the claim is ignored or on hold, so this lifecycle reconciles the handle
    duplicate: bool | None = None  # Perdure bound the handle, but the claim has another; None if not looked up


class ObserveAgain(ClaimsAction):
    activity: ClassVar[str] = "claims.observe_again"
    reads: ClassVar[bool] = True
    observed_after: ClassVar[bool] = True


class AskBinder(ClaimsAction):
    activity: ClassVar[str] = "claims.ask_binder"

    claim: Key

    @property
    def summary(self) -> str:
        return f"wake the binder for {self.claim.path}"

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        return world.model_copy(update={"asked": True})


class Found(Model):
    found: bool = False


class Finding(ClaimsAction):
    result: ClassVar[type[Model] | None] = Found
    reads: ClassVar[bool] = True
    fact: ClassVar[str]

    claim: GivenObject

    def fold(self, world: HandleWorld, result: Found) -> HandleWorld:  # type: ignore[override]
        return world.model_copy(update={self.fact: result.found})


class FindDuplicate(Finding):
    activity: ClassVar[str] = "claims.find_duplicate"
    fact: ClassVar[str] = "duplicate"

    handle: GivenObject


class EndHandle(ClaimsAction):
    activity: ClassVar[str] = "claims.end_handle"
    title: ClassVar[str] = "delete the handle and its resources"
    result: ClassVar[type[Model] | None] = HandleEnded

    handle: GivenObject
    why: str
    as_seen: bool = False  # delete only if the handle has not changed since it was read
    expired: bool = False
    claim: GivenObject | None = None  # the claim, if the pass has read it
    states: tuple[GivenObject | None, ...] = ()  # the resources, if the pass has read them

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        return world.model_copy(update={"end": result})


def disturbed(world: HandleWorld) -> Decision | None:
    if world.lost:
        return RECONCILING.doing(ObserveAgain())
    if world.begun and (not world.exists or not world.handle or is_deleting(world.handle)):
        return RECONCILING.doing(TakeBack(handle=world.begun_upon, definitions=world.begun))
    return None


def decide(world: Handle, now: datetime) -> Decision:
    handle = world.handle
    if (first := disturbed(world)) is not None:
        return first
    if not world.exists:
        return phases.GONE
    if is_left_alone(world.question.names, handle):
        return phases.LEFT_ALONE.doing(*let_go(world.question.names, RESOURCE_HANDLE, handle))
    if world.end is not None:
        return _ended(world, world.end, now)
    if is_deleting(handle):
        return _ending(world, "it is being deleted")
    if object_at(handle, "spec", "resourceClaim") and (held := _held(world)) is not None:
        return held
    return _free(world, now)


def _held(world: Handle) -> Decision | None:
    handle, claim = world.handle, world.claim
    carried = phases.carried(handle)
    if world.hold:
        return carried
    if not world.fresh and (claim is None or is_detached(claim)) and not world.claim_left_alone:
        return carried.doing(ObserveAgain())
    if claim is None or world.holder is None:
        return _ending(world, "its claim does not exist any more")
    if world.claim_left_alone:
        return None
    if is_detached(claim):
        return _ending(world, "its claim was detached from it")
    named = handle_name(claim)
    if not named and not world.asked:
        return carried.doing(AskBinder(claim=world.holder))
    if named in ("", text_at(handle, "metadata", "name")) or world.duplicate is False:
        return carried
    if not world.fresh:
        return carried.doing(ObserveAgain())
    if world.duplicate is None:
        return carried.doing(FindDuplicate(handle=handle, claim=claim))
    return _ending(world, f"its claim has another handle, {named}", as_seen=True)


def _free(world: Handle, now: datetime) -> Decision:
    claimed = world.claim is not None
    # On hold, the end in the spec counts, without an evaluation.
    if world.expired or (world.hold and passed(end_of_handle(world.handle), world.question.now)):
        if not world.fresh:
            return RECONCILING.doing(ObserveAgain())
        return _ending(world, "it has expired", as_seen=True, expired=True)
    if world.answer is None:
        return reconciled(world, RECONCILING)
    if world.hold:
        return reconciled(world, phases.would_stand(world.handle, world.plan, claimed=claimed))
    look_at = world.cadence.next(now, by_clock=world.plan.by_clock, faulty=bool(world.faults))
    decision = phases.settled(world.handle, world.plan, world.faults, claimed=claimed, look_at=look_at)
    return reconciled(world, decision)


def _ending(world: Handle, why: str, *, as_seen: bool = False, expired: bool = False) -> Decision:
    end = EndHandle(handle=world.handle, why=why, as_seen=as_seen, expired=expired)
    return phases.ending(why).doing(end)


def refused(end: HandleEnded, now: datetime) -> Decision:
    """Observe again soon: a part of the deletion was refused, or no wake will report its completion."""
    why = f"{end.why}; {end.refused[0]}" if end.refused else end.why
    return phases.ending(why, end.refused, now + phases.SOON)


def _ended(world: Handle, end: HandleEnded, now: datetime) -> Decision:
    if end.refused:
        return refused(end, now)
    if others := others_finalizers(world.question.names, world.handle):
        return phases.ending(f"{end.why}; waits for other finalizers", [f"finalizer {each}" for each in others])
    return phases.GONE
