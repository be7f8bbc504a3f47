"""Recognises Perdure's own writes, which do not wake the lifecycle that made them.

The entries of managedFields show who made a change. It is Perdure's in three cases:

- the object is new, and all entries with the newest time (whole seconds) are Perdure's;
- only Perdure's entries have changed, and one has become newer or larger;
- no entry has changed, and all entries with the newest time are Perdure's.

A deletion leaves no entry, and a removal of fields only shrinks the former writers' entries, so neither is recognised.
The command line writes with another field manager: its changes must wake the lifecycle.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from engine.kube.api import FIELD_MANAGER
from engine.kube.json import JsonObject, at, sequence, text

if TYPE_CHECKING:
    from starters.watch.projection import Projection


def is_echo(before: Projection | None, after: Projection | None) -> bool:
    if before is None or after is None:
        return False
    return before.handed == after.handed and own_write(before, after)


def own_write(before: Projection | None, after: Projection | None) -> bool:
    """Whether a change is certainly Perdure's."""
    if before is None or after is None:
        return after is not None and after.ours
    if before.deleting != after.deleting or before.others != after.others:
        return False
    known, left = ({what: (time, size) for what, time, size in side.own} for side in (before, after))
    grown = any(what not in known or at > known[what][0] or size > known[what][1] for what, (at, size) in left.items())
    shrunk = any(what not in left or size > left[what][1] for what, (_, size) in known.items())
    return grown or (after.ours and not shrunk)


def written_by_us(obj: JsonObject, writer: str = FIELD_MANAGER) -> bool:
    """Whether this field manager wrote all entries with the newest time."""
    entries = [(text(entry, "time"), text(entry, "manager")) for entry in sequence(obj, "metadata", "managedFields")]
    newest = max((time for time, _ in entries), default="")
    return bool(newest) and {manager for time, manager in entries if time == newest} == {writer}


def written_by_others(obj: JsonObject, writer: str) -> tuple[str, ...]:
    entries = (entry for entry in sequence(obj, "metadata", "managedFields") if text(entry, "manager") != writer)
    return tuple(json.dumps(entry, sort_keys=True, default=str) for entry in entries)


def written_by_ourselves(obj: JsonObject, writer: str) -> tuple[tuple[str, str, int], ...]:
    entries = (entry for entry in sequence(obj, "metadata", "managedFields") if text(entry, "manager") == writer)
    return tuple(
        (f"{text(entry, 'operation')} {text(entry, 'subresource')}", text(entry, "time"), _size(entry))
        for entry in entries
    )


def _size(entry: object) -> int:
    return len(repr(at(entry, "fieldsV1")))
