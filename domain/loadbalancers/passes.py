"""The passes of the area: each is one activity that observes, decides, acts, and hands back what it came to."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue, World
from domain.identity import Key
from domain.model import Model
from domain.passes import PassedWorld

# A pass makes a few calls to OpenStack, each of which may take its whole time-out.
LONGEST_PASS = timedelta(minutes=5)
HEARTBEAT = timedelta(seconds=10)


class LoadBalancerWorld(PassedWorld):
    """What a pass came to."""

    def recall(self, before: World) -> LoadBalancerWorld:
        """A pass carries nothing: everything is on the objects and in the cloud."""
        return self.model_copy(update={"refusals": before.refusals})


class _Pass(Action):
    queue: ClassVar[Queue] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = LoadBalancerWorld
    start_to_close: ClassVar[timedelta] = LONGEST_PASS
    heartbeat: ClassVar[timedelta | None] = HEARTBEAT

    key: Key
    dry_run: bool = False


class PassLoadBalancer(_Pass):
    """Bring a LoadBalancer's objects in the cloud and its sets to what they have to be."""

    activity: ClassVar[str] = "loadbalancers.pass_load_balancer"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "look at the load balancer, its objects in the cloud and its sets, and mend what differs"


class PassSet(_Pass):
    """Bring a set's machines to their number, judge their health, replace what is dead."""

    activity: ClassVar[str] = "loadbalancers.pass_set"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "count the set's machines, judge them, make and give up machines"


class PassMachine(_Pass):
    """Bring a machine's rights, port and server to what they have to be."""

    activity: ClassVar[str] = "loadbalancers.pass_machine"

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "look at the machine's rights, port and server, and mend what differs"
