"""When claims and handles begin and end, as their objects say.

What users write into a spec must be a moment, or the claim is told so. What programs write into a status may have been
spoilt by people: it reads as absent, and the next best moment counts.
"""

from __future__ import annotations

from datetime import datetime

from domain.claims.durations import EARLIEST, UnreadableMoment, parse_moment
from domain.claims.objects import JsonObject, text_at, value_at


def start_of(claim: JsonObject) -> datetime:
    """When the claim begins: its status (the bind), else its spec, else its creation. Before that nothing is done.

    Raises:
        UnreadableMoment: the spec's start is no moment.
    """
    recorded = _recorded(claim, "status", "lifespan", "start")
    if recorded is not None:
        return recorded
    if asked := text_at(claim, "spec", "lifespan", "start"):
        return parse_moment(asked, "spec.lifespan.start")
    return born(claim)


def base_of(claim: JsonObject) -> datetime:
    """From when the maximum counts: first ready, else the start."""
    return _recorded(claim, "status", "lifespan", "firstReady") or start_of(claim)


def requested_end_of(claim: JsonObject) -> datetime | None:
    """The end that the claim asks for.

    Raises:
        UnreadableMoment: it is no moment.
    """
    asked = text_at(claim, "spec", "lifespan", "end")
    return parse_moment(asked, "spec.lifespan.end") if asked else None


def born(resource: JsonObject) -> datetime:
    """When the object was created; one not created yet counts as older than any."""
    return _recorded(resource, "metadata", "creationTimestamp") or EARLIEST


def end_of_handle(handle: JsonObject) -> datetime | None:
    """When the handle is deleted, bound or free; None if never, or if what stands there is no moment."""
    return _recorded(handle, "spec", "lifespan", "end")


def end_of_detached(claim: JsonObject) -> datetime | None:
    """When a claim that has given up its handle is deleted; None for one that has not, or that has no end."""
    detached = value_at(claim, "status", "resourceHandle", "detached") is True
    return _recorded(claim, "status", "lifespan", "end") if detached else None


def agreed_end(claim: JsonObject | None, handle: JsonObject | None) -> datetime | None:
    """When both end, where claim and handle say the same of it: then nothing is left to settle at that moment.

    None where they differ (a limit has cut what the claim asks for, somebody has written one of them) or there is none.
    """
    if claim is None or handle is None:
        return None
    end, asked = end_of_handle(handle), text_at(claim, "spec", "lifespan", "end")
    shown = _recorded(claim, "status", "lifespan", "end")
    wanted = _recorded(claim, "spec", "lifespan", "end") if asked else end
    return end if end == shown == wanted else None


def ahead(moment: datetime | None, now: datetime) -> datetime | None:
    """The moment, None once it has come."""
    return None if passed(moment, now) else moment


def passed(moment: datetime | None, now: datetime) -> bool:
    """True from the moment on; never for none."""
    return moment is not None and moment <= now


def _recorded(value: JsonObject, *path: str) -> datetime | None:
    try:
        return parse_moment(text_at(value, *path))
    except UnreadableMoment:
        return None
