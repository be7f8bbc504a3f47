"""How long a claim or handle rests while another controller takes back, each time, what it changes in a live object.

A provider's update filters may allow what another controller insists on: its change is news, so the next pass undoes it
at once, which is news to the other side. Poolboy looked once a minute. Here the first changes are answered at once, as
ever, since a person may have made them; from the sixth time on that the very same change is needed again, the rest
between two passes grows. So it does for an object that is deleted each time it is made (its owner does not exist, or it
goes by itself). A moment at which something ends is never rested over. What the API server takes without changing
anything (a default removed, which it sets again) is no change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.claims.objects import JsonObject
from domain.claims.plans import Operations
from domain.model import Model

AT_ONCE = 5
FIRST_REST = timedelta(milliseconds=200)
LONGEST_REST = timedelta(seconds=10)
FORGOTTEN = timedelta(seconds=30)


class Struggle(Model):
    """How often in a row passes have made the same changes, told by their digest, and when last."""

    changes: str = ""
    times: int = 0
    at: datetime | None = None


def whole(index: int, definition: JsonObject) -> Operations:
    """The making of an object, as a change."""
    return Operations(index=index, patch=({"op": "add", "path": "", "value": definition},))


def struggle_after(before: Struggle, made: Sequence[Operations], now: datetime) -> Struggle:
    """The struggle after a pass that has made these changes in live objects."""
    if before.at is None or now - before.at > FORGOTTEN:
        before = Struggle()
    if not made:
        return before
    told = json.dumps([(each.index, each.patch) for each in made], sort_keys=True)
    changes = hashlib.sha256(told.encode()).hexdigest()[:16]
    return Struggle(changes=changes, times=before.times + 1 if changes == before.changes else 1, at=now)


def rest_in(struggle: Struggle, now: datetime, deadline: datetime | None) -> timedelta:
    """The least time until the next pass; not beyond the deadline."""
    more = struggle.times - AT_ONCE
    if more <= 0:
        return timedelta(0)
    rest = min(FIRST_REST * (1 << min(more - 1, 10)), LONGEST_REST)
    return rest if deadline is None else max(min(rest, deadline - now), timedelta(0))
