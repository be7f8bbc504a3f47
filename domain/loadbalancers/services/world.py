"""What the decision about a Service sees, and what it does with the Service's LoadBalancer."""

from __future__ import annotations

from typing import ClassVar

from domain.decision import Action, Queue
from domain.loadbalancers.object_world import ObjectWorld
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.services.objects import Installation, Node, Service
from domain.model import Model
from domain.notices import Notice
from domain.resource import ObjectMeta
from domain.schema import Document
from domain.writes import JsonPatch


class ServiceWorld(ObjectWorld):
    """One Service.

    Attributes:
        service: as it was observed, and changed by own writes since.
        balancer: the LoadBalancer of its name, if there is one.
        nodes: every node of the cluster, if the Service wants a load balancer.
        installation: what all Services are given; None where none are served.
    """

    about: ClassVar[str] = "service"

    service: Service = Service()
    balancer: LoadBalancer | None = None
    nodes: tuple[Node, ...] = ()
    installation: Installation | None = None


class FoundBalancer(Model):
    """The LoadBalancer after an action, None if it is gone."""

    balancer: LoadBalancer | None = None


BALANCER = "balancer"  # the slot of what is done with the LoadBalancer


class _BalancerAction(Action):
    queue: ClassVar[str] = Queue.LOAD_BALANCERS
    result: ClassVar[type[Model] | None] = FoundBalancer

    service: ObjectMeta
    namespace: str
    name: str

    @property
    def slot(self) -> str:
        """One for each Service."""
        return BALANCER

    def fold(self, world: ServiceWorld, result: Model | None) -> ServiceWorld:  # type: ignore[override]
        """The LoadBalancer as it is now."""
        assert isinstance(result, FoundBalancer)  # noqa: S101 - the activity's type
        return world.model_copy(update={"balancer": result.balancer})


class CreateBalancer(_BalancerAction):
    """Make the whole LoadBalancer in one request, and tell the Service."""

    activity: ClassVar[str] = "loadbalancers.create_load_balancer"
    title: ClassVar[str] = "create its LoadBalancer"

    document: Document
    notices: tuple[Notice, ...] = ()


class PatchBalancer(_BalancerAction):
    """Patch all that differs at once, in that very LoadBalancer, and tell the Service."""

    activity: ClassVar[str] = "loadbalancers.patch_load_balancer"
    title: ClassVar[str] = "patch its LoadBalancer"

    uid: str
    patch: JsonPatch
    notices: tuple[Notice, ...] = ()


class DeleteBalancer(_BalancerAction):
    """Ask for the deletion of that very LoadBalancer: its own lifecycle takes away what it has."""

    activity: ClassVar[str] = "loadbalancers.delete_load_balancer"
    title: ClassVar[str] = "delete its LoadBalancer"

    uid: str
