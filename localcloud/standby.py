"""Imports a program in advance, and starts it on request: `python -m localcloud.standby MODULE[,MODULE...] ARG...`.

The request is a line of JSON with environment variables, which the supervisor writes to standard input. `main()` of
the first module then runs in its own session.
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
    # Linux divides the CPU among sessions (sched_autogroup). The imports ran in the supervisor's session, so that they
    # do not slow down the services, which have their own sessions.
    os.setsid()
    for name, value in json.loads(word).items():
        os.environ.setdefault(name, value)
    sys.argv = [modules[0], *arguments]
    program.main()


if __name__ == "__main__":
    main()
