"""Builds that happen once per computer, in one process at a time. The kernel releases the lock if that process dies."""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from localcloud.processes import identify, tethered
from localcloud.progress import Narrator

_SHOWN_LINES = 40


class BuildError(Exception):
    pass


def lines_of(
    command: list[str], *, called: str = "", cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The lines that a command prints. The command is killed when the caller stops iterating.

    `called` names the command in errors. `variables` is the command's whole environment; None passes on the caller's.
    If the command fails, BuildError is raised with the last lines.
    """
    tail: list[str] = []
    process = subprocess.Popen(
        tethered(command),
        cwd=cwd,
        env=dict(variables) if variables is not None else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # its own process group, so that its children are ended with it
    )
    assert process.stdout is not None
    identity = identify(process.pid, command[0])
    try:
        for line in process.stdout:
            tail = [*tail[-_SHOWN_LINES:], line]
            yield line.rstrip("\n")
        code = process.wait()
    finally:
        if process.poll() is None and identity is not None:
            identity.send(signal.SIGKILL)
            process.wait()
        process.stdout.close()
    if code != 0:
        raise BuildError(f"`{called or ' '.join(command[:2])}` failed with {code}:\n{''.join(tail)}")


@contextlib.contextmanager
def only_builder(cache: Path, what: str, narrator: Narrator) -> Iterator[None]:
    with (cache / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            narrator.say(f"Another process is building {what}; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
