"""AWSMachine: an EC2 instance. The AWS provider makes it, asks EC2 and writes the status; Perdure labels it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.instances import AWS_MACHINE, MACHINE
from domain.instances.names import instance_of_provider_id
from domain.instances.resources.machine import HeldObject
from domain.resource import KubeModel


class AWSMachineSpec(KubeModel):
    """The spec, immutable but for the ids, which the provider fills in together once the instance exists."""

    provider_id: str = Field("", alias="providerID")
    instance_id: str = Field("", alias="instanceID")


class AWSMachine(HeldObject):
    """An EC2 instance, managed by Cluster API's AWS provider."""

    kind_of: ClassVar[Kind] = AWS_MACHINE

    spec: AWSMachineSpec = AWSMachineSpec()

    @property
    def instance_id(self) -> str:
        return self.spec.instance_id or instance_of_provider_id(self.spec.provider_id)

    @property
    def machine(self) -> str:
        owners = self.metadata.owner_references
        return next((each.name for each in owners if each.kind == MACHINE.name), "")
