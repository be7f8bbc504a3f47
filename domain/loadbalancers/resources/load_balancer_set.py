"""LoadBalancerSet: a number of machines made from one template."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.constants import REVISION_ANNOTATION, TEMPLATE_HASH_LABEL
from domain.loadbalancers.resources.load_balancer_machine import MachineSpec
from domain.loadbalancers.resources.shared import AGE, Replicas, Selector, condition_column, owner_path
from domain.resource import CustomResource, Definition, KubeModel, PrinterColumn
from domain.schema import AtomicObject, DateTime, Marker, Required

HAS_MASTER = "HasKeepalivedMaster"

# The rules of metav1.Condition.
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
ConditionType = Annotated[str, Marker(max_length=316, pattern=_TYPE)]
ConditionStatus = Annotated[str, Marker(enum=("True", "False", "Unknown"))]
ConditionReason = Annotated[str, Marker(min_length=1, max_length=1024, pattern=_REASON)]
ConditionMessage = Annotated[str, Marker(max_length=32768)]
ObservedGeneration = Annotated[int, Marker(format="int64", minimum=0)]


class MachineTemplate(KubeModel):
    """Template of the set's machines."""

    labels: Required[dict[str, str]] = Field({}, description="Labels of every machine.")
    spec: Required[MachineSpec] = Field(MachineSpec(), description="Spec of every machine.")


class SetSpec(KubeModel):
    """The number of machines, and their template."""

    selector: Required[AtomicObject[Selector]] = Field(Selector(), description="Labels of its machines.")
    template: Required[MachineTemplate] = Field(MachineTemplate(), description="Template of the set's machines.")
    replicas: Replicas = Field(1, description="The number of machines.")


class SetCondition(KubeModel):
    """Whether one of the set's machines holds the virtual address."""

    type: Required[ConditionType] = Field("", description="The condition's type.")
    status: Required[ConditionStatus] = Field("", description="True, False or Unknown.")
    observed_generation: ObservedGeneration | None = Field(None, description="The generation that was observed.")
    last_transition_time: Required[DateTime[str]] = Field("", description="When the status last changed.")
    reason: Required[ConditionReason] = Field("", description="Why, in one word, for programs.")
    message: Required[ConditionMessage] = Field("", description="Why, in a sentence, for people.")


class SetStatus(KubeModel):
    """The set's state."""

    available_replicas: int | None = Field(None, description="Unused: neither yawol nor Perdure sets it.")
    ready_replicas: int | None = Field(None, description="The number of ready machines.")
    replicas: int | None = Field(None, description="The desired number of machines, as last observed.")
    conditions: tuple[SetCondition, ...] = Field((), description="Whether a machine holds the virtual address.")


class LoadBalancerSet(CustomResource):
    """A number of machines made from one template."""

    kind_of: ClassVar[Kind] = LOAD_BALANCER_SET
    definition: ClassVar[Definition] = Definition(short_names=("lbs",), scale_subresource=True)
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="DESIRED", type="string", json_path=".spec.replicas"),
        PrinterColumn(name="CURRENT", type="string", json_path=".status.replicas"),
        PrinterColumn(name="READY", type="string", json_path=".status.readyReplicas"),
        condition_column(HAS_MASTER),
        AGE,
    )

    spec: SetSpec = SetSpec()
    status: SetStatus = SetStatus()

    @property
    def owner(self) -> str:
        return owner_path(self.metadata, LOAD_BALANCER)

    @property
    def template_hash(self) -> str:
        return self.metadata.labels.get(TEMPLATE_HASH_LABEL, "")

    @property
    def revision(self) -> str:
        return self.metadata.annotations.get(REVISION_ANNOTATION, "")
