"""Imports a program in advance, and starts it on request: `python -m localcloud.standby MODULE[,MODULE...] ARG...`.

Imports take a second of CPU, and our programs wait for servers that take seconds to start. So the supervisor starts
this process early, and later sends a line of JSON with variables to its standard input. It then runs `main()` of the
first module; the other modules are imported in advance too.

Until then it stays in the supervisor's session: Linux shares the CPU per session (sched_autogroup), so all waiting
programs together take at most one server's share.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from engine.garbage_collection import collect_seldom


def main() -> None:
    collect_seldom()
    modules, arguments = sys.argv[1].split(","), sys.argv[2:]
    program, *_ = [importlib.import_module(name) for name in modules]
    word = sys.stdin.readline()
    if not word:
        return  # the supervisor is gone
    os.setsid()
    for name, value in json.loads(word).items():
        os.environ.setdefault(name, value)
    sys.argv = [modules[0], *arguments]
    program.main()


if __name__ == "__main__":
    main()
