"""AWSMachinePool: an Auto Scaling group of that name. The AWS provider makes it and its hooks; Perdure labels it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import AWS_MACHINE_POOL
from domain.instances.names import GroupKey, group_of_arn, instance_of_provider_id
from domain.instances.resources.machine import HeldObject
from domain.resource import KubeModel


class AWSMachinePoolSpec(KubeModel):
    """The part of the spec that identifies the group and its instances."""

    provider_id: str = Field("", alias="providerID", description="The ARN of the Auto Scaling group.")
    provider_id_list: tuple[str, ...] = Field((), alias="providerIDList")


class AWSMachinePool(HeldObject):
    """A group of instances, managed by Cluster API's AWS provider."""

    kind_of: ClassVar[Kind] = AWS_MACHINE_POOL

    spec: AWSMachinePoolSpec = AWSMachinePoolSpec()

    @property
    def group(self) -> GroupKey | None:
        return group_of_arn(self.spec.provider_id)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        found = (instance_of_provider_id(each) for each in self.spec.provider_id_list)
        return tuple(each for each in found if each)
