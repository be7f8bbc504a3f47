"""What tests start from a process that has imported it is a program like any other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running import programs

PROGRAM = """
import json, os, signal, sys, time

def main():
    def stop(number, _):
        print("asked to end", file=sys.stderr)
        sys.exit(7)
    signal.signal(signal.SIGTERM, stop)  # before it says that it runs
    print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["OWN"], sys.stdin.readline(), os.getpid()]), flush=True)
    time.sleep({"wait": 60}.get(sys.argv[1], 0))
    return {"fail": 3}.get(sys.argv[1], 0)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A program that a forking process imports."""
    directory = tmp_path_factory.mktemp("program")
    (directory / "forked_program.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONPATH", str(directory))
        programs.command_line("forked_program")
    return "forked_program"


@pytest.fixture
def start(module: str, tmp_path: Path) -> Start:
    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            programs.command_line(module, *arguments),
            env={**os.environ, "OWN": "its own"},
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.mark.parametrize(("word", "code"), [("end", 0), ("fail", 3)])
def test_it_has_its_own_arguments_directory_environment_files_and_exit_code(
    start: Start, tmp_path: Path, word: str, code: int
) -> None:
    process = start(word, "--fast")
    output, warned = process.communicate("hello\n", timeout=60)
    arguments, directory, own, received, _ = json.loads(output)
    assert (arguments, directory, own, received) == ([word, "--fast"], str(tmp_path), "its own", "hello\n")
    assert (warned, process.returncode) == ("", code)


def test_a_signal_reaches_the_program_and_its_last_output_is_read(start: Start) -> None:
    process = start("wait")
    _begin(process)
    process.terminate()
    assert process.communicate(timeout=60) == ("", "asked to end\n")
    assert process.returncode == 7


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is forked elsewhere")
def test_it_is_killed_with_its_client_and_its_own_death_is_the_clients(start: Start) -> None:
    for kill in (lambda process, _: process.kill(), lambda _, pid: os.kill(pid, signal.SIGKILL)):
        process = start("wait")
        pid = _begin(process)
        kill(process, pid)
        process.communicate(timeout=60)  # its output ends with it
        assert process.returncode == -signal.SIGKILL


def _begin(process: subprocess.Popen[str]) -> int:
    """Let it go on; its pid."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(json.loads(process.stdout.readline())[-1])
