"""How the local deployment's commands speak to a person, and how a request to end reaches them.

Plain lines go to standard output, reasons of a failure in red to standard error. What is said is text: paths and
addresses are no markup, and no line is folded, since whoever greps wants it whole.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from rich.console import Console

# Rich takes 80 columns where there is no terminal.
_PIPE_WIDTH = 160

console = Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)
errors = Console(stderr=True)


def say(line: str) -> None:
    """A line on standard output."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def complain(reason: str) -> None:
    """Why the command could not do what was asked, on standard error."""
    errors.print(reason, style="red", markup=False, highlight=False, soft_wrap=True)


def end_as_by_ctrl_c() -> None:
    """Let SIGTERM, and the terminal's closing, end the command as Ctrl-C does: everything is stopped in order."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
