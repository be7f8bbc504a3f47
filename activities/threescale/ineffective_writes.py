"""Writes that 3scale accepts without any effect.

3scale stores some values in a normalized form, which comparisons take into account (`domain/threescale/normalize.py`).
For a form unknown to them, the same write would be decided after each answer, in every round of a pass. So a write that
was made several times in one pass counts as refused: it is reported and retried after growing pauses, while the other
writes go on.
"""

from __future__ import annotations

import json
from collections import Counter

from domain.threescale.calls import Write
from engine.errors import Denied

# A pass that recreates a metric may need two deployments, and each of them once more after an unexpected answer.
MOST = 4
KEPT_OTHERWISE = "KeptOtherwise"


class Repeats:
    """The repeated writes of one pass."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def refuse(self, write: Write) -> None:
        """Refuse a write that was made too often.

        Raises:
            Denied: it was.
        """
        if self._made[_alike(write)] >= MOST:
            message = f"3scale takes {write.method} {write.path}, but stores other values than were sent"
            raise Denied(f"{message}: {', '.join(sorted(write.fields)) or 'its state'}", code=KEPT_OTHERWISE)

    def made(self, write: Write) -> None:
        """Count a write that 3scale has accepted."""
        self._made[_alike(write)] += 1


def _alike(write: Write) -> str:
    return json.dumps([write.slot, write.fields], sort_keys=True)
