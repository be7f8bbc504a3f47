"""Backoff when another controller reverts a claim's or handle's changes of a live object.

The first five identical changes are made without a pause, because a person may have reverted them; from the sixth on,
the pause between passes grows. The same applies to objects that are deleted after each creation. Pauses never delay an
expiry. Patches that change nothing do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.claims.evaluator_interface import Operations
from domain.claims.json_objects import JsonObject
from domain.model import Model

AT_ONCE = 5
FIRST_REST = timedelta(milliseconds=200)
LONGEST_REST = timedelta(seconds=10)
FORGOTTEN = timedelta(seconds=30)


class RevertedWrites(Model):
    changes: str = ""
    times: int = 0
    at: datetime | None = None


def whole(index: int, definition: JsonObject) -> Operations:
    return Operations(index=index, patch=({"op": "add", "path": "", "value": definition},))


def reverted_writes(before: RevertedWrites, made: Sequence[Operations], now: datetime) -> RevertedWrites:
    if before.at is None or now - before.at > FORGOTTEN:
        before = RevertedWrites()
    if not made:
        return before
    content = json.dumps([(each.index, each.patch) for each in made], sort_keys=True)
    changes = hashlib.sha256(content.encode()).hexdigest()[:16]
    return RevertedWrites(changes=changes, times=before.times + 1 if changes == before.changes else 1, at=now)


def rest_in(reverted: RevertedWrites, now: datetime, deadline: datetime | None) -> timedelta:
    more = reverted.times - AT_ONCE
    if more <= 0:
        return timedelta(0)
    rest = min(FIRST_REST * (1 << min(more - 1, 10)), LONGEST_REST)
    return rest if deadline is None else max(min(rest, deadline - now), timedelta(0))
