"""Machine: if it is deleted, Cluster API cordons and drains its Node, then terminates and replaces the instance."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from domain.identity import Kind
from domain.instances import MACHINE
from domain.instances.constants import CLUSTER_LABEL, CONTROL_PLANE_LABEL, PAUSED_ANNOTATION, PAUSED_CONDITION
from domain.resource import Condition, CustomResource, KubeModel, condition_of


class NodeReference(KubeModel):
    """The Node in the workload cluster."""

    name: str = ""
    uid: str = ""


class MachineSpec(KubeModel):
    """The Machine's cluster and instance."""

    cluster_name: str = ""
    provider_id: str = Field("", alias="providerID")


class HeldStatus(KubeModel):
    """Of the status only the condition `Paused` is read, because observations enlarge Temporal's histories, and the
    provider has a dozen conditions.

    Newer controllers set it also while the Cluster's own spec is paused.
    """

    conditions: tuple[Condition, ...] = ()

    @field_validator("conditions", mode="before")
    @classmethod
    def _only_the_hold(cls, found: object) -> object:
        listed = found if isinstance(found, list | tuple) else ()
        return [each for each in listed if not isinstance(each, dict) or each.get("type") == PAUSED_CONDITION]


class HeldObject(CustomResource):
    """An object of a Cluster, which can be paused."""

    status: HeldStatus = HeldStatus()

    @property
    def cluster(self) -> str:
        return self.metadata.labels.get(CLUSTER_LABEL, "")

    @property
    def paused(self) -> bool:
        """Whether the object is paused: by the annotation, or with its whole Cluster."""
        paused = condition_of(self.status.conditions, PAUSED_CONDITION)
        return PAUSED_ANNOTATION in self.metadata.annotations or (paused is not None and paused.status == "True")


class MachineStatus(HeldStatus):
    """The Node, once it has joined; a condition of Cluster API says whether it is ready."""

    node_ref: NodeReference | None = None

    @field_validator("conditions", mode="before")
    @classmethod
    def _only_the_hold(cls, found: object) -> object:
        return found


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
        """Whether the Node is ready: `NodeHealthy` in v1beta1, `NodeReady` later."""
        ready = (condition_of(self.status.conditions, name) for name in ("NodeReady", "NodeHealthy"))
        return any(each is not None and each.status == "True" for each in ready)

    @property
    def etcd_healthy(self) -> bool:
        """Whether KubeadmControlPlane finds its etcd member healthy; True for a Machine that has no etcd member."""
        condition = condition_of(self.status.conditions, "EtcdMemberHealthy")
        return condition is None or condition.status == "True"

    @property
    def node(self) -> str:
        return self.status.node_ref.name if self.status.node_ref else ""
