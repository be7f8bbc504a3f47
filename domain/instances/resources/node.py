"""Node: an instance without AWSMachine or machine pool, in Perdure's own cluster. Perdure labels and drains it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import NODE
from domain.instances.constants import NODE_CONTROL_PLANE_LABEL, NODE_GROUP_LABELS
from domain.instances.provider_ids import instance_of_node
from domain.instances.resources.cluster_api import ObservedStatus
from domain.resource import CustomResource, KubeModel

_READY = "Ready"


class NodeSpec(KubeModel):
    provider_id: str = Field("", alias="providerID")
    unschedulable: bool = False


class NodeStatus(ObservedStatus):
    """Of a Node's status only the condition `Ready` is read."""

    read: ClassVar[tuple[str, ...]] = (_READY,)


class Node(CustomResource):
    kind_of: ClassVar[Kind] = NODE

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
    # Not a field of the API: whether the Pod of its etcd member is ready.
    etcd_healthy: bool = True

    @property
    def instance_id(self) -> str:
        """The id of its EC2 instance; empty if it has no instance yet, or belongs to another cloud."""
        return instance_of_node(self.spec.provider_id)

    @property
    def cluster(self) -> str:
        return ""

    @property
    def pool_label(self) -> str:
        return next((name for name in NODE_GROUP_LABELS if name in self.metadata.labels), "")

    @property
    def pool(self) -> str:
        """The node group, node pool or instance group; empty if no label names one."""
        return self.metadata.labels.get(self.pool_label, "")

    @property
    def control_plane(self) -> bool:
        return NODE_CONTROL_PLANE_LABEL in self.metadata.labels

    @property
    def node_ready(self) -> bool:
        return self.status.shows(_READY)
