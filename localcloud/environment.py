"""Entering a deployment: this process from now on sees its cluster, its Temporal and its clouds, and no others."""

from __future__ import annotations

import os

from localcloud.deployment import Deployment


def enter(deployment: Deployment) -> None:
    """Make the environment that of a program of the deployment; call it before a client is made."""
    wanted = deployment.program_env()
    for name in set(os.environ) - set(wanted):
        del os.environ[name]
    os.environ.update(wanted)
