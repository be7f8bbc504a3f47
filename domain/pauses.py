"""Pauses of areas, or of everything (`all`), which people request in one ConfigMap.

The ConfigMap `perdure-pause` is in Perdure's own namespace (with the watcher's Lease). A key of its `data` is the name
of an area, or `all`; the value is JSON with the person, the reason and the time, or just the reason as text. An area
resumes when both its key and `all` are gone.

An annotation records when an area was resumed, so that a watcher that becomes leader just then still wakes the area's
lifecycles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from pydantic import ValidationError

from domain.model import Model
from domain.resource import parse_timestamp, timestamp

CONFIG_MAP_NAME = "perdure-pause"
EVERYTHING = "all"
RESUMED = "perdure.dev/resumed-"  # followed by the area's name; the value is the time at which it was resumed


class Pause(Model):
    """Every field may be missing, because people also edit the ConfigMap."""

    by: str = ""
    reason: str = ""
    since: datetime | None = None

    def described(self, what: str) -> str:
        """The pause as a sentence: `accounts is paused by mia@host since 2026-11-22T07:00:00Z: the key leaked`."""
        by = f" by {self.by}" if self.by else ""
        since = f" since {timestamp(self.since)}" if self.since else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{'everything' if what == EVERYTHING else what} is paused{by}{since}{why}"

    def written(self) -> str:
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


Pauses = Mapping[str, Pause]


def pauses_in(config_map: Mapping[str, object] | None) -> dict[str, Pause]:
    data = config_map.get("data") if config_map else None
    return {name: _pause(str(value)) for name, value in data.items()} if isinstance(data, Mapping) else {}


def why_paused(pauses: Pauses, area: str) -> str:
    named = next((name for name in (EVERYTHING, area) if name in pauses), "")
    return pauses[named].described(named) if named else ""


def areas_changed(before: Pauses, after: Pauses, areas: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    was = {area for area in areas if why_paused(before, area)}
    are = {area for area in areas if why_paused(after, area)}
    return tuple(sorted(are - was)), tuple(sorted(was - are))


def resumed_since(config_map: Mapping[str, object] | None, moment: datetime, areas: tuple[str, ...]) -> tuple[str, ...]:
    metadata = config_map.get("metadata") if config_map else None
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    annotations = found if isinstance(found, Mapping) else {}
    stamps = {
        str(name).removeprefix(RESUMED): parse_timestamp(str(value))
        for name, value in annotations.items()
        if str(name).startswith(RESUMED)
    }
    recent = {name for name, at in stamps.items() if at is not None and at > moment}
    return tuple(area for area in areas if area in recent or EVERYTHING in recent)


def _pause(value: str) -> Pause:
    try:
        return Pause.model_validate_json(value)
    except ValidationError:
        return Pause(reason=value.strip())
