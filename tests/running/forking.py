"""Forks programs of ours from a process that has imported them: `python -m tests.running.forking FD MODULE...`.

    test ── Popen ──► forked.py ── its files, arguments, environment ──► forking.py
                          ▲                                                  │ fork
                          └── how the program ended; signals the other way ── keeper ── fork ──► the program

Each client has a keeper, which kills the program when the client is killed. FD is the socket that clients connect to.
A byte on standard output says that all is imported. Ends with its standard input; keepers end with their programs.
"""

from __future__ import annotations

import gc
import importlib
import marshal
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping

from domain.model import build_models

# How a client sends its request: the length, with its three standard files attached, and a marshalled Request.
LENGTH_BYTES = 4
# Module, arguments, directory, environment.
Request = tuple[str, list[str], str, dict[str, str]]


def main() -> None:
    """Import, and become the program of each client in a process of its own."""
    before = dict(os.environ)
    for name in sys.argv[2:]:
        importlib.import_module(name)
    build_models()
    _refuse_settings()
    imported = {name: value for name, value in os.environ.items() if before.get(name) != value}
    gc.freeze()
    listening = socket.socket(fileno=int(sys.argv[1]))
    os.write(1, b".")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for keepers
    while listening in select.select([listening, sys.stdin], [], [])[0]:
        client, _ = listening.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listening.close()
            module, arguments, directory, environment = _fork_kept(client)
            _become(module, arguments, directory, environment | imported)
        client.close()


def _refuse_settings() -> None:
    """What is imported here must not have read settings: each program has its own."""
    from engine.settings import settings

    assert settings.cache_info().currsize == 0, "a module reads settings while it is imported"


def _fork_kept(client: socket.socket) -> Request:
    """Fork the program, and keep it in the parent, which never returns; the program gets the client's request."""
    length, files, _, _ = socket.recv_fds(client, LENGTH_BYTES, 3)
    if not files:
        os._exit(0)  # the client was killed before it could ask
    requested = client.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)
    request: Request = marshal.loads(requested)
    program = os.fork()
    if program == 0:
        client.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        return request
    for file in (0, 1, 2, *files):  # a reader of the program's output must find its end
        os.close(file)
    ended = os.pidfd_open(program)
    while ended not in (ready := select.select([ended, client], [], [])[0]):
        numbers = client.recv(16) if ready else b""
        for number in numbers or (signal.SIGKILL,):
            os.kill(program, number)
        if not numbers:
            break
    _, status = os.waitpid(program, 0)
    try:
        client.sendall(status.to_bytes(LENGTH_BYTES, "big"))
    finally:
        os._exit(0)


def _become(module: str, arguments: list[str], directory: str, environment: Mapping[str, str]) -> None:
    """Run the program as `python -m MODULE ARG...` would, and exit as it does."""
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.path[:0] = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
    sys.argv = [module, *arguments]
    sys.exit(sys.modules[module].main())


if __name__ == "__main__":
    main()
