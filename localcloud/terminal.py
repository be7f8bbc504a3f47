"""Output of the local deployment's commands, and the signals that end them.

Paths and addresses are not treated as markup, and lines are not wrapped, so that grep finds them.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from rich.console import Console

# Rich assumes 80 columns without a terminal.
_PIPE_WIDTH = 160

console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
errors = Console(stderr=True)


def say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def complain(reason: str) -> None:
    errors.print(reason, style="red", markup=False, highlight=False, soft_wrap=True)


def end_as_by_ctrl_c() -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
