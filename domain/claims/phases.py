"""The phases of claims, handles, pools and the binder, each with its explanation and its next deadline."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from domain.claims.evaluator_interface import ClaimPlan, Fault, Halt, HandlePlan
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.pool_replenishment import PoolHandle, Wants
from domain.decision import Decision, Outcome, earliest
from domain.refusal import FIRST_RETRY, LONGEST_RETRY, doubled

BINDING, STALLED, DELETING, BUG = "Binding", "Stalled", "Deleting", "Bug"
# How long after its end a claim waits for the binder to delete it; then its own workflow deletes it. With a shorter
# time, all claims of a batch would start passes of their own, which take longer than the batch.
LEFT_TO_BINDER = timedelta(seconds=20)
# The pause after a failed deletion.
SOON = timedelta(seconds=10)
# A person can retry in these phases, because a correction may cause no event.
RETRYABLE = (STALLED, DELETING, BUG)

GONE = Decision(phase="Deleted", outcome=Outcome.GONE, why="it does not exist any more")
HANDLE_LEFT_ALONE = Decision(
    phase="Ignored", outcome=Outcome.SETTLED, why="the handle's ignore label excludes the claim from reconciliation"
)
LEFT_ALONE = Decision(phase="Ignored", outcome=Outcome.SETTLED, why="its ignore label excludes it from reconciliation")


def awaiting_binder(look_at: datetime) -> Decision:
    return Decision(
        phase=BINDING,
        outcome=Outcome.WORKING,
        why="it has no handle yet; the binder was asked for one",
        waits_for=("the binder",),
        deadline=look_at,
        at_deadline="ask again",
    )


def halted(plan: ClaimPlan, look_at: datetime) -> Decision:
    """The decision on an unapproved, invalid or faulty claim. `look_at`: when to evaluate it again without an event."""
    if plan.halt is Halt.APPROVAL:
        state = text_at(plan.status, "approval", "state")
        message = text_at(plan.status, "approval", "message")
        rejected = state == "rejected"
        return Decision(
            phase="Rejected" if rejected else "ApprovalPending",
            outcome=Outcome.WAITING,
            why=f"its provider requires approval: {state}" + (f": {message}" if message else ""),
            waits_for=("approval",),
        )
    if plan.halt is Halt.INVALID:
        return Decision(
            phase="Invalid",
            outcome=Outcome.WAITING,
            why=f"the spec is not accepted: {'; '.join(shown_validation_errors(plan.status)) or 'see its status'}",
            waits_for=("a corrected spec",),
            **_observing_again(look_at if plan.by_clock else None),
        )
    return faulty(plan.fault or Fault(reason="Stalled", message="see its status"), look_at)


def halted_holding(
    plan: ClaimPlan, held: HandlePlan, look_at: datetime, binder_ends_at: datetime | None = None
) -> Decision:
    deadline = earliest([held.end, look_at])
    at_deadline = _ends(claimed=True) if deadline == held.end else "observe again"
    patience = _patience(deadline, binder_ends_at)
    return halted(plan, look_at).model_copy(
        update={"deadline": deadline, "at_deadline": at_deadline, "patience": patience}
    )


def faulty(fault: Fault, look_at: datetime) -> Decision:
    return Decision(
        phase=STALLED,
        outcome=Outcome.WAITING,
        why=f"{fault.reason}: {fault.message}",
        waits_for=("a change of the claim or of its provider",),
        **_observing_again(look_at),
    )


def waits_for_free(plan: ClaimPlan, look_at: datetime) -> Decision:
    return Decision(
        phase="WaitingForHandle",
        outcome=Outcome.WAITING,
        why=f"no free handle matches, and no handle is created: {plan.no_creation or 'creation is disabled'}",
        waits_for=("a free ResourceHandle that matches",),
        **_observing_again(look_at if plan.by_clock else None),
    )


def settled(
    handle: JsonObject,
    plan: HandlePlan,
    faults: Sequence[Fault],
    *,
    claimed: bool,
    look_at: datetime | None,
    binder_ends_at: datetime | None = None,
) -> Decision:
    """The decision on a handle and its claim once the resources are reconciled as far as possible.

    `binder_ends_at`: when the binder deletes both; None if their own lifecycle does so.
    """
    status = plan.handle_status
    name, end = text_at(handle, "metadata", "name"), plan.end
    deadline = earliest([end, plan.look_at, look_at])
    at_deadline = _ends(claimed=claimed) if deadline is not None and deadline == end else "observe again"
    of = f"of ResourceHandle {name}" if claimed else "of this free handle"
    common: dict[str, Any] = {
        "deadline": deadline,
        "at_deadline": at_deadline,
        "patience": _patience(deadline, binder_ends_at),
        "owner": _owner(handle),
    }
    if faults:
        return Decision(
            phase=STALLED,
            outcome=Outcome.WAITING,
            why="; ".join(f"{fault.reason}: {fault.message}" for fault in faults)[:1000],
            waits_for=("a change that corrects the fault",),
            **common,
        )
    if status.get("healthy") is False:
        return Decision(
            phase="Unhealthy",
            outcome=Outcome.WAITING,
            why="; ".join((f"a resource {of} is not healthy", *plan.unevaluated))[:1000],
            waits_for=_unready(status),
            **common,
        )
    if status.get("ready") is True:
        lives = f"; it expires at {end:%Y-%m-%d %H:%M:%S} UTC" if end else ""
        return Decision(phase="Ready", outcome=Outcome.SETTLED, why=f"its resources are ready{lives}", **common)
    waits = _unready(status)
    return Decision(
        phase="Bound" if claimed else "Provisioning",
        outcome=Outcome.WAITING if waits else Outcome.SETTLED,
        why="; ".join((*plan.waits, *plan.unevaluated))[:1000]
        or (f"holds the resources {of}" if claimed else "its resources are not ready"),
        waits_for=waits,
        **common,
    )


def would_stand(handle: JsonObject, plan: HandlePlan, *, claimed: bool) -> Decision:
    undone = plan.model_copy(update={"look_at": None})
    return settled(handle, undone, plan.faults, claimed=claimed, look_at=None)


def carried(handle: JsonObject) -> Decision:
    holder = object_at(handle, "spec", "resourceClaim")
    claim = f"ResourceClaim/{text_at(holder, 'namespace')}/{text_at(holder, 'name')}"
    why = f"bound to {claim}, whose lifecycle reconciles both"
    return Decision(phase="Bound", outcome=Outcome.SETTLED, why=why, owner=claim)


def detached(claim: JsonObject, end: datetime | None) -> Decision:
    return Decision(
        phase="Detached",
        outcome=Outcome.SETTLED,
        why="detached from its handle" + ("" if end else "; it does not expire"),
        deadline=end,
        at_deadline="delete the claim" if end else "",
    )


def serving(free: int, waiting: int, oldest: str, next_end: datetime | None) -> Decision:
    return Decision(
        phase="Serving" if waiting else "Idle",
        outcome=Outcome.SETTLED,
        why=f"{free} handles are free, {waiting} claims wait to be bound",
        waits_for=(f"{waiting} claims to be bound, the oldest since {oldest}",) if waiting else (),
        deadline=next_end,
        at_deadline="delete claims that have expired" if next_end else "",
    )


def not_bound(type_: str, message: str, failures: int, now: datetime) -> Decision:
    return Decision(
        phase=BUG if type_ == "Bug" else STALLED,
        outcome=Outcome.WAITING,
        why=f"{type_}: {message}"[:1000],
        waits_for=("another try",),
        deadline=now + max(doubled(failures, FIRST_RETRY, LONGEST_RETRY), SOON / 2),
        at_deadline="try again",
    )


def ending(why: str, waits_for: Sequence[str] = (), look_at: datetime | None = None) -> Decision:
    return Decision(
        phase=DELETING,
        outcome=Outcome.WORKING,
        why=why,
        waits_for=tuple(waits_for),
        **_observing_again(look_at),
    )


def filled(
    wants: Wants,
    handles: Sequence[PoolHandle],
    fault: Fault | None,
    *,
    begins_at: datetime | None = None,
    look_at: datetime | None = None,
) -> Decision:
    ready = sum(handle.ready is True for handle in handles)
    why = f"{len(handles)} handles are available, {ready} of them ready; {wants.min_available} are wanted"
    if fault is not None:
        return Decision(
            phase=STALLED,
            outcome=Outcome.WAITING,
            why=f"{why}; {fault.reason}: {fault.message}",
            waits_for=("a change of the pool or its provider",),
            **_observing_again(look_at),
        )
    enough = len(handles) >= wants.min_available
    deadline = earliest([begins_at, look_at])
    return Decision(
        phase="Ready" if enough and ready == len(handles) else "Filling",
        outcome=Outcome.SETTLED if enough else Outcome.WAITING,
        why=why,
        waits_for=() if enough else ("readiness of its handles",),
        deadline=deadline,
        at_deadline="start a scaling" if deadline and deadline == begins_at else "count again",
    )


def _owner(handle: JsonObject) -> str:
    pool = object_at(handle, "spec", "resourcePool")
    return f"ResourcePool/{text_at(pool, 'namespace')}/{text_at(pool, 'name')}" if pool else ""


def shown_validation_errors(status: JsonObject) -> list[str]:
    of_values = value_at(status, "provider", "validationErrors")
    of_entries = [text_at(entry, "validationError") for entry in objects_at(status, "resources")]
    return [str(each) for each in (of_values if isinstance(of_values, list) else [])] + [e for e in of_entries if e]


def _observing_again(look_at: datetime | None) -> dict[str, Any]:
    return {"deadline": look_at, "at_deadline": "observe again"} if look_at else {}


def _patience(deadline: datetime | None, binder_ends_at: datetime | None) -> timedelta:
    return LEFT_TO_BINDER if deadline is not None and deadline == binder_ends_at else timedelta(0)


def _ends(*, claimed: bool) -> str:
    return f"delete {'claim, handle' if claimed else 'handle'} and resources"


def _unready(status: JsonObject) -> tuple[str, ...]:
    return tuple(
        f"resource {text_at(each, 'name') or index}: {text_at(each, 'waitingFor') or 'it is not ready'}"
        for index, each in enumerate(objects_at(status, "resources"))
        if each.get("ready") is not True and ("ready" in each or text_at(each, "waitingFor"))
    )[:10]
