"""Have imported all that a program needs when it may start: `python -m localcloud.standby MODULE[,MODULE...] ARG...`.

A program of ours spends a second of CPU on imports, and comes after servers that take seconds to start. So the
supervisor starts it together with them, and gives the word when they are ready: a line of JSON on standard input, with
the variables that they have settled for it. Then this process runs `main()` of the first module; the others are those
that it would import later.

Until then it belongs to the supervisor's session: Linux gives each session the same share of the CPU (sched_autogroup),
and so all that stand by together take no more of it than one server that is waited for.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from engine.garbage_collection import collect_seldom


def main() -> None:
    """Import, wait for the word, and become the program."""
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
