"""ResourcePool: a wanted number of unclaimed handles; ResourcePoolScaling: additional handles, created once.

Pools never scale down: a smaller `minAvailable` deletes nothing.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.claims import RESOURCE_POOL, RESOURCE_POOL_SCALING
from domain.claims.resources.shared import (
    DEFINITION,
    Count,
    Duration,
    LabelValue,
    LifespanTerms,
    Open,
    ProviderChoice,
    ProviderLink,
    ScalingState,
    TakenOverStatus,
)
from domain.identity import Kind
from domain.resource import AGE, CustomResource, Definition, PrinterColumn
from domain.schema import DateTime, JsonObject, Marker, Preserved, Required


class PoolLifespan(LifespanTerms):
    """The lifespan of the pool's handles. It replaces the provider's lifespan entirely."""

    unclaimed: Duration = Field("", description="Lifespan of a handle without a claim.")


class PoolResource(Open):
    """A resource of each of the pool's handles."""

    name: str = Field("", description="The resource's name, unique in the handle.")
    provider: ProviderLink | None = Field(None, description="The resource's provider.")
    template: JsonObject = Field({}, description="The resource as the pool wants it.")


class ResourcePoolSpec(Open):
    """The desired state of the pool."""

    delete_unhealthy_resource_handles: bool = Field(
        False, description="True to replace free handles that are unhealthy."
    )
    lifespan: PoolLifespan | None = Field(None, description="How long the pool's handles live.")
    max_unready: Count | None = Field(
        None, description="Maximum number of free handles that are not ready; no limit if absent."
    )
    min_available: Count = Field(0, description="Number of free handles to keep.")
    preference_score: float | None = Field(
        None,
        description="The score of its handles. Of handles that fit a claim equally well, the one with the highest "
        "score is bound.",
    )
    provider: ProviderChoice | None = Field(
        None, description="The provider that determines the resources; not together with `resources`."
    )
    resource_annotations: dict[str, str] = Field({}, description="Annotations for every resource of its handles.")
    resource_labels: dict[str, LabelValue] = Field({}, description="Labels for every resource of its handles.")
    resources: tuple[PoolResource, ...] = Field(
        (), description="The resources of each handle; not together with `provider`."
    )
    vars: JsonObject = Field({}, description="Variables of its handles' templates.")


class HandleCount(Open):
    """Counts of free handles."""

    available: int = Field(0, description="Free handles.")
    ready: int = Field(0, description="Free handles that are ready.")


class PooledHandle(Open):
    """The state of one free handle."""

    name: str = Field("", description="The handle's name.")
    healthy: bool | None = Field(None, description="Whether all its resources are healthy; absent if unknown.")
    ready: bool | None = Field(None, description="Whether all its resources are ready; absent if unknown.")


class ResourcePoolStatus(TakenOverStatus):
    """The pool's state."""

    resource_handle_count: HandleCount | None = Field(None, description="How many free handles there are.")
    resource_handles: tuple[PooledHandle, ...] = Field((), description="The free handles.")


class ResourcePool(CustomResource):
    """A wanted number of handles that no claim has taken."""

    kind_of: ClassVar[Kind] = RESOURCE_POOL
    definition: ClassVar[Definition] = DEFINITION
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="ResourceProvider", type="string", json_path=".spec.provider.name"),
        PrinterColumn(name="Min", type="integer", json_path=".spec.minAvailable"),
        PrinterColumn(name="Available", type="integer", json_path=".status.resourceHandleCount.available"),
        PrinterColumn(name="Ready", type="integer", json_path=".status.resourceHandleCount.ready"),
        AGE,
    )

    spec: ResourcePoolSpec = ResourcePoolSpec()
    status: Preserved[ResourcePoolStatus] = ResourcePoolStatus()

    @property
    def outside(self) -> tuple[str, ...]:
        return tuple(f"ResourceHandle {handle.name}, free and in no pool" for handle in self.status.resource_handles)


class PoolReference(Open):
    """A ResourcePool by name."""

    name: Required[str] = Field("", description="The ResourcePool's name.")


class ResourcePoolScalingSpec(Open):
    """The number of handles to create, for which pool, and when."""

    at: DateTime[str] = Field("", description="When to begin; at once if absent.")
    count: Required[Count] = Field(0, description="Number of handles to create above the pool's minimum.")
    resource_pool: Required[PoolReference] = Field(PoolReference(), description="The pool.")


class ResourcePoolScalingStatus(TakenOverStatus):
    """The progress of the scaling."""

    count: int = Field(0, description="Handles created so far.")
    state: Annotated[str, Marker(enum=(ScalingState.WAITING, ScalingState.SCALING, ScalingState.DONE))] = Field(
        "", description="waiting, scaling or done."
    )


class ResourcePoolScaling(CustomResource):
    """Adds a number of handles to a pool, once."""

    kind_of: ClassVar[Kind] = RESOURCE_POOL_SCALING
    definition: ClassVar[Definition] = DEFINITION
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Pool", type="string", json_path=".spec.resourcePool.name"),
        PrinterColumn(name="At", type="string", json_path=".spec.at"),
        PrinterColumn(name="Count", type="integer", json_path=".spec.count"),
        PrinterColumn(name="Created", type="integer", json_path=".status.count"),
        PrinterColumn(name="State", type="string", json_path=".status.state"),
    )

    spec: ResourcePoolScalingSpec = ResourcePoolScalingSpec()
    status: Preserved[ResourcePoolScalingStatus] = ResourcePoolScalingStatus()
