"""ResourceHandle: the resources of a claim or, until a claim gets them, of a pool.

Clients of Poolboy up to 1.13 read `spec.resources[].reference`, later ones `status.resources[].reference`; Perdure
writes both and reads either. Durations may be templates.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.claims import RESOURCE_HANDLE
from domain.claims.resources.claim import described
from domain.claims.resources.shared import (
    DEFINITION,
    LabelValue,
    LifespanTerms,
    Open,
    OwnerLink,
    ProviderChoice,
    ProviderLink,
    ResourceReference,
    ResourceState,
    TakenOverStatus,
)
from domain.identity import Kind
from domain.resource import AGE, CustomResource, Definition, PrinterColumn
from domain.schema import DateTime, JsonObject, Preserved


class HandleLifespan(LifespanTerms):
    """How long the handle lives, with and without a claim."""

    end: DateTime[str] = Field("", description="When the handle is deleted, with its resources and its claim.")


class HandleResource(Open):
    """A resource that the handle holds."""

    name: str = Field("", description="The resource's name, unique in the handle.")
    provider: ProviderLink | None = Field(None, description="The resource's provider.")
    reference: ResourceReference | None = Field(None, description="The resource; absent until its name is known.")
    template: JsonObject = Field(
        {}, description="The resource as requested by claim or pool, before the provider's override."
    )


class ResourceHandleSpec(Open):
    """The handle's resources, and the claim it is bound to."""

    lifespan: HandleLifespan | None = Field(None, description="How long the handle lives.")
    preference_score: float | None = Field(
        None, description="Of handles that fit a claim equally well, the one with the highest score is bound."
    )
    provider: ProviderChoice | None = Field(None, description="The provider that determines the resources.")
    resource_annotations: dict[str, str] = Field({}, description="Annotations for every resource.")
    resource_claim: OwnerLink | None = Field(None, description="The claim that the handle is bound to, if any.")
    resource_labels: dict[str, LabelValue] = Field({}, description="Labels for every resource.")
    resource_pool: OwnerLink | None = Field(None, description="The pool that the handle was created for, if any.")
    resources: tuple[HandleResource, ...] = Field((), description="The resources that the handle holds.")
    vars: JsonObject = Field({}, description="Variables of templates; they override the provider's.")


class ResourceHandleStatus(TakenOverStatus):
    """The handle's state."""

    healthy: bool | None = Field(None, description="Whether all resources are healthy; absent if unknown.")
    ready: bool | None = Field(None, description="Whether all resources are ready; absent if unknown.")
    resources: tuple[ResourceState, ...] = Field((), description="The state of each resource.")
    summary: JsonObject | None = Field(None, description="The result of the provider's summary template.")


class ResourceHandle(CustomResource):
    """The holder of managed resources; it is bound to a claim, or free."""

    kind_of: ClassVar[Kind] = RESOURCE_HANDLE
    definition: ClassVar[Definition] = DEFINITION.model_copy(update={"name_pattern": r"^guid-[a-z0-9\-]*[a-z0-9]$"})
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Provider", type="string", json_path=".spec.provider.name"),
        PrinterColumn(name="Pool", type="string", json_path=".spec.resourcePool.name"),
        PrinterColumn(name="Healthy", type="boolean", json_path=".status.healthy"),
        PrinterColumn(name="Ready", type="boolean", json_path=".status.ready"),
        PrinterColumn(name="Claim Namespace", type="string", json_path=".spec.resourceClaim.namespace"),
        PrinterColumn(name="Claim Name", type="string", json_path=".spec.resourceClaim.name"),
        AGE,
    )

    spec: ResourceHandleSpec = ResourceHandleSpec()
    status: Preserved[ResourceHandleStatus] = ResourceHandleStatus()

    def reference(self, index: int) -> ResourceReference | None:
        """The resource's reference in the status or, in objects of older releases, in the spec."""
        for resources in (self.status.resources, self.spec.resources):
            if index < len(resources) and (found := resources[index].reference):
                return found
        return None

    @property
    def references(self) -> tuple[ResourceReference, ...]:
        count = max(len(self.status.resources), len(self.spec.resources))
        return tuple(found for index in range(count) if (found := self.reference(index)))

    @property
    def delegate(self) -> str:
        claim = self.spec.resource_claim
        return f"ResourceClaim/{claim.namespace}/{claim.name}" if claim and not self.metadata.deleting else ""

    @property
    def outside(self) -> tuple[str, ...]:
        return tuple(f"{described(reference)}, which no handle manages any more" for reference in self.references)
