"""The process of a program that `forking.py` forks: `python -I -S forked.py SOCKET MODULE ARG...`.

It hands on its standard files, directory, environment and signals, and ends as the program does. SIGTSTP is handed on
as SIGSTOP, which no process can catch. Imports nothing that takes time.
"""

from __future__ import annotations

import marshal
import os
import signal
import socket
import sys

_HANDED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCONT, signal.SIGTSTP)


def main(address: str, module: str, *arguments: str) -> None:
    """Ask for the program, and wait for its end."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _HANDED_ON)  # until the program can get the signal
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)

    def hand_on(number: int, _: object) -> None:
        server.send(bytes([signal.SIGSTOP if number == signal.SIGTSTP else number]))

    request = marshal.dumps((module, list(arguments), os.getcwd(), dict(os.environ)))
    socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
    server.sendall(request)
    for number in _HANDED_ON:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDED_ON)
    for file in (0, 1, 2):
        os.close(file)
    status = os.waitstatus_to_exitcode(int.from_bytes(server.recv(4), "big"))
    if status < 0:
        if -status in _HANDED_ON:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


main(*sys.argv[1:])
