"""Services and Nodes, as far as load balancers depend on them, and what an installation gives to all its Services."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.built_in_kinds import EVENT, NODE
from domain.identity import Kind
from domain.loadbalancers import SERVICE
from domain.loadbalancers.constants import DEFAULT_CLASS, SERVICE_FINALIZER
from domain.loadbalancers.resources import Port
from domain.model import Model
from domain.resource import KubeModel, ObjectMeta

LOAD_BALANCER_TYPE = "LoadBalancer"


class ServiceSpec(KubeModel):
    """What the Service asks for."""

    type: str = ""
    load_balancer_class: str | None = None
    load_balancer_source_ranges: tuple[str, ...] | None = None
    allocate_load_balancer_node_ports: bool | None = None
    ip_families: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()


class Ingress(KubeModel):
    """An address of the Service."""

    ip: str = ""
    hostname: str = ""


class LoadBalancerIngress(KubeModel):
    """The addresses of the Service."""

    ingress: tuple[Ingress, ...] = ()


class ServiceCondition(KubeModel):
    """How the Service stands; whoever writes one has to write all of them."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
    reason: str = ""
    message: str = ""


class ServiceStatus(KubeModel):
    """What the Service was given."""

    load_balancer: LoadBalancerIngress = LoadBalancerIngress()
    conditions: tuple[ServiceCondition, ...] = ()


class Service(KubeModel):
    """A Service of the cluster that is served."""

    kind_of: ClassVar[Kind] = SERVICE

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def ingress(self) -> tuple[Ingress, ...]:
        """The addresses that it was given."""
        return self.status.load_balancer.ingress

    @property
    def held(self) -> bool:
        """Whether it waits for us before it goes."""
        return SERVICE_FINALIZER in self.metadata.finalizers


class Taint(KubeModel):
    """What keeps pods away from a node."""

    key: str = ""


class NodeCondition(KubeModel):
    """How a node stands."""

    type: str = ""
    status: str = ""


class NodeAddress(KubeModel):
    """One of a node's addresses."""

    type: str = ""
    address: str = ""


class NodeSpec(KubeModel):
    """What a node is asked to do."""

    taints: tuple[Taint, ...] = ()


class NodeStatus(KubeModel):
    """What a node is."""

    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(KubeModel):
    """A node of the cluster that is served."""

    kind_of: ClassVar[Kind] = NODE

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class InvolvedObject(KubeModel):
    """What an Event is about."""

    name: str = ""


class BalancerEvent(KubeModel):
    """An Event about a LoadBalancer."""

    kind_of: ClassVar[Kind] = EVENT

    metadata: ObjectMeta = ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()


class Installation(Model):
    """What an installation gives to all of its Services; the variables and flags of yawol's cloud controller.

    Attributes:
        control_namespace: where LoadBalancers live, and the Secret with the credentials.
        classes: which classes of Services are served; with none, yawol's own.
        unclassed: whether Services without a class are served too.
        release_foreign: whether a Service whose class went elsewhere loses our finalizer. yawol leaves it, because
            another installation of it would put it back; the Service can then hang in deletion.
    """

    control_namespace: str
    secret_name: str
    floating_net_id: str
    network_id: str
    subnet_id: str | None = None
    flavor_id: str | None = None
    flavor_name: str | None = None
    flavor_search: str | None = None
    image_id: str | None = None
    image_name: str | None = None
    image_search: str | None = None
    availability_zone: str = ""
    internal: bool = False
    classes: tuple[str, ...] = Field(default=(DEFAULT_CLASS,))
    unclassed: bool = True
    release_foreign: bool = False

    def serves(self, service: Service) -> bool:
        """Whether a Service of this class is ours; its annotation counts more than its field."""
        wanted = class_of(service)
        if not wanted:
            return self.unclassed or "" in self.classes
        return wanted in (self.classes or (DEFAULT_CLASS,))

    def wants(self, service: Service) -> bool:
        """Whether this Service is to have a load balancer."""
        of_type = service.spec.type == LOAD_BALANCER_TYPE
        return of_type and self.serves(service) and not service.metadata.deleting

    def concerns(self, service: Service) -> bool:
        """Whether this Service wants a load balancer, or waits for us before it goes."""
        return self.wants(service) or (service.held and self.lets_go(service))

    def lets_go(self, service: Service) -> bool:
        """Whether our finalizer comes off a Service of which nothing is left, or may be another installation's.

        A Service that becomes one of another type loses the class of its spec with it: then nobody serves it.
        """
        unclassed = service.spec.type != LOAD_BALANCER_TYPE and not class_of(service)
        return unclassed or self.release_foreign or self.serves(service)


CLASS_ANNOTATION = "yawol.stackit.cloud/className"


def class_of(service: Service) -> str:
    """The class of a Service, empty if it has none."""
    return service.metadata.annotations.get(CLASS_ANNOTATION, "") or service.spec.load_balancer_class or ""
