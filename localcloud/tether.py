"""Run a program that dies with its parent: `python tether.py SIGNAL PARENT_PID PROGRAM ARG...`.

Linux sends a process the signal of PR_SET_PDEATHSIG (prctl(2)) when the thread that forked it ends, however it ends,
SIGKILL included. The setting survives execve, so this file sets it and becomes PROGRAM. The parent may have died before
the setting was made; its pid is compared afterwards, which closes the gap. Imports nothing that takes time.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent and become the program."""
    signal_number, parent, program, *rest = arguments
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(signal_number), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != int(parent):
        os._exit(1)
    os.execvp(program, [program, *rest])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
