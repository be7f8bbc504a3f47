"""The condition `Stalled` of claims, handles and pools; present only while a person must correct a fault.

kstatus (Argo CD, Flux) reads it as "will not progress by itself". A claim's own fault and its handle's fault are
reported by two evaluations. They have different reasons, so an evaluation that finds no fault does not clear the other
evaluation's fault. The claim's own fault has precedence: while it lasts, the claim's edits do not reach the handle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.claims.evaluator_interface import Fault
from domain.claims.faults import summed
from domain.claims.json_objects import JsonObject, objects_at, text_at, without
from domain.resource import timestamp

STALLED = "Stalled"
TRUE = "True"
HANDLE_STALLED = "ResourceHandleStalled"


def with_stalled(status: JsonObject, fault: Fault | None, now: datetime) -> JsonObject:
    return with_fault(status, STALLED, fault, now)


def with_fault(status: JsonObject, type_: str, fault: Fault | None, now: datetime) -> JsonObject:
    others = [condition for condition in objects_at(status, "conditions") if condition.get("type") != type_]
    if fault is not None:
        others.append(_condition(condition_at(status, type_) or {}, type_, fault, now))
    return {**status, "conditions": [*others]} if others else without(status, ("conditions",))


def condition_at(status: JsonObject, type_: str) -> JsonObject | None:
    found = (condition for condition in objects_at(status, "conditions") if condition.get("type") == type_)
    return next(found, None)


def shown_messages(obj: JsonObject) -> str:
    """One text with each condition's message between semicolons, to find out whether a fault was reported before."""
    messages = [text_at(condition, "message") for condition in objects_at(obj, "status", "conditions")]
    return f"; {'; '.join(messages)}; "


def with_own_stalled(status: JsonObject, fault: Fault | None, now: datetime, *, bound: bool) -> JsonObject:
    if fault is None and bound and stalled_by_handle(status):
        return status
    return with_stalled(status, fault, now)


def with_handles_stalled(status: JsonObject, faults: Iterable[Fault], now: datetime, *, accepted: bool) -> JsonObject:
    """The claim's status with the handle's faults; the claim's own fault stays if the claim was not `accepted`."""
    stalled = condition_at(status, STALLED) is not None
    if stalled and not accepted and not stalled_by_handle(status):
        return status
    total = summed(faults)
    return with_stalled(status, total and Fault(reason=HANDLE_STALLED, message=total.message), now)


def stalled_by_handle(status: JsonObject) -> bool:
    return any(
        (text_at(each, "type"), text_at(each, "reason")) == (STALLED, HANDLE_STALLED)
        for each in objects_at(status, "conditions")
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
