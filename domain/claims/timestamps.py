"""Start and end of claims and handles, from their objects.

An invalid time in a claim's spec raises UnreadableMoment; elsewhere it counts as absent.
"""

from __future__ import annotations

from datetime import datetime

from domain.claims.durations import EARLIEST, UnreadableMoment, parse_moment
from domain.claims.json_objects import JsonObject, text_at
from domain.claims.references import is_detached


def requested_end_of(claim: JsonObject) -> datetime | None:
    """Raises UnreadableMoment."""
    requested = text_at(claim, "spec", "lifespan", "end")
    return parse_moment(requested, "spec.lifespan.end") if requested else None


def born(resource: JsonObject) -> datetime:
    """The creation time; an object not created yet counts as the oldest."""
    return moment_at(resource, "metadata", "creationTimestamp") or EARLIEST


def end_of_handle(handle: JsonObject) -> datetime | None:
    return moment_at(handle, "spec", "lifespan", "end")


def end_of_detached(claim: JsonObject) -> datetime | None:
    return moment_at(claim, "status", "lifespan", "end") if is_detached(claim) else None


def ahead(moment: datetime | None, now: datetime) -> datetime | None:
    return None if passed(moment, now) else moment


def passed(moment: datetime | None, now: datetime) -> bool:
    return moment is not None and moment <= now


def moment_at(value: JsonObject, *path: str) -> datetime | None:
    try:
        return parse_moment(text_at(value, *path))
    except UnreadableMoment:
        return None
