"""What the decision about a LoadBalancer sees, and what its lifecycle does beside the steps in the cloud."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from domain.decision import Action, Queue
from domain.loadbalancers.cloud.changes import Brought, changed
from domain.loadbalancers.cloud.load_balancer import plan_cloud
from domain.loadbalancers.cloud.looks import look_of_balancer, look_of_rules
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.steps import Look, Observe, Seen
from domain.loadbalancers.cloud.world import LEAVING, CloudKnown, CloudWorld, Judged
from domain.loadbalancers.migration import migrated
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.model import Model
from domain.schema import Document
from domain.writes import JsonPatch, Patch, Written


class BalancerKnown(CloudKnown):
    """Also what it has done.

    Attributes:
        drops_conditions: the API server drops conditions, as the replaced operator's definition has it do.
        released: its status says that nothing in the cloud is left.
    """

    drops_conditions: bool = False
    released: bool = False


class BalancerWorld(CloudWorld):
    """One LoadBalancer, and the sets with its labels."""

    about: ClassVar[str] = "balancer"

    balancer: LoadBalancer = LoadBalancer()
    sets: tuple[LoadBalancerSet, ...] = ()
    cloud: LoadBalancerCloud | None = None
    known: BalancerKnown = BalancerKnown()

    @property
    def look(self) -> str:
        """All that its objects in the cloud rest on, and behind the slash what the rules of its group alone rest on."""
        if self.balancer.metadata.deleting:
            return LEAVING
        return f"{look_of_balancer(self.balancer)}/{look_of_rules(self.balancer)}"

    @property
    def only_rules(self) -> bool:
        """Whether nothing has changed since the cloud was found whole but what the rules rest on."""
        return bool(self.known.settled) and self.known.settled.partition("/")[0] == self.look.partition("/")[0]

    @property
    def project(self) -> ProjectReference:
        """Where its objects in the cloud are."""
        return ProjectReference.of(self.balancer.spec.infrastructure, self.balancer.metadata.namespace)

    def judged(self) -> Judged | None:
        """Whether all of it is as it should be."""
        if self.balancer.metadata.deleting or self.cloud is None or self.seen_at is None:
            return None
        plan = plan_cloud(migrated(self.balancer), self.cloud, self.seen_at)
        return Judged(plan.settled and not plan.status, plan.problem)

    def after(self, brought: Brought) -> LoadBalancerCloud:
        """The cloud after a step."""
        return changed(self.cloud or LoadBalancerCloud(), brought)


class ObserveBalancer(Observe):
    """Read the LoadBalancer and its sets."""

    activity: ClassVar[str] = "loadbalancers.observe_load_balancer"
    title: ClassVar[str] = "read the load balancer and its sets"
    result: ClassVar[type[Model] | None] = BalancerWorld

    memory: BalancerKnown = BalancerKnown()


class SeenBalancer(Seen):
    """What a LoadBalancer has in the cloud."""

    cloud: LoadBalancerCloud


class LookAtBalancer(Look):
    """Find a LoadBalancer's objects, or its security groups alone."""

    activity: ClassVar[str] = "openstack.look_at_load_balancer"
    result: ClassVar[type[Model] | None] = SeenBalancer

    balancer: LoadBalancer
    groups_only: bool = False

    @property
    def summary(self) -> str:
        """For the timeline."""
        return "find its security group in OpenStack" if self.groups_only else "find its objects in OpenStack"


class WriteStatus(Patch):
    """A write of the status; what the API server drops of it is not written again."""

    releases: bool = False  # it says that nothing in the cloud is left

    def fold(self, world: BalancerWorld, result: Model | None) -> BalancerWorld:  # type: ignore[override]
        """The status as it is now."""
        after = super().fold(world, result)
        assert isinstance(after, BalancerWorld)  # noqa: S101 - the same world
        if isinstance(result, Written) and "conditions" in result.dropped:
            after = after.learn(drops_conditions=True)
        return after.learn(released=True) if self.releases else after


class _SetAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=2)
    heartbeat: ClassVar[timedelta] = timedelta(seconds=10)

    namespace: str


class CreateSet(_SetAction):
    """Make a set. That there is one of its name already asks for an observation."""

    activity: ClassVar[str] = "loadbalancers.create_set"
    title: ClassVar[str] = "create LoadBalancerSet {name}"
    result: ClassVar[type[Model] | None] = LoadBalancerSet
    awaited_when_cancelled: ClassVar[bool] = True

    name: str
    document: Document

    def fold(self, world: BalancerWorld, result: Model | None) -> BalancerWorld:  # type: ignore[override]
        """One more."""
        assert isinstance(result, LoadBalancerSet)  # noqa: S101 - the activity's type
        return world.model_copy(update={"sets": (*world.sets, result)})


class PatchSet(_SetAction):
    """Bring a set up to date, or empty it."""

    activity: ClassVar[str] = "loadbalancers.patch_set"
    slot_by: ClassVar[str] = "name"
    observed_after: ClassVar[bool] = True

    name: str
    patch: JsonPatch
    note: str = ""

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"patch LoadBalancerSet {self.name}: {self.note}" if self.note else f"patch LoadBalancerSet {self.name}"


class DeleteSets(_SetAction):
    """Ask for the deletion of sets."""

    activity: ClassVar[str] = "loadbalancers.delete_sets"
    observed_after: ClassVar[bool] = True

    names: tuple[str, ...]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete LoadBalancerSet {', '.join(self.names)}"
