"""A world with objects in an OpenStack project: what a step has brought is folded into it."""

from __future__ import annotations

from typing import Self

from domain.decision import World
from domain.loadbalancers.cloud.changes import Brought


class CloudWorld(World):
    """What has been seen of a project, and changed there since."""

    stale: bool = False  # a step has failed since the project was looked at, and may have had its effect

    def brought(self, brought: Brought) -> Self:
        """This world after a step. Worlds that take steps define it."""
        raise NotImplementedError(f"{type(self).__name__} has nothing in the cloud")
