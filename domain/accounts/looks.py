"""Looking at one object and at what its decision needs beside it: the form of the area's observations."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action
from domain.identity import Key


class Look(Action):
    """One observation; its answer is the world that is decided upon."""

    start_to_close: ClassVar[timedelta] = timedelta(seconds=20)
    looked_at: ClassVar[str]

    key: Key

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"observe {self.looked_at}"
