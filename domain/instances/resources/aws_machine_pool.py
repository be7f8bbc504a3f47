"""AWSMachinePool: an Auto Scaling group of the same name. The AWS provider makes it and its hooks, we label it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import AWS_MACHINE_POOL
from domain.instances.constants import CLUSTER_LABEL, PAUSED_ANNOTATION
from domain.instances.names import GroupKey, group_of_arn, instance_of_provider_id
from domain.resource import CustomResource, KubeModel


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


class AWSMachinePool(CustomResource):
    """One group of instances."""

    kind_of: ClassVar[Kind] = AWS_MACHINE_POOL

    spec: AWSMachinePoolSpec = AWSMachinePoolSpec()

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
        """True while Cluster API holds it."""
        return PAUSED_ANNOTATION in self.metadata.annotations
