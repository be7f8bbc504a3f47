"""Ends a process that has loaded Temporal's Rust core.

The core's threads crash while the interpreter is finalised (5 of 32 clean exits; sdk-python #300). So the process does
the clean-up itself and exits without finalisation.
"""

from __future__ import annotations

import logging
import os
import sys
from contextlib import suppress
from typing import NoReturn


def exit_now(code: int) -> NoReturn:
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader has gone, as in `perdure list | head`
            stream.flush()
    # The kubernetes package writes a kubeconfig's keys to files and deletes them at the interpreter's exit.
    if loader := sys.modules.get("kubernetes.aio.config.kube_config"):
        loader._cleanup_temp_files()
    os._exit(code)
