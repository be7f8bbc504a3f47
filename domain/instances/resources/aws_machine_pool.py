"""AWSMachinePool: an Auto Scaling group of the same name. The AWS provider makes it and its hooks, we label it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from domain.identity import Kind
from domain.instances import AWS_MACHINE_POOL
from domain.instances.constants import CLUSTER_LABEL, PAUSED_ANNOTATION
from domain.instances.names import GroupKey, group_of_arn, instance_of_provider_id
from domain.instances.resources.machine import held_by_cluster, only_the_hold
from domain.resource import Condition, CustomResource, KubeModel


class LifecycleHook(KubeModel):
    """A hook of the group. `heartbeat_timeout` is a Go duration, absent for an hour."""

    name: str = ""
    lifecycle_transition: str = ""
    heartbeat_timeout: str | None = None
    default_result: str | None = None
    notification_metadata: str | None = None


class AWSMachinePoolSpec(KubeModel):
    """Of the spec, what says which group and which instances are meant."""

    provider_id: str = Field("", alias="providerID", description="The ARN of the Auto Scaling group.")
    provider_id_list: tuple[str, ...] = Field((), alias="providerIDList")
    lifecycle_hooks: tuple[LifecycleHook, ...] = ()
    capacity_rebalance: bool = False


class AWSMachinePoolStatus(KubeModel):
    """Of the status, whether Cluster API holds it."""

    conditions: tuple[Condition, ...] = ()

    _only_read = field_validator("conditions", mode="before")(only_the_hold)


class AWSMachinePool(CustomResource):
    """One group of instances."""

    kind_of: ClassVar[Kind] = AWS_MACHINE_POOL

    spec: AWSMachinePoolSpec = AWSMachinePoolSpec()
    status: AWSMachinePoolStatus = AWSMachinePoolStatus()

    @property
    def group(self) -> GroupKey | None:
        """Its group, None until there is one."""
        return group_of_arn(self.spec.provider_id)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """The instances that the provider saw in the group last."""
        found = (instance_of_provider_id(each) for each in self.spec.provider_id_list)
        return tuple(each for each in found if each)

    @property
    def cluster(self) -> str:
        """The name of the Cluster it belongs to."""
        return self.metadata.labels.get(CLUSTER_LABEL, "")

    @property
    def paused(self) -> bool:
        """True while Cluster API holds it, by the annotation's presence or with its whole Cluster."""
        return PAUSED_ANNOTATION in self.metadata.annotations or held_by_cluster(self.status.conditions)
