"""What building something once per computer takes: a command that ends with its builder, and one builder at a time.

What is built lies in a cache, and counts once it is whole. Two processes that want it at the same time find that one of
them builds while the other waits; a builder that dies takes its commands with it and leaves nothing locked.
"""

from __future__ import annotations

import contextlib
import fcntl
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from localcloud.processes import identify, tethered
from localcloud.progress import Narrator

_TOLD_LINES = 40


class BuildError(Exception):
    """Something could not be brought to this computer, or not be compiled here."""


def lines_of(
    command: list[str], *, called: str = "", cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The lines that a command prints; it ends when the caller stops listening.

    Args:
        command: the program and its arguments.
        called: what a failure calls it, by default the program and its first argument.
        cwd: where it runs.
        variables: its whole environment, by default this process's.

    Raises:
        BuildError: it failed; with its last lines.
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
        start_new_session=True,  # a group of its own, so that what it starts can be ended with it
    )
    assert process.stdout is not None
    identity = identify(process.pid, command[0])
    try:
        for line in process.stdout:
            tail = [*tail[-_TOLD_LINES:], line]
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
    """Hold the cache's lock; it goes with the process, so a dead builder blocks nobody."""
    with (cache / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            narrator.say(f"Another process is building {what}; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
