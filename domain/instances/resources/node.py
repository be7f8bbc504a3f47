"""Node: an instance of Perdure's own cluster without AWSMachine and machine pool. Perdure labels and drains it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from domain.identity import Kind
from domain.instances import NODE
from domain.instances.constants import NODE_CONTROL_PLANE_LABEL, NODE_GROUP_LABELS
from domain.instances.names import instance_of_node
from domain.resource import Condition, CustomResource, KubeModel, condition_of

_READY = "Ready"


class NodeSpec(KubeModel):
    """What the Node runs on, and whether it is cordoned."""

    provider_id: str = Field("", alias="providerID")
    unschedulable: bool = False


class NodeStatus(KubeModel):
    """Of the status only the condition `Ready` is read, because observations enlarge Temporal's histories."""

    conditions: tuple[Condition, ...] = ()

    @field_validator("conditions", mode="before")
    @classmethod
    def _only_ready(cls, found: object) -> object:
        listed = found if isinstance(found, list | tuple) else ()
        return [each for each in listed if not isinstance(each, dict) or each.get("type") == _READY]


class Node(CustomResource):
    """A Node of Perdure's own cluster."""

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
    def pool(self) -> str:
        """The node group, node pool or instance group; empty if no label names one."""
        return next((self.metadata.labels[name] for name in NODE_GROUP_LABELS if name in self.metadata.labels), "")

    @property
    def control_plane(self) -> bool:
        return NODE_CONTROL_PLANE_LABEL in self.metadata.labels

    @property
    def node_ready(self) -> bool:
        ready = condition_of(self.status.conditions, _READY)
        return ready is not None and ready.status == "True"
