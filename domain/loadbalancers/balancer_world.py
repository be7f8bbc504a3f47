from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from domain.decision import WhenUnwanted
from domain.loadbalancers.cloud.folded_results import Brought, changed
from domain.loadbalancers.cloud.load_balancer import CloudPlan, plan_cloud
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.observation_due import look_of_balancer, look_of_rules
from domain.loadbalancers.cloud.project_change import project_problem
from domain.loadbalancers.cloud.steps import Look, Observe, Seen
from domain.loadbalancers.cloud.world import LEAVING, CloudMemory, CloudWorld
from domain.loadbalancers.former_fields import migrated
from domain.loadbalancers.object_world import KubeAction
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.model import Model
from domain.notices import warning
from domain.schema import Document
from domain.writes import JsonPatch, Patch, Written


class BalancerMemory(CloudMemory):
    drops_conditions: bool = False  # the API server drops conditions, because the replaced operator's CRD is installed
    released: bool = False  # the status says that no cloud object is left


class BalancerWorld(CloudWorld):
    about: ClassVar[str] = "balancer"

    balancer: LoadBalancer = LoadBalancer()
    sets: tuple[LoadBalancerSet, ...] = ()
    cloud: LoadBalancerCloud | None = None
    known: BalancerMemory = BalancerMemory()

    @property
    def look(self) -> str:
        """The fingerprints `A/B`: A of the inputs of all cloud objects except rules, B of the inputs of the rules."""
        if self.balancer.metadata.deleting:
            return LEAVING
        return f"{look_of_balancer(self.balancer)}/{look_of_rules(self.balancer)}"

    @property
    def only_rules(self) -> bool:
        return bool(self.known.settled) and self.known.settled.partition("/")[0] == self.look.partition("/")[0]

    @property
    def plan(self) -> CloudPlan | None:
        return self.planned(self.seen_at) if self.seen_at else None

    def planned(self, now: datetime) -> CloudPlan | None:
        if self.balancer.metadata.deleting or self.cloud is None:
            return None
        today = migrated(self.balancer)
        if problem := project_problem(today, self.sets, self.cloud):
            return CloudPlan(problem=problem, notices=(warning("Failed", problem),))
        return plan_cloud(today, self.cloud, now)

    def after(self, brought: Brought) -> LoadBalancerCloud:
        return changed(self.cloud or LoadBalancerCloud(), brought)


class ObserveBalancer(Observe):
    activity: ClassVar[str] = "loadbalancers.observe_load_balancer"
    title: ClassVar[str] = "read the load balancer and its sets"
    result: ClassVar[type[Model] | None] = BalancerWorld

    memory: BalancerMemory = BalancerMemory()


class SeenBalancer(Seen):
    cloud: LoadBalancerCloud


class LookAtBalancer(Look):
    activity: ClassVar[str] = "openstack.look_at_load_balancer"
    result: ClassVar[type[Model] | None] = SeenBalancer

    balancer: LoadBalancer
    groups_only: bool = False

    @property
    def summary(self) -> str:
        return "find its security group in OpenStack" if self.groups_only else "find its objects in OpenStack"


class WriteStatus(Patch):
    """If the API server drops the conditions, remember this, so that they are not written again."""

    releases: bool = False  # the status says that no cloud object is left

    def fold(self, world: BalancerWorld, result: Model | None) -> BalancerWorld:  # type: ignore[override]
        after = super().fold(world, result)
        assert isinstance(after, BalancerWorld)  # noqa: S101 - the same world
        if isinstance(result, Written) and "conditions" in result.dropped:
            after = after.learn(drops_conditions=True)
        return after.learn(released=True) if self.releases else after


class CreateSet(KubeAction):
    """Create the set, or find the LoadBalancer's set of this name. If another owner has the set, the LoadBalancer is
    observed again.
    """

    activity: ClassVar[str] = "loadbalancers.create_set"
    title: ClassVar[str] = "create LoadBalancerSet {name}"
    result: ClassVar[type[Model] | None] = LoadBalancerSet
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.AWAITED

    namespace: str
    name: str
    document: Document

    def fold(self, world: BalancerWorld, result: Model | None) -> BalancerWorld:  # type: ignore[override]
        assert isinstance(result, LoadBalancerSet)  # noqa: S101 - the activity's type
        # An observation may have found the set before the answer of its creation came.
        others = [each for each in world.sets if each.metadata.name != result.metadata.name]
        return world.model_copy(update={"sets": (*others, result)})


class PatchSet(KubeAction):
    activity: ClassVar[str] = "loadbalancers.patch_set"
    title: ClassVar[str] = "patch LoadBalancerSet {name}: {note}"
    slot_by: ClassVar[str] = "name"
    observed_after: ClassVar[bool] = True

    namespace: str
    name: str
    patch: JsonPatch
    note: str


class DeleteSets(KubeAction):
    activity: ClassVar[str] = "loadbalancers.delete_sets"
    observed_after: ClassVar[bool] = True

    namespace: str
    names: tuple[str, ...]

    @property
    def summary(self) -> str:
        return f"delete LoadBalancerSet {', '.join(self.names)}"
