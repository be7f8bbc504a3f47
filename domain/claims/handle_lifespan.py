"""The lifespan of a bound handle in one pass: its end, and what its claim shows and requests.

The end is computed if the claim was accepted in this pass and requests an end. When the handle becomes ready for the
first time, the default lifespan is counted again from then, unless the end has passed: a late pass must not extend the
lifespan. A claim without a recorded start starts now; a handle that was ready at binding counts as ready from the
start. If a person writes an end in the past into the handle, that end stays until the claim requests another end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from domain.claims.durations import after, in_one_unit, whole_seconds
from domain.claims.evaluator_interface import Fault
from domain.claims.faults import collected_in
from domain.claims.json_objects import JsonObject, object_at, only, present, value_at, with_spec, without
from domain.claims.lifespan_end import RequestedEnd, SettledEnd, Terms, restarted_end, settled_end, shown
from domain.claims.lifespan_templates import handle_terms
from domain.claims.template_variables import Scene
from domain.claims.timestamps import end_of_handle, moment_at, passed, requested_end_of
from domain.model import Model
from domain.resource import timestamp


class HandleLifespan(Model):
    """`end` is the handle's new end, None if it is unchanged; `requested_end` is for the claim's spec."""

    end: datetime | None = None
    start: datetime
    first_ready: datetime | None = None
    requested_end: datetime | None = None
    settled: SettledEnd | None = None
    terms: Terms | None = None
    faults: tuple[Fault, ...] = ()


def handle_lifespan(scene: Scene, *, ready: bool, accepted: bool, honoured: RequestedEnd | None) -> HandleLifespan:
    claim, handle, now = scene.claim or {}, scene.handle or {}, whole_seconds(scene.now)
    faults: list[Fault] = []
    recorded = _recorded(claim, "start")
    start = recorded or now
    terms = _terms(scene, faults)
    requested, readable = _requested_end(claim, faults)

    over = passed(end_of_handle(handle), now)
    restarted: datetime | None = None
    before = _recorded(claim, "firstReady")
    first_ready = None
    if ready and before is None:
        restarted_at = _restarted_at(claim, handle, terms, requested)
        first_ready = restarted_at if restarted_at and start < restarted_at < now else now
    was_ready = recorded is None and value_at(handle, "status", "ready") is True
    if first_ready and terms is not None and readable and not was_ready and not over:
        with collected_in(faults):
            restarted = restarted_end(terms, requested_end=requested, start=start, first_ready=first_ready)

    since = first_ready if first_ready and not over else before
    wanted = restarted or (requested if accepted else None)
    settled: SettledEnd | None = None
    by_hand = over and _set_by_hand(claim, handle, terms, wanted, honoured)
    if terms is not None and wanted is not None and not by_hand:
        with collected_in(faults):
            settled = settled_end(
                terms,
                requested_end=wanted,
                current=end_of_handle(handle),
                base=since or start,
                now=now,
                honoured=honoured,
            )
    return HandleLifespan(
        end=settled.end if settled else None,
        start=start,
        first_ready=first_ready,
        requested_end=restarted,
        settled=settled,
        terms=terms,
        faults=tuple(faults),
    )


def _restarted_at(
    claim: JsonObject, handle: JsonObject, terms: Terms | None, requested: datetime | None
) -> datetime | None:
    """When the handle was first ready, worked out from its end, if a pass was interrupted before it recorded that."""
    default: timedelta | None = None
    with collected_in([]):
        default = terms.default_duration if terms else None
    written = requested == end_of_handle(handle) != _recorded(claim, "end")
    return after(requested, -default) if requested and default is not None and written else None


def _set_by_hand(
    claim: JsonObject, handle: JsonObject, terms: Terms | None, wanted: datetime | None, honoured: RequestedEnd | None
) -> bool:
    """Whether a person has set the handle's end: the claim's request was applied, but the handle's end differs from the
    end in the claim's status.

    Under a relative maximum, which counts from now, Perdure itself moves the end to later times. In this case only an
    end before the status's end counts as set by a person.
    """
    rolls = terms is not None and terms.relative_maximum is not None
    end, shown_end = end_of_handle(handle), _recorded(claim, "end")
    # A claim shows its requested end only once that end was applied, so lost memory does no harm.
    is_honoured = wanted is not None and whole_seconds(wanted) in (honoured.end if honoured else None, shown_end)
    if rolls:
        return is_honoured and end is not None and shown_end is not None and end < shown_end
    return is_honoured and end != shown_end


def ended(obj: JsonObject, end: datetime | None) -> JsonObject:
    if end is None or end == end_of_handle(obj):
        return obj
    return with_spec(obj, lifespan={**object_at(obj, "spec", "lifespan"), "end": timestamp(end)})


def claim_lifespan(claim: JsonObject, handle: JsonObject, lifespan: HandleLifespan) -> JsonObject:
    """The claim's `status.lifespan`: the handle's end, and the maxima in force.

    A recorded start or `firstReady` never changes, unless it is unreadable.
    """
    before, terms = object_at(claim, "status", "lifespan"), lifespan.terms
    unreadable = [field for field in ("start", "firstReady") if _recorded(claim, field) is None]
    first_ready = timestamp(lifespan.first_ready) if lifespan.first_ready else None
    if terms is None:
        maxima: JsonObject = only(before, "maximum", "relativeMaximum")
    else:
        maxima = present(maximum=shown(terms.maximum), relativeMaximum=shown(terms.relative_maximum))
    return {
        **present(start=timestamp(lifespan.start), firstReady=first_ready),
        **without(before, (*unreadable, "end", "maximum", "relativeMaximum")),
        **present(end=value_at(handle, "spec", "lifespan", "end")),
        **(maxima if object_at(handle, "spec", "lifespan") else {}),
    }


def _terms(scene: Scene, faults: list[Fault]) -> Terms | None:
    terms: Terms | None = None
    with collected_in(faults):
        terms = handle_terms(scene)
    if terms is not None:
        with collected_in(faults):
            _ = terms.default_duration
        for setting, name in ((terms.maximum, "maximum"), (terms.relative_maximum, "relativeMaximum")):
            with collected_in(faults):
                _ = setting and in_one_unit(setting.rendered, f"lifespan.{name}")
    return terms


def _requested_end(claim: JsonObject, faults: list[Fault]) -> tuple[datetime | None, bool]:
    requested: datetime | None = None
    before = len(faults)
    with collected_in(faults):
        requested = requested_end_of(claim)
    return requested, len(faults) == before


def _recorded(claim: JsonObject, field: str) -> datetime | None:
    return moment_at(claim, "status", "lifespan", field)
