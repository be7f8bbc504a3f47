"""The parts of Services and Nodes that load balancers depend on, and an installation's settings for all Services."""

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
    type: str = ""
    load_balancer_class: str | None = None
    load_balancer_source_ranges: tuple[str, ...] | None = None
    allocate_load_balancer_node_ports: bool | None = None
    ip_families: tuple[str, ...] = ()
    ports: tuple[Port, ...] = ()


class Ingress(KubeModel):
    ip: str = ""
    hostname: str = ""


class LoadBalancerIngress(KubeModel):
    ingress: tuple[Ingress, ...] = ()


class ServiceCondition(KubeModel):
    """A condition of a Service; a write must contain all conditions."""

    type: str = ""
    status: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""
    reason: str = ""
    message: str = ""


class ServiceStatus(KubeModel):
    load_balancer: LoadBalancerIngress = LoadBalancerIngress()
    conditions: tuple[ServiceCondition, ...] = ()


class Service(KubeModel):
    kind_of: ClassVar[Kind] = SERVICE

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceSpec = ServiceSpec()
    status: ServiceStatus = ServiceStatus()

    @property
    def ingress(self) -> tuple[Ingress, ...]:
        return self.status.load_balancer.ingress

    @property
    def held(self) -> bool:
        return SERVICE_FINALIZER in self.metadata.finalizers


class Taint(KubeModel):
    key: str = ""


class NodeCondition(KubeModel):
    type: str = ""
    status: str = ""


class NodeAddress(KubeModel):
    type: str = ""
    address: str = ""


class NodeSpec(KubeModel):
    taints: tuple[Taint, ...] = ()


class NodeStatus(KubeModel):
    conditions: tuple[NodeCondition, ...] = ()
    addresses: tuple[NodeAddress, ...] = ()


class Node(KubeModel):
    kind_of: ClassVar[Kind] = NODE

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class InvolvedObject(KubeModel):
    name: str = ""


class BalancerEvent(KubeModel):
    kind_of: ClassVar[Kind] = EVENT

    metadata: ObjectMeta = ObjectMeta()
    involved_object: InvolvedObject = InvolvedObject()


class Installation(Model):
    """Each field is the setting of the same name with the prefix `loadbalancers_`."""

    namespace: str  # the namespace of LoadBalancers and of the credentials Secret
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
    classes: tuple[str, ...] = Field(default=(DEFAULT_CLASS,))  # classes that are served; if empty, yawol's own class
    unclassed: bool = True  # Services without a class are served
    # Whether our finalizer is removed from a Service whose new class this installation does not serve. yawol keeps the
    # finalizer, because another installation may serve that class; if none does, the Service hangs in deletion.
    release_foreign: bool = False
