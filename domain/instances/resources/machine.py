"""Machine: what Cluster API replaces as a whole. Deleting it cordons, drains and terminates, in that order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import MACHINE
from domain.instances.constants import CLUSTER_LABEL, CONTROL_PLANE_LABEL, PAUSED_ANNOTATION, PAUSED_CONDITION
from domain.resource import Condition, CustomResource, KubeModel, condition_of


class NodeReference(KubeModel):
    """The Node in the workload cluster."""

    name: str = ""
    uid: str = ""


class MachineSpec(KubeModel):
    """Which cluster it belongs to, and its instance."""

    cluster_name: str = ""
    provider_id: str = Field("", alias="providerID")


class MachineStatus(KubeModel):
    """Its Node, once it has joined; Cluster API tells by a condition whether that is ready."""

    phase: str = ""
    node_ref: NodeReference | None = None
    conditions: tuple[Condition, ...] = ()


def held_by_cluster(conditions: Iterable[Condition]) -> bool:
    """Whether controllers say that they hold an object: `Paused` is true also while its Cluster's spec is paused."""
    paused = condition_of(conditions, PAUSED_CONDITION)
    return paused is not None and paused.status == "True"


def only_the_hold(found: object) -> object:
    """The condition that tells of a hold alone: looks are part of histories, and the provider writes a dozen."""
    listed = found if isinstance(found, list | tuple) else ()
    return [each for each in listed if not isinstance(each, dict) or each.get("type") == PAUSED_CONDITION]


class Machine(CustomResource):
    """One machine of a cluster."""

    kind_of: ClassVar[Kind] = MACHINE

    spec: MachineSpec = MachineSpec()
    status: MachineStatus = MachineStatus()

    @property
    def cluster(self) -> str:
        """The name of the Cluster it belongs to."""
        return self.metadata.labels.get(CLUSTER_LABEL, self.spec.cluster_name)

    @property
    def control_plane(self) -> bool:
        """True for machines that run the cluster's own API servers."""
        return CONTROL_PLANE_LABEL in self.metadata.labels

    @property
    def paused(self) -> bool:
        """True while Cluster API holds it, by the annotation's presence or with its whole Cluster."""
        return PAUSED_ANNOTATION in self.metadata.annotations or held_by_cluster(self.status.conditions)

    @property
    def node_ready(self) -> bool:
        """True while its Node is ready: `NodeHealthy` in v1beta1, `NodeReady` later."""
        ready = (condition_of(self.status.conditions, name) for name in ("NodeReady", "NodeHealthy"))
        return any(each is not None and each.status == "True" for each in ready)

    @property
    def node(self) -> str:
        """The name of its Node, empty until it has joined."""
        return self.status.node_ref.name if self.status.node_ref else ""
