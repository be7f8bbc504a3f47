"""Calls that 3scale refuses: when they are retried, and what the object's status shows meanwhile.

An invalid write stays invalid until the object or 3scale's settings change, so its pause is long. A taken name may
become free, and a refused deletion or policy change may succeed later; these keep the normal pause. A first refusal
that is probably temporary is not shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from domain.refusal import ErrorType, Refusal
from domain.threescale.conditions import Situation, SyncState

# 3scale's message about a name or value in use.
TAKEN = "has already been taken"
# How long an invalid write pauses if nothing wakes the object: an hour after the first refusal, then a day.
UNTIL_CHANGED = timedelta(hours=1)
LATER_UNTIL_CHANGED = timedelta(days=1)
_TEMPORARY = frozenset({ErrorType.THROTTLED, ErrorType.UNAVAILABLE})


def with_pause(refusal: Refusal) -> Refusal:
    if refusal.type is not ErrorType.INVALID or TAKEN in refusal.message:
        return refusal
    return refusal.model_copy(update={"pause": UNTIL_CHANGED if refusal.attempts == 1 else LATER_UNTIL_CHANGED})


def held(refusals: Mapping[str, Refusal], now: datetime) -> tuple[str, ...]:
    return tuple(slot for slot, refusal in refusals.items() if refusal.retry_at > now)


def are_temporary(refusals: Mapping[str, Refusal], now: datetime) -> bool:
    """Whether calls pause, and only because of refusals that are probably temporary."""
    refused = [refusals[slot] for slot in held(refusals, now)]
    return bool(refused) and all(_is_temporary(each) for each in refused)


def _is_temporary(refusal: Refusal) -> bool:
    was_throttled = refusal.type is ErrorType.THROTTLED and bool(refusal.asked)
    return refusal.type in _TEMPORARY and (refusal.attempts == 1 or was_throttled)


def situation_of(refusals: Iterable[Refusal]) -> Situation:
    listed = sorted(refusals, key=lambda each: each.message)
    invalid = any(each.type is ErrorType.INVALID for each in listed)
    message = "; ".join(dict.fromkeys(each.message for each in listed))
    return Situation(state=SyncState.INVALID if invalid else SyncState.FAILED, message=message)
