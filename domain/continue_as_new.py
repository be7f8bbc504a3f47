from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from domain.identity import Key
from domain.model import Model
from domain.refusal import Refusal
from domain.resource import newest_version


class Carry(Model):
    """The input of every lifecycle's workflow, passed to its next run (continue-as-new); a watcher sets only the key.

    It holds only what cannot be observed again. `known` is the area's memory (its model as JSON), `refusals` the last
    failures by slot, `recorded` the digests of notices, `seen` the newest resourceVersion of its wakes by kind. `world`
    is the result of a first pass by the process that starts the workflow.
    """

    key: Key
    known: dict[str, object] = {}
    refusals: dict[str, Refusal] = {}
    recorded: dict[str, datetime | None] = {}
    seen: dict[str, str] = {}
    runs: int = 0
    world: dict[str, object] | None = None


def newest(*seen: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, version in (item for versions in seen for item in versions.items()):
        found[kind] = newest_version(found.get(kind, ""), version)
    return found
