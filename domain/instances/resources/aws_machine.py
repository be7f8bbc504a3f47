"""AWSMachine: one EC2 instance of a cluster. The AWS provider makes it, asks EC2 and writes its status; we label it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from domain.identity import Kind
from domain.instances import AWS_MACHINE, MACHINE
from domain.instances.constants import CLUSTER_LABEL, PAUSED_ANNOTATION, POOL_LABEL
from domain.instances.names import instance_of_provider_id
from domain.instances.resources.machine import held_by_cluster, only_the_hold
from domain.resource import Condition, CustomResource, KubeModel


class AWSMachineSpec(KubeModel):
    """Immutable but for the ids, which the provider fills in together once the instance exists."""

    provider_id: str = Field("", alias="providerID")
    instance_id: str = Field("", alias="instanceID")
    market_type: str = ""
    spot_market_options: dict[str, object] | None = None


class DedicatedHost(KubeModel):
    """The dedicated host that the instance runs on."""

    id: str = ""


class AWSMachineStatus(KubeModel):
    """As the provider wrote it when it asked EC2 last."""

    instance_state: str = ""
    ready: bool = False
    interruptible: bool = False
    failure_reason: str = ""
    failure_message: str = ""
    dedicated_host: DedicatedHost = DedicatedHost()
    conditions: tuple[Condition, ...] = ()

    _only_read = field_validator("conditions", mode="before")(only_the_hold)


class AWSMachine(CustomResource):
    """One instance, as Cluster API's AWS provider has it."""

    kind_of: ClassVar[Kind] = AWS_MACHINE

    spec: AWSMachineSpec = AWSMachineSpec()
    status: AWSMachineStatus = AWSMachineStatus()

    @property
    def instance_id(self) -> str:
        """The instance, empty until there is one."""
        return self.spec.instance_id or instance_of_provider_id(self.spec.provider_id)

    @property
    def cluster(self) -> str:
        """The name of the Cluster it belongs to."""
        return self.metadata.labels.get(CLUSTER_LABEL, "")

    @property
    def pooled(self) -> bool:
        """True for an instance of an AWSMachinePool."""
        return POOL_LABEL in self.metadata.labels

    @property
    def paused(self) -> bool:
        """True while Cluster API holds it, by the annotation's presence or with its whole Cluster."""
        return PAUSED_ANNOTATION in self.metadata.annotations or held_by_cluster(self.status.conditions)

    @property
    def spot(self) -> bool:
        """True if it was asked of the Spot market."""
        return self.spec.market_type == "Spot" or self.spec.spot_market_options is not None

    @property
    def machine(self) -> str:
        """The name of the Machine that it belongs to, empty if it has none yet."""
        owners = self.metadata.owner_references
        return next((each.name for each in owners if each.kind == MACHINE.name), "")
