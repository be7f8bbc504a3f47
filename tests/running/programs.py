"""Command lines that start programs of ours in milliseconds.

A program spends two seconds of CPU on imports, and a run of all tests starts hundreds. These are forked from a process
that has imported them (`forking.py`), one per kind of program, which starts with the first and ends with pytest. They
are processes with their own environment, directory, files and signals all the same. What a local deployment starts by
itself takes the usual way.
"""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from domain.areas import installed

ROOT = Path(__file__).parents[2]
COMMAND = "starters.cli.main"
SEED = "localcloud.seed"

_FORKS = sys.platform == "linux"


def command_line(module: str, *arguments: str, forked: bool = True) -> list[str]:
    """The command line of `python -m MODULE ARG...`; not forked where other code is to be imported than lies here."""
    if not (forked and _FORKS):
        return [sys.executable, "-m", module, *arguments]
    client = Path(__file__).with_name("forked.py")
    return [sys.executable, "-I", "-S", str(client), _forking(_imports(module)), module, *arguments]


def _imports(module: str) -> tuple[str, ...]:
    """What the program may need; the product's programs share one process to fork from."""
    if module not in (COMMAND, SEED):
        return (module,)
    of_areas = [name for each in installed().values() for name in (each.workflows, each.activities, each.resources)]
    of_commands = [
        f"starters.cli.{name}" for name in ("lifecycle", "listing", "why_output", "audits", "wake_lifecycles")
    ]
    return (COMMAND, SEED, "workers.main", "starters.watch.main", "localcloud.demo.scenarios", *of_areas, *of_commands)


@cache
def _forking(imports: tuple[str, ...]) -> str:
    """Where a process listens that has imported these modules; the first call lasts as long as that."""
    directory = tempfile.TemporaryDirectory(prefix="perdure-tests-")
    address = f"{directory.name}/forking"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.running.forking", str(listening.fileno()), *imports],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    assert process.stdout is not None
    process.stdout.read(1)  # no time limit runs for the imports of others

    def end() -> None:
        process.communicate()
        directory.cleanup()

    atexit.register(end)
    return address
