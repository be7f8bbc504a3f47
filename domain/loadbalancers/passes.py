"""The passes of the area: each is one activity that observes, decides, acts, and hands back what it came to.

A pass leaves a little memory for the next one. Losing it costs a look at the cloud, and nothing else.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar

from domain.decision import Action, Queue
from domain.identity import Key
from domain.model import Model
from domain.passes import PassedWorld

# A pass makes a few calls to OpenStack, each of which may take its whole time-out.
LONGEST_PASS = timedelta(minutes=5)
HEARTBEAT = timedelta(seconds=10)


class Memory(Model):
    """What a pass leaves for the next one.

    Attributes:
        version: the resourceVersion that it left the object with: an older one is not read again.
        next_sweep: when the projects are looked at again.
    """

    version: str = ""
    next_sweep: datetime | None = None


# Phases in which something stands in the way, or a pause runs: a person may have the next attempt made at once.
RETRYABLE = frozenset({"Waiting", "Scaling"})


class LoadBalancerWorld(PassedWorld):
    """What a pass came to."""

    known: Memory = Memory()


class _Pass(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = LoadBalancerWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta] = HEARTBEAT

    key: Key
    memory: Memory = Memory()
    dry_run: bool = False


class PassSet(_Pass):
    """Bring a set's machines to their number, judge their health, replace what is dead."""

    activity: ClassVar[str] = "loadbalancers.pass_set"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "count the set's machines, check their health, create and replace machines"


class SweepProjects(_Pass):
    """Look at every project once, and wake whoever differs from what it has there."""

    activity: ClassVar[str] = "loadbalancers.sweep_projects"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "compare all projects, and wake the objects that differ"
