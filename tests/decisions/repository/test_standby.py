"""A program on standby: it imports at once, and starts at the word."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PROGRAM = """
import os, sys
print("imported", flush=True)
def main():
    print("started", os.environ["SETTLED"], os.environ["OWN"], *sys.argv, "later" in sys.modules, flush=True)
"""


@pytest.fixture
def standby(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "later.py").write_text("")
    with subprocess.Popen(
        [sys.executable, "-m", "localcloud.standby", "program,later", "serve", "--fast"],
        env={**os.environ, "OWN": "its own", "PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path)))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def test_it_imports_at_once_and_starts_at_the_word(standby: subprocess.Popen[str]) -> None:
    assert standby.stdin is not None
    assert standby.stdout is not None
    assert standby.stdout.readline() == "imported\n"
    assert standby.poll() is None

    standby.stdin.write('{"SETTLED": "yes", "OWN": "another\'s"}\n')
    standby.stdin.close()

    assert standby.stdout.read() == "started yes its own program serve --fast True\n"
    assert standby.wait() == 0


def test_without_a_word_it_does_nothing(standby: subprocess.Popen[str]) -> None:
    output, _ = standby.communicate()
    assert (output, standby.returncode) == ("imported\n", 0)
