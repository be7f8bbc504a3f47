"""The versions up to which every wake was acknowledged, by kind: what a watcher leaves to the next one in its Lease.

Without it a change that came while no watcher ran would be lost wherever an object's status does not show it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from engine.kube.reflector import newer
from starters.watch.projection import Projection

# The annotation of the Lease that holds it: a JSON object of resource versions by name of the kind.
CHECKPOINT = "perdure.dev/acknowledged"


class Checkpoint:
    """What the last watcher left, and what this one has reached."""

    def __init__(self, inherited: str) -> None:
        self._inherited = _versions(inherited)
        self._reached: dict[str, str] = {}

    def covers(self, name: str) -> bool:
        """Whether the last watcher had listed the kind."""
        return name in self._inherited

    def is_behind(self, name: str, known: Projection) -> bool:
        """Whether an object has changed since."""
        seen = self._inherited.get(name, "")
        return bool(seen) and newer(known.resource_version, seen)

    def renew(self, positions: Mapping[str, str], watched: Collection[str]) -> None:
        """Everything up to these versions is acknowledged.

        A kind that is declared may not be listed yet, or not at the moment: what was known of it stays. Of what is not
        watched any more nothing stays: parts of kinds come and go for years, and annotations hold 256 KiB.
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
