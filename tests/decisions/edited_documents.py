"""Documents that differ in one place."""

from __future__ import annotations

import copy
from typing import Any


def edited(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with one field set, by its dotted path; what is missing on the way is made."""
    after = copy.deepcopy(document)
    *parents, last = path.split(".")
    place = after
    for name in parents:
        place = place.setdefault(name, {})
    place[last] = value
    return after
