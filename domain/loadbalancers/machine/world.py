"""What the decision about a machine sees: the machine, its LoadBalancer, and what it has in the cloud.

The cluster is observed whenever the machine is woken, the cloud only when the machine is not what it was when the cloud
was last seen (`cloud/looks.py`), and after a step that failed. What a step brings is folded into what was seen.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import ClassVar, Self

from domain.decision import Action, Queue
from domain.identity import Key
from domain.loadbalancers.cloud.changes import Brought, machine_changed
from domain.loadbalancers.cloud.looks import look_of_machine
from domain.loadbalancers.cloud.machine import MachinePlan, plan_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.served import ServedBalancer
from domain.loadbalancers.cloud.steps import IN_OPENSTACK
from domain.loadbalancers.cloud.world import CloudWorld
from domain.loadbalancers.health import Timings
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.model import Model
from domain.writes import patched

LEAVING = "leaving"  # what the cloud was seen for, of a machine that is being deleted


class MachineKnown(Model):
    """What a machine's workflow knows beside the custom resource; losing it costs a look at the cloud.

    Attributes:
        version: the resourceVersion that it left the object with: an older one is not read again.
        settled: what the cloud was found whole for, see `MachineWorld.look`.
        granted: the mark under which its rights were made in this life, see `access_mark`.
        revoked: its rights are deleted.
        server_gone: the recorded server that does not exist any more.
        blocked_since: since when something in the cloud stands in the way that no call has refused.
        told: when the Event of this digest was written.
    """

    version: str = ""
    settled: str = ""
    granted: str = ""
    revoked: bool = False
    server_gone: str = ""
    blocked_since: datetime | None = None
    told: dict[str, datetime] = {}


class FleetReports(Model):
    """Until when a silence of the whole fleet is believed; None if somebody reports."""

    silent_until: datetime | None = None


class MachineWorld(CloudWorld):
    """One LoadBalancerMachine.

    Attributes:
        machine: as it was observed, and changed by own writes since.
        balancer: its LoadBalancer, None if there is none.
        orphan: no set has it among its own.
        left_to: why machines are left to the replaced controller; `sets_left_to`: the same for sets.
        again: when observing again can differ although nothing is written.
        cloud: its candidates in the cloud; None where they have not been seen.
        seen: what they were seen for; they may show less than there is if it is not `look`.
        seen_at: when.
        changes: how many steps have ended since the workflow began; a look during which one ends shows perhaps less.
        fleet: whether any other machine reports; None if that has not been asked since the last observation.
    """

    machine: LoadBalancerMachine = LoadBalancerMachine()
    balancer: ServedBalancer | None = None
    orphan: bool = False
    left_to: str = ""
    sets_left_to: str = ""
    again: datetime | None = None
    timings: Timings = Timings()
    cloud: MachineCloud | None = None
    seen: str = ""
    seen_at: datetime | None = None
    changes: int = 0
    fleet: FleetReports | None = None
    known: MachineKnown = MachineKnown()

    @property
    def look(self) -> str:
        """All of the machine that its objects in the cloud rest on."""
        return LEAVING if self.machine.metadata.deleting else look_of_machine(self.machine, self.balancer)

    @property
    def project(self) -> ProjectReference:
        """Where its objects in the cloud are."""
        return ProjectReference.of(self.machine.spec.infrastructure, self.machine.metadata.namespace)

    @property
    def plan(self) -> MachinePlan | None:
        """What it lacks in the cloud, by what was seen; None where that is not known."""
        if self.cloud is None or self.balancer is None:
            return None
        return plan_machine(
            self.machine, self.cloud, security_group_id=self.balancer.group_id, debug=self.balancer.debug
        )

    def recall(self, before: Self) -> Self:
        """The cloud stays as it was seen, unless a step has failed or something stands in the way there."""
        kept = ["changes"]
        if not (before.stale or before.known.blocked_since):
            kept += ["cloud", "seen", "seen_at"]
        return super().recall(before).model_copy(update={name: getattr(before, name) for name in kept})

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the machine: for the cloud it is as it was."""
        if gone:
            return self.model_copy(update={"exists": False})
        world = self.model_copy(update={"machine": patched(self.machine, patch, resource_version)})
        if self.seen == self.look:
            world = world.model_copy(update={"seen": world.look})
        settled = world.look if self.known.settled == self.look else self.known.settled
        return world.learn(version=resource_version, settled=settled)._noted()

    def brought(self, brought: Brought) -> Self:
        """This world after a step in the cloud."""
        world = self.model_copy(update={"changes": self.changes + 1})
        if brought.gone and brought.gone == self.machine.status.server_id:
            world = world.learn(server_gone=brought.gone)
        if self.cloud is None:
            return world
        return world.model_copy(update={"cloud": machine_changed(self.cloud, brought)})._noted()

    def looked(self, cloud: MachineCloud, at: datetime) -> Self:
        """This world after a look at the cloud."""
        seen = {"cloud": cloud, "seen": self.look, "seen_at": at, "stale": False}
        return self.model_copy(update=seen)._noted()

    def _noted(self) -> Self:
        plan = None if self.machine.metadata.deleting or self.seen != self.look else self.plan
        if plan is None:
            return self
        whole = plan.settled and not plan.status
        since = (self.known.blocked_since or self.seen_at) if plan.problem else None
        world = self
        if whole:  # nothing is refused any more
            refusals = {slot: each for slot, each in self.refusals.items() if not slot.startswith(IN_OPENSTACK)}
            world = self.model_copy(update={"refusals": refusals})
        return world.learn(settled=self.look if whole else "", blocked_since=since)


class ObserveMachine(Action):
    """Read the machine, its LoadBalancer, and whether a set looks after it."""

    activity: ClassVar[str] = "loadbalancers.observe_machine"
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = MachineWorld
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)

    key: Key
    memory: MachineKnown = MachineKnown()
    outdated: bool = False
    dry_run: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "read the machine and its LoadBalancer"
