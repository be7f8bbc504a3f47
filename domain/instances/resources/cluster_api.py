"""The objects of Cluster API and its AWS provider.

If a Machine is deleted, Cluster API cordons and drains its Node, then terminates and replaces the instance. A
MachineDeployment and its MachineSets replace the Machine, and show whether replicas may be changed. The provider makes
an instance for each AWSMachine, asks EC2 and writes the status; for each AWSMachinePool it makes an Auto Scaling group
of the same name, and the group's hooks. Perdure labels AWSMachines and AWSMachinePools.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from domain.identity import Kind
from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL, MACHINE, MACHINE_DEPLOYMENT, MACHINE_SET
from domain.instances.constants import CLUSTER_LABEL, CONTROL_PLANE_LABEL, PAUSED_ANNOTATION, PAUSED_CONDITION
from domain.instances.provider_ids import group_of_arn, instance_of_provider_id
from domain.instances.workflow_ids import GroupKey
from domain.resource import Condition, CustomResource, KubeModel, condition_of

# `NodeHealthy` in v1beta1, `NodeReady` later.
_NODE_READY = ("NodeReady", "NodeHealthy")
_ETCD_HEALTHY = "EtcdMemberHealthy"


class NodeReference(KubeModel):
    """The Node in the workload cluster."""

    name: str = ""
    uid: str = ""


class MachineSpec(KubeModel):
    cluster_name: str = ""
    provider_id: str = Field("", alias="providerID")


class ObservedStatus(KubeModel):
    """Of the conditions only those in `read` are kept, because observations enlarge Temporal's histories, and the
    provider has a dozen conditions.

    Newer controllers set `Paused` also while the Cluster's own spec is paused.
    """

    read: ClassVar[tuple[str, ...]] = (PAUSED_CONDITION,)

    conditions: tuple[Condition, ...] = ()

    @field_validator("conditions", mode="before")
    @classmethod
    def _only_read(cls, found: object) -> object:
        listed = found if isinstance(found, list | tuple) else ()
        return [each for each in listed if not isinstance(each, dict) or each.get("type") in cls.read]

    def shows(self, *types: str) -> bool:
        """Whether a condition of one of these types is true."""
        return any(each.type in types and each.status == "True" for each in self.conditions)


class HeldObject(CustomResource):
    """An object that belongs to a Cluster and can be paused."""

    status: ObservedStatus = ObservedStatus()

    @property
    def cluster(self) -> str:
        return self.metadata.labels.get(CLUSTER_LABEL, "")

    @property
    def paused(self) -> bool:
        """Whether the object is paused: by the annotation, or with its whole Cluster."""
        return PAUSED_ANNOTATION in self.metadata.annotations or self.status.shows(PAUSED_CONDITION)


class MachineStatus(ObservedStatus):
    """The Node, once it has joined; a condition of Cluster API says whether it is ready."""

    read: ClassVar[tuple[str, ...]] = (PAUSED_CONDITION, *_NODE_READY, _ETCD_HEALTHY)

    node_ref: NodeReference | None = None


class Machine(HeldObject):
    kind_of: ClassVar[Kind] = MACHINE

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def cluster(self) -> str:
        return self.metadata.labels.get(CLUSTER_LABEL, self.spec.cluster_name)

    @property
    def control_plane(self) -> bool:
        return CONTROL_PLANE_LABEL in self.metadata.labels

    @property
    def node_ready(self) -> bool:
        return self.status.shows(*_NODE_READY)

    @property
    def etcd_healthy(self) -> bool:
        """Whether KubeadmControlPlane finds the Machine's etcd member healthy; True if it reports nothing."""
        condition = condition_of(self.status.conditions, _ETCD_HEALTHY)
        return condition is None or condition.status == "True"

    @property
    def node(self) -> str:
        return self.status.node_ref.name if self.status.node_ref else ""


class MachineDeploymentSpec(KubeModel):
    replicas: int | None = None
    paused: bool = False


class MachineDeploymentStatus(ObservedStatus):
    replicas: int = 0
    updated_replicas: int = 0  # made from the current template


class MachineDeployment(HeldObject):
    """Machines made from one template, through MachineSets of its own."""

    kind_of: ClassVar[Kind] = MACHINE_DEPLOYMENT

    spec: MachineDeploymentSpec = MachineDeploymentSpec()
    status: MachineDeploymentStatus = MachineDeploymentStatus()

    @property
    def paused(self) -> bool:
        return self.spec.paused or super().paused


class MachineSet(CustomResource):
    """Machines of one revision of a template; fetched only to find their owner."""

    kind_of: ClassVar[Kind] = MACHINE_SET


class AWSMachineSpec(KubeModel):
    """Immutable except for the ids, all of which the provider fills in once the instance exists."""

    provider_id: str = Field("", alias="providerID")
    instance_id: str = Field("", alias="instanceID")


class AWSMachine(HeldObject):
    kind_of: ClassVar[Kind] = AWS_MACHINE

    spec: AWSMachineSpec = AWSMachineSpec()

    @property
    def instance_id(self) -> str:
        return self.spec.instance_id or instance_of_provider_id(self.spec.provider_id)

    @property
    def machine(self) -> str:
        owners = self.metadata.owner_references
        return next((each.name for each in owners if each.kind == MACHINE.name), "")


class AWSMachinePoolSpec(KubeModel):
    provider_id: str = Field("", alias="providerID", description="The ARN of the Auto Scaling group.")
    provider_id_list: tuple[str, ...] = Field((), alias="providerIDList")


class AWSMachinePool(HeldObject):
    kind_of: ClassVar[Kind] = AWS_MACHINE_POOL

    spec: AWSMachinePoolSpec = AWSMachinePoolSpec()

    @property
    def group(self) -> GroupKey | None:
        return group_of_arn(self.spec.provider_id)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        found = (instance_of_provider_id(each) for each in self.spec.provider_id_list)
        return tuple(each for each in found if each)
