"""Writes that 3scale takes, and that leave it as it was.

3scale stores some values in a form of its own, which comparisons know (`domain/threescale/normalize.py`). A form that
they do not know would have the same write asked for after each answer, as often as a pass has rounds. So a write that
was made several times in one pass counts as refused: it is reported, and tried again after growing pauses, while the
rest goes on.
"""

from __future__ import annotations

import json
from collections import Counter

from domain.threescale.calls import Write
from engine.errors import Denied

# A pass that creates a metric again may ask for two deployments, and for each once more after a surprise.
MOST = 4
KEPT_OTHERWISE = "KeptOtherwise"


class Repeats:
    """Those of one pass."""

    def __init__(self) -> None:
        self._made: Counter[str] = Counter()

    def refuse(self, write: Write) -> None:
        """Refuse one that was made often enough.

        Raises:
            Denied: it was.
        """
        if self._made[_alike(write)] >= MOST:
            message = f"3scale takes {write.method} {write.path}, but stores other values than were sent"
            raise Denied(f"{message}: {', '.join(sorted(write.fields)) or 'its state'}", code=KEPT_OTHERWISE)

    def made(self, write: Write) -> None:
        """3scale has taken it."""
        self._made[_alike(write)] += 1


def _alike(write: Write) -> str:
    return json.dumps([write.slot, write.fields], sort_keys=True)
