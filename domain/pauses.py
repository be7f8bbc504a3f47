"""Pauses of whole areas, or of everything, as people have asked for them: one ConfigMap in the cluster.

`perdure-pause` stands in Perdure's own namespace (where the watcher's Lease is). A key of its `data` is the name of an
area, or `all`; its value is JSON that says who paused it, why and since when. Any other text is taken for the reason,
so that `kubectl create configmap perdure-pause --from-literal all="they are on fire"` does what it looks like. An area
goes on when its key, and `all`, are gone.

When an area was let go stays in an annotation: a watcher that begins to lead just then still tells its lifecycles.
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
RESUMED = "perdure.dev/resumed-"  # with the area behind it: when it was let go


class Pause(Model):
    """Who paused something, why and since when; a person who wrote it by hand may have left out all of that."""

    by: str = ""
    reason: str = ""
    since: datetime | None = None

    def told(self, what: str) -> str:
        """A sentence for people: `accounts is paused by mia@host since 2026-11-22T07:00:00Z: the key leaked`."""
        by = f" by {self.by}" if self.by else ""
        since = f" since {timestamp(self.since)}" if self.since else ""
        why = f": {self.reason}" if self.reason else ""
        return f"{'everything' if what == EVERYTHING else what} is paused{by}{since}{why}"

    def written(self) -> str:
        """As it stands in the ConfigMap."""
        return json.dumps(self.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)


Pauses = Mapping[str, Pause]


def pauses_in(config_map: Mapping[str, object] | None) -> dict[str, Pause]:
    """What is paused, by area or `all`; nothing where there is no ConfigMap."""
    data = config_map.get("data") if config_map else None
    return {name: _pause(str(value)) for name, value in data.items()} if isinstance(data, Mapping) else {}


def why_paused(pauses: Pauses, area: str) -> str:
    """Why nothing may be changed for an area now, empty if it may."""
    named = next((name for name in (EVERYTHING, area) if name in pauses), "")
    return pauses[named].told(named) if named else ""


def areas_changed(before: Pauses, after: Pauses, areas: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The areas that are paused since, and those that are let go."""
    was = {area for area in areas if why_paused(before, area)}
    are = {area for area in areas if why_paused(after, area)}
    return tuple(sorted(are - was)), tuple(sorted(was - are))


def let_go_since(config_map: Mapping[str, object] | None, moment: datetime, areas: tuple[str, ...]) -> tuple[str, ...]:
    """The areas that were let go after the moment, by the annotations."""
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
