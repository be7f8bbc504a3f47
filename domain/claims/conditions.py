"""The conditions of claim objects. Claims, handles and pools have one, `Stalled`: a person has to mend something.

kstatus (Argo CD, Flux) reads it as "will not go on by itself". It is there only while there is a fault, and is True
then. ResourceProviders have one of their own (`provider_conditions.py`). All other conditions belong to others.

A claim has faults of its own and those of its handle, found in different passes. Its handle's are shown under one
reason, so that each pass knows which of the two the condition tells, and neither takes away what the other said. Its
own come first: while there is one, nothing of the claim reaches the handle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.claims.faults import summed
from domain.claims.objects import JsonObject, objects_at, text_at, without
from domain.claims.plans import Fault
from domain.resource import timestamp

STALLED = "Stalled"
TRUE = "True"
HANDLE_STALLED = "ResourceHandleStalled"


def with_stalled(status: JsonObject, fault: Fault | None, now: datetime) -> JsonObject:
    """The status with the condition for this fault, or without it."""
    return with_fault(status, STALLED, fault, now)


def with_fault(status: JsonObject, type_: str, fault: Fault | None, now: datetime) -> JsonObject:
    """The status with the condition of this type, True for the fault, or without it.

    `lastTransitionTime` stays while the reason does; else it is `now`.
    """
    others = [condition for condition in objects_at(status, "conditions") if condition.get("type") != type_]
    if fault is not None:
        others.append(_condition(condition_at(status, type_) or {}, type_, fault, now))
    return {**status, "conditions": [*others]} if others else without(status, ("conditions",))


def condition_at(status: JsonObject, type_: str) -> JsonObject | None:
    """The condition of a type in a status, None without one."""
    found = (condition for condition in objects_at(status, "conditions") if condition.get("type") == type_)
    return next(found, None)


def with_own_stalled(status: JsonObject, fault: Fault | None, now: datetime, *, bound: bool) -> JsonObject:
    """A claim's status with the condition for a fault of its own; without one, what its handle's pass said stays."""
    if fault is None and bound and stalled_by_handle(status):
        return status
    return with_stalled(status, fault, now)


def with_handles_stalled(status: JsonObject, faults: Iterable[Fault], now: datetime, *, accepted: bool) -> JsonObject:
    """A claim's status with the condition for its handle's faults.

    A fault of its own stays unless the claim was `accepted` in this pass, which says that it has none any more.
    """
    stalled = condition_at(status, STALLED) is not None
    if stalled and not accepted and not stalled_by_handle(status):
        return status
    total = summed(faults)
    return with_stalled(status, total and Fault(reason=HANDLE_STALLED, message=total.message), now)


def stalled_by_handle(status: JsonObject) -> bool:
    """Whether a claim's status tells a fault of its handle."""
    return any(
        condition.get("type") == STALLED and condition.get("reason") == HANDLE_STALLED
        for condition in objects_at(status, "conditions")
    )


def _condition(before: JsonObject, type_: str, fault: Fault, now: datetime) -> JsonObject:
    same = before.get("status") == TRUE and before.get("reason") == fault.reason
    since = text_at(before, "lastTransitionTime") if same else ""
    return {
        "type": type_,
        "status": TRUE,
        "reason": fault.reason,
        "message": fault.message,
        "lastTransitionTime": since or timestamp(now),
    }
