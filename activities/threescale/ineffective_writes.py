"""Writes without the wanted effect: 3scale normalizes the value in an unknown way, or a webhook changes it.

A write that is made too often in one pass counts as refused and is retried after growing pauses.
"""

from __future__ import annotations

import json
from collections import Counter

from domain.decision import Action
from domain.threescale.calls import Write
from engine.errors import Denied

# How often a pass may make the same write. A pass that recreates a metric may deploy twice, and each deployment may be
# repeated after an unexpected answer.
MOST = 4
KEPT_OTHERWISE = "KeptOtherwise"


class IneffectiveWrites:
    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def refuse(self, write: Action) -> None:
        """Raises Denied if this pass has made the write too often."""
        if self._made[_key(write)] < MOST:
            return
        if isinstance(write, Write):
            message = f"3scale accepts {write.method} {write.path}, but stores other values than were sent"
            raise Denied(f"{message}: {', '.join(sorted(write.fields)) or 'its state'}", code=KEPT_OTHERWISE)
        message = f"{write.summary}: the API server stores other values than were sent, perhaps because of a webhook"
        raise Denied(message, code=KEPT_OTHERWISE)

    def made(self, write: Action) -> None:
        self._made[_key(write)] += 1


def _key(write: Action) -> str:
    sent = write.fields if isinstance(write, Write) else write.model_dump(mode="json", exclude={"resource_version"})
    return json.dumps([write.slot, sent], sort_keys=True)
