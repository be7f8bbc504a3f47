"""The checkpoint: for each kind, the resource version up to which Temporal has accepted all wakes.

The Lease stores the checkpoint for the next watcher. Without it, the next watcher would miss changes that were made
while no watcher ran, unless the objects' status shows them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from engine.kube.reflector import newer
from starters.watch.projection import Projection

# The Lease's annotation: JSON of resource versions by kind.
CHECKPOINT = "perdure.dev/acknowledged"


class Checkpoint:
    def __init__(self, inherited: str) -> None:
        self._inherited = _versions(inherited)
        self._reached: dict[str, str] = {}

    def covers(self, name: str) -> bool:
        """Whether the previous watcher had listed the kind."""
        return name in self._inherited

    def is_behind(self, name: str, known: Projection) -> bool:
        seen = self._inherited.get(name, "")
        return bool(seen) and newer(known.resource_version, seen)

    def renew(self, positions: Mapping[str, str], watched: Collection[str]) -> None:
        """Record the positions. A watched kind without a position keeps its old version. A kind that is not watched any
        more is dropped, because annotations are limited to 256 KiB.
        """
        known = {**self._inherited, **self._reached, **positions}
        self._reached = {name: version for name, version in known.items() if name in watched}

    def __str__(self) -> str:
        return json.dumps(self._reached or self._inherited, sort_keys=True)


def _versions(checkpoint: str) -> Mapping[str, str]:
    try:
        versions = json.loads(checkpoint or "{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in versions.items()} if isinstance(versions, dict) else {}
