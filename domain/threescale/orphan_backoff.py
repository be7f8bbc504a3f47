"""When a waiting object is observed again if nothing wakes it.

The intervals double from five seconds to ten minutes, with jitter. They start at the transition time of the object's
condition, so every process computes the same times, and nothing is stored.
"""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from domain.resource import parse_timestamp
from domain.threescale.resources.shared import Conditions

FIRST = timedelta(seconds=5)
LONGEST = timedelta(minutes=10)
JITTER = 0.1

_DOUBLINGS = 7  # 5 s to 320 s, then every ten minutes
_DOUBLED = FIRST * ((1 << _DOUBLINGS) - 1)


def waiting_since(conditions: Conditions, type_: str, now: datetime) -> datetime:
    """The time when the condition became True; `now` if the condition is not True."""
    found = next((each for each in conditions if each.type == type_ and each.status == "True"), None)
    return (parse_timestamp(found.last_transition_time) if found else None) or now


def next_look(since: datetime, now: datetime, seed: str) -> datetime:
    """The time of the next observation. `seed` is the object's uid."""
    elapsed = now - since
    number = 1 if elapsed < _DOUBLED else _DOUBLINGS - 1 + (elapsed - _DOUBLED) // LONGEST
    while (moment := since + _nth(number, seed)) <= now:
        number += 1
    return moment


def _nth(number: int, seed: str) -> timedelta:
    delay: timedelta = min(LONGEST, FIRST * (1 << min(number - 1, _DOUBLINGS)))
    passed: timedelta = FIRST * ((1 << min(number, _DOUBLINGS)) - 1) + LONGEST * max(0, number - _DOUBLINGS)
    return passed + delay * (JITTER * _between(seed, number))


def _between(seed: str, number: int) -> float:
    drawn = hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4]
    return int.from_bytes(drawn) / 0xFFFFFFFF * 2 - 1
