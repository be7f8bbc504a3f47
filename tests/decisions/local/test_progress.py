"""What `up` prints of long steps where no terminal is watched."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from localcloud.progress import ConsoleNarrator


@pytest.mark.parametrize("terminal", [False, True], ids=["a log", "a terminal"])
def test_the_end_of_a_step_is_reported_once(terminal: bool) -> None:
    written = io.StringIO()
    with ConsoleNarrator(Console(file=written, force_terminal=terminal, width=100)) as narrator:
        for done in (0, 39, 40, 40, 40):  # the last megabyte comes in several parts
            narrator.advance("MB of an archive", done, 40)
    assert written.getvalue().count("40 of 40") == 1
