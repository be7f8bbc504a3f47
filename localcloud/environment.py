"""Entering a deployment: this process from now on sees its cluster, its Temporal and its clouds, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.deployment import Deployment


def enter(deployment: Deployment) -> None:
    """Make the environment that of a program of the deployment; call it before a client is made."""
    wanted = deployment.program_env()
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)


@contextmanager
def kept() -> Iterator[None]:
    """This process' environment is at the end what it was at the beginning: the next deployment inherits it."""
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
