"""What no case may make a worker say: workflow tasks that failed, and bugs.

Temporal's core numbers what it warns of. 1104, a workflow task of more than five seconds, says only that the computer
has more to do than it can, as it has while servers are killed and start again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from engine.bugs import BUG_FOUND

_BUG = BUG_FOUND.removeprefix("%s ")
_BAD = re.compile(rf"TMPRL(?!1104)|ondeterminis|{_BUG}|Failed activation|could not be bound")


class WorkerLog:
    """The log of one worker's lives, read from the beginning of a case on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begun = 0

    def complaints(self) -> Iterator[str]:
        """The lines that should not be there. Once said they stay said until `forget`."""
        lines = self._file.read_text(errors="replace")[self._begun :].splitlines()
        yield from (f"worker: {line[:400]}" for line in lines if _BAD.search(line))

    def forget(self) -> None:
        """Begin a new case: what was said before is not held against it."""
        self._begun = len(self._file.read_text(errors="replace"))
