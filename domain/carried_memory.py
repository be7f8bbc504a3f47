from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from domain.identity import Key
from domain.model import Model
from domain.refusal import Refusal
from domain.resource import newest_version


class Carry(Model):
    """The input of a lifecycle's workflow. A watcher sets only the key; each run fills in the rest for the next run.

    It contains only what cannot be observed. If it is lost, the lifecycle observes again and comes to the same state.
    `known` is the area's memory (its model as JSON). `recorded` is as in `World`. `refusals` has the last refusal of
    each action, by `Action.slot`. `seen` maps each kind to the newest resourceVersion that a wake named. `world` is the
    result of a pass made before the workflow was started; None if there was no such pass.
    """

    key: Key
    known: dict[str, object] = {}
    refusals: dict[str, Refusal] = {}
    recorded: dict[str, datetime | None] = {}
    seen: dict[str, str] = {}
    world: dict[str, object] | None = None


def newest(*seen: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, version in (item for versions in seen for item in versions.items()):
        found[kind] = newest_version(found.get(kind, ""), version)
    return found
