"""Points this process at a deployment's cluster, Temporal and clouds, and at no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.deployment import Deployment


def enter(deployment: Deployment) -> None:
    """Replace this process's environment; call it before creating clients."""
    wanted = deployment.program_env()
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)


@contextmanager
def restored() -> Iterator[None]:
    before = dict(os.environ)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
