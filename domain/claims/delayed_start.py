"""A claim with a future `spec.lifespan.start`: nothing is done or written before then."""

from __future__ import annotations

from datetime import datetime

from domain.claims.durations import UnreadableMoment, parse_moment
from domain.claims.json_objects import JsonObject, text_at
from domain.claims.timestamps import born, moment_at
from domain.decision import Decision, Outcome


def start_of(claim: JsonObject) -> datetime:
    """The binding time, else the start in the spec, else the creation time. Raises UnreadableMoment."""
    recorded, start = moment_at(claim, "status", "lifespan", "start"), text_at(claim, "spec", "lifespan", "start")
    return recorded or (parse_moment(start, "spec.lifespan.start") if start else born(claim))


def not_begun(claim: JsonObject, now: datetime) -> Decision | None:
    """The decision to wait; None if the start has passed or is invalid, which validation reports."""
    try:
        start = start_of(claim)
    except UnreadableMoment:
        return None
    if start <= now:
        return None
    return Decision(
        phase="Waiting",
        outcome=Outcome.WAITING,
        why=f"its lifespan starts at {start:%Y-%m-%d %H:%M:%S} UTC, and nothing is done before that",
        waits_for=("the start of its lifespan",),
        deadline=start,
        at_deadline="it is reconciled",
    )
