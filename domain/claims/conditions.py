"""The one condition of claims, handles and pools: `Stalled`, True with the reason while a person has to mend something.

That is what kstatus (Argo CD, Flux) reads as "will not go on by itself". It is there only while there is a fault, and
all other conditions belong to others.

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
    """The status with the condition for this fault, or without it; the time stays while the reason does."""
    before = objects_at(status, "conditions")
    others = [condition for condition in before if condition.get("type") != STALLED]
    if fault is not None:
        others.append(_stalled(next((each for each in before if each.get("type") == STALLED), {}), fault, now))
    return {**status, "conditions": [*others]} if others else without(status, ("conditions",))


def with_own_stalled(status: JsonObject, fault: Fault | None, now: datetime, *, bound: bool) -> JsonObject:
    """A claim's status with the condition for a fault of its own; without one, what its handle's pass said stays."""
    if fault is None and bound and stalled_by_handle(status):
        return status
    return with_stalled(status, fault, now)


def with_handles_stalled(status: JsonObject, faults: Iterable[Fault], now: datetime, *, accepted: bool) -> JsonObject:
    """A claim's status with the condition for its handle's faults.

    A fault of its own stays unless the claim was `accepted` in this pass, which says that it has none any more.
    """
    own = any(condition.get("type") == STALLED for condition in objects_at(status, "conditions"))
    if own and not accepted and not stalled_by_handle(status):
        return status
    total = summed(faults)
    return with_stalled(status, total and Fault(reason=HANDLE_STALLED, message=total.message), now)


def stalled_by_handle(status: JsonObject) -> bool:
    """Whether a claim's status tells a fault of its handle."""
    return any(
        condition.get("type") == STALLED and condition.get("reason") == HANDLE_STALLED
        for condition in objects_at(status, "conditions")
    )


def _stalled(before: JsonObject, fault: Fault, now: datetime) -> JsonObject:
    same = before.get("status") == TRUE and before.get("reason") == fault.reason
    since = text_at(before, "lastTransitionTime") if same else ""
    return {
        "type": STALLED,
        "status": TRUE,
        "reason": fault.reason,
        "message": fault.message,
        "lastTransitionTime": since or timestamp(now),
    }
