"""ResourceClaim: a user's request in the user's namespace, and its state.

A claim names a provider with parameter values (provider mode) or lists resources (list mode). The schema allows both
or neither, which the lifecycle reports as a fault. Approvers and restore tools write `/status`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.claims import RESOURCE_CLAIM
from domain.claims.resources.shared import (
    DEFINITION,
    ApprovalState,
    Duration,
    ObjectReference,
    Open,
    ProviderChoice,
    ProviderReference,
    ResourceReference,
    ResourceState,
    TakenOverStatus,
)
from domain.identity import Kind
from domain.resource import AGE, CustomResource, Definition, PrinterColumn
from domain.schema import DateTime, JsonObject, Marker, Preserved, Required


class Condition(Open):
    """A condition on the claim, as a Jinja2 expression."""

    when: str = Field("", description="A Jinja2 expression over the claim, its handle and its provider.")


class ClaimLifespan(Open):
    """The claim's wanted start and end."""

    start: DateTime[str] = Field("", description="Nothing is done for the claim before this time.")
    end: DateTime[str] = Field("", description="When to delete the claim; earlier if its provider limits it.")


class ClaimResource(Open):
    """A resource that the claim asks for."""

    name: str = Field("", description="The resource's name, unique in the claim.")
    provider: ProviderReference | None = Field(
        None, description="The provider; if absent, the one provider whose `match` fits the template."
    )
    template: JsonObject = Field({}, description="The part of the resource that the user decides on.")


class ResourceClaimSpec(Open):
    """The user's request: a provider with parameter values, or a list of resources."""

    auto_delete: Condition | None = Field(None, description="Deletes the claim once the condition holds.")
    auto_detach: Condition | None = Field(
        None, description="Deletes the claim's handle and resources once the condition holds, and keeps the claim."
    )
    disable_creation: bool = Field(False, description="True to bind an existing free handle only, and create none.")
    lifespan: ClaimLifespan | None = Field(None, description="When the claim should begin and end.")
    provider: ProviderChoice | None = Field(
        None, description="The provider that determines the resources; not together with `resources`."
    )
    resources: tuple[ClaimResource, ...] = Field((), description="The wanted resources; not together with `provider`.")


class Approval(Open):
    """Whether the claim may get a handle; set to pending by the operator, decided by an approver."""

    state: Annotated[
        Required[str],
        Marker(enum=(ApprovalState.APPROVED, ApprovalState.PENDING, ApprovalState.REJECTED)),
    ] = Field("", description="approved, pending or rejected.")
    message: str = Field("", description="A message from the approver or the provider.")


class ClaimLifespanStatus(Open):
    """The lifespan in force."""

    start: DateTime[str] = Field("", description="When the claim got its handle.")
    end: DateTime[str] = Field("", description="When the claim will be deleted.")
    first_ready: DateTime[str] = Field("", description="When all its resources were ready for the first time.")
    maximum: Duration = Field("", description="Maximum lifespan from the first time that all resources are ready.")
    relative_maximum: Duration = Field("", description="The end may lie at most this far ahead of the current time.")


class ClaimProviderStatus(Open):
    """The provider in force, and the parameter values accepted last."""

    name: Required[str] = Field("", description="The ResourceProvider's name.")
    parameter_values: JsonObject | None = Field(
        None, description="The values accepted last, defaults included; absent until values have been accepted."
    )
    validation_errors: tuple[str, ...] = Field((), description="What is wrong with the values in the spec.")


class HandleLink(ObjectReference):
    """The handle that holds the claim's resources."""

    detached: bool = Field(False, description="True once the claim has been detached from its resources.")


class ClaimResourceStatus(ResourceState):
    """The state of one resource."""

    name: str = Field("", description="The resource's name, unique in the claim.")
    provider: ObjectReference | None = Field(None, description="The resource's provider.")
    reference: ResourceReference | None = Field(None, description="The resource itself.")
    state: JsonObject | None = Field(None, description="The resource as last observed.")
    validation_error: str = Field("", description="What is wrong with the claim's template.")


class ResourceClaimStatus(TakenOverStatus):
    """The claim's state."""

    approval: Approval | None = Field(None, description="Whether the claim is approved.")
    healthy: bool | None = Field(None, description="Whether all resources are healthy; absent if unknown.")
    lifespan: ClaimLifespanStatus | None = Field(None, description="The lifespan in force.")
    provider: ClaimProviderStatus | None = Field(
        None, description="The provider in force, and the parameter values accepted last."
    )
    ready: bool | None = Field(None, description="Whether all resources are ready; absent if unknown.")
    resource_handle: HandleLink | None = Field(None, description="The handle that holds the claim's resources.")
    resources: tuple[ClaimResourceStatus, ...] = Field((), description="The state of each resource.")
    summary: JsonObject | None = Field(None, description="The result of the provider's summary template.")


class ResourceClaim(CustomResource):
    """A request for resources; the claim keeps them until its deletion."""

    kind_of: ClassVar[Kind] = RESOURCE_CLAIM
    definition: ClassVar[Definition] = DEFINITION
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Handle", type="string", json_path=".status.resourceHandle.name"),
        PrinterColumn(name="Provider", type="string", json_path=".spec.provider.name"),
        PrinterColumn(name="Healthy", type="boolean", json_path=".status.healthy"),
        PrinterColumn(name="Ready", type="boolean", json_path=".status.ready"),
        AGE,
        # Poolboy lacks these two columns, which show why a claim does not progress.
        PrinterColumn(name="Approval", type="string", json_path=".status.approval.state"),
        PrinterColumn(name="Stalled", type="string", json_path='.status.conditions[?(@.type=="Stalled")].reason'),
    )

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: Preserved[ResourceClaimStatus] = ResourceClaimStatus()

    @property
    def outside(self) -> tuple[str, ...]:
        handle = self.status.resource_handle
        if handle is None or handle.detached:
            return ()
        held = (
            f"ResourceHandle {handle.namespace}/{handle.name}, which stays until Perdure finds that its claim is gone"
        )
        return (held, *(described(item.reference) for item in self.status.resources if item.reference))


def described(reference: ResourceReference) -> str:
    name = f"{reference.namespace}/{reference.name}" if reference.namespace else reference.name
    return f"{reference.kind} {name} ({reference.api_version})"
