from __future__ import annotations

from typing import ClassVar, Self

from domain.decision import Action, Queue
from domain.loadbalancers.object_world import ObjectWorld
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.loadbalancers.services.synchronization import other_service
from domain.model import Model
from domain.notices import Notice
from domain.schema import Document
from domain.writes import JsonPatch


class ServiceWorld(ObjectWorld):
    about: ClassVar[str] = "service"

    service: Service = Service()
    balancer: LoadBalancer | None = None  # the LoadBalancer of its name; None if absent
    nodes: tuple[Node, ...] = ()  # every node of the cluster, if the Service needs a load balancer
    installation: Installation | None = None  # the settings for all Services; None if no Services are served

    @property
    def own(self) -> LoadBalancer | None:
        return None if other_service(self.service, self.balancer) else self.balancer

    def with_balancer(self, balancer: LoadBalancer | None) -> Self:
        world = self.model_copy(update={"balancer": balancer})
        return world.learn(balancer_generation=world.own.metadata.generation if world.own else 0)


class FoundBalancer(Model):
    balancer: LoadBalancer | None = None


BALANCER = "balancer"  # the slot of actions on the LoadBalancer


class _BalancerAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = FoundBalancer

    namespace: str
    name: str
    notices: tuple[Notice, ...] = ()

    @property
    def slot(self) -> str:
        return BALANCER

    def fold(self, world: ServiceWorld, result: Model | None) -> ServiceWorld:  # type: ignore[override]
        assert isinstance(result, FoundBalancer)  # noqa: S101 - the activity's type
        return world.with_balancer(result.balancer).with_news(*self.notices)


class CreateBalancer(_BalancerAction):
    activity: ClassVar[str] = "loadbalancers.create_load_balancer"
    title: ClassVar[str] = "create its LoadBalancer"

    document: Document


class PatchBalancer(_BalancerAction):
    activity: ClassVar[str] = "loadbalancers.patch_load_balancer"
    title: ClassVar[str] = "patch its LoadBalancer"

    uid: str
    patch: JsonPatch


class DeleteBalancer(_BalancerAction):
    activity: ClassVar[str] = "loadbalancers.delete_load_balancer"
    title: ClassVar[str] = "delete its LoadBalancer"

    uid: str
