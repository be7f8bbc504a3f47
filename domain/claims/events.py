"""Events of claims, handles and pools: refused values, faults, and changes of the lifespan's end.

Faults already in the object's conditions are not reported again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from domain.claims.evaluator_interface import ClaimPlan, Fault, Halt, HandlePlan
from domain.claims.json_objects import JsonObject, object_at, text_at
from domain.claims.lifespan_end import RequestedEnd
from domain.claims.phases import shown_validation_errors
from domain.claims.stalled_condition import shown_messages
from domain.identity import Key
from domain.notices import Notice, normal, warning
from domain.resource import timestamp

VALIDATION_FAILED = "ValidationFailed"
# As in Poolboy 1.16 and later.
LIFESPAN_END_CHANGED = "Lifespan end changed"


def validation_events(before: JsonObject, plan: ClaimPlan) -> Iterator[Notice]:
    if plan.halt is Halt.INVALID:
        errors = shown_validation_errors(plan.status)
        if errors and errors != shown_validation_errors(object_at(before, "status")):
            yield warning(VALIDATION_FAILED, "; ".join(errors), each_time=True)
    yield from fault_events(None, before, (plan.fault,) if plan.fault else ())


def fault_events(about: Key | None, before: JsonObject, faults: Iterable[Fault]) -> Iterator[Notice]:
    shown = shown_messages(before)
    new = (fault for fault in faults if f"; {fault.message}; " not in shown)
    return (warning(fault.reason, fault.message, about=about, each_time=True) for fault in new)


def end_events(
    about: Key, before: JsonObject | None, after: JsonObject, plan: HandlePlan, honoured: RequestedEnd | None
) -> Iterator[Notice]:
    """`after` is the claim's new status. `honoured` is the requested end that the previous pass applied. While the
    request is unchanged, the end moves towards it in steps without an Event.
    """
    if plan.end_was_cut and plan.wish is not None and plan.end is not None:
        text = f"lifespan.end {timestamp(plan.wish.end)} is later than allowed, and was cut to {timestamp(plan.end)}"
        yield warning("LifespanEndCut", text, about=about, each_time=True)
    was, end = text_at(before, "status", "lifespan", "end"), text_at(after, "lifespan", "end")
    if was and was != end and (plan.wish is None or plan.wish != honoured):
        reason = LIFESPAN_END_CHANGED if end else "Lifespan end cleared"
        text = f"lifespan end is {end}, was {was}" if end else f"lifespan end is cleared, was {was}"
        yield normal(reason, text, action="LifespanChange", about=about, each_time=True)
