from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from domain.resource import Definition, KubeModel
from domain.schema import JsonObject, Marker, Required

# Whole numbers with one unit, which Poolboy's schemas require for values that are not templates.
Duration = Annotated[str, Marker(pattern=r"^[0-9]+[smhd]$")]
LabelValue = Annotated[str, Marker(pattern=r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$")]
Count = Annotated[int, Marker(minimum=0)]

NAME_LENGTH = 63
NAME_PATTERN = r"^[a-z0-9A-Z]([a-z0-9A-Z\-._]*[a-z0-9A-Z])?$"

# No annotations: Poolboy's CRDs are written by hand, without a generator's annotation.
DEFINITION = Definition(
    annotations={},
    required=("apiVersion", "kind", "metadata", "spec"),
    name_pattern=NAME_PATTERN,
    name_length=NAME_LENGTH,
)


class ApprovalState:
    APPROVED = "approved"
    PENDING = "pending"
    REJECTED = "rejected"


class WaitingFor(StrEnum):
    """Values of `status.resources[].waitingFor`."""

    CLAIM = "ResourceClaim"
    LINKED = "Linked ResourceProvider"
    DEFINITION = "Resource Definition"  # its definition has the name of another resource of the handle


class ScalingState:
    WAITING = "waiting"
    SCALING = "scaling"
    DONE = "done"


WaitingReason = Annotated[str, Marker(enum=tuple(each.value for each in WaitingFor))]


class Open(KubeModel):
    """A part of an object that preserves unknown fields, because entries of lists are written as a whole."""

    model_config = {**KubeModel.model_config, "extra": "allow"}


class TakenOverStatus(Open):
    """The parts of a status that the replaced operator left behind."""

    diff_base: str = Field("", description="Left by the replaced operator: the spec it handled last.")
    kopf: JsonObject | None = Field(None, description="Left by the replaced operator: progress of its handlers.")


class LifespanTerms(Open):
    default: str = Field("", description="Lifespan from binding, for claims that set no end.")
    maximum: str = Field("", description="Maximum lifespan from the first time that all resources are ready.")
    relative_maximum: str = Field("", description="The end may lie at most this far ahead of the current time.")


class ObjectReference(Open):
    """An object by kind and name."""

    api_version: str = Field("", description="The object's apiVersion.")
    kind: str = Field("", description="The object's kind.")
    name: str = Field("", description="The object's name.")
    namespace: str = Field("", description="The object's namespace.")


class ProviderReference(ObjectReference):
    """A ResourceProvider; only its name is looked up, in the operator's namespace."""

    name: Required[str] = Field("", description="The ResourceProvider's name.")


class ResourceReference(ObjectReference):
    """A reference to a managed resource."""

    api_version: Required[str] = Field("", description="The resource's apiVersion.")
    kind: Required[str] = Field("", description="The resource's kind.")
    name: Required[str] = Field("", description="The resource's name.")
    namespace: str = Field("", description="The resource's namespace, absent if it is cluster-wide.")


class OwnerLink(ObjectReference):
    """The claim or the pool that a handle belongs to."""

    api_version: Required[str] = Field("", description="The object's apiVersion.")
    kind: Required[str] = Field("", description="The object's kind.")
    name: Required[str] = Field("", description="The object's name.")
    namespace: Required[str] = Field("", description="The object's namespace.")


class ProviderLink(ObjectReference):
    """The ResourceProvider of a handle's or pool's resource."""

    api_version: Required[str] = Field("", description="The ResourceProvider's apiVersion.")
    kind: Required[str] = Field("", description="The ResourceProvider's kind.")
    name: Required[str] = Field("", description="The ResourceProvider's name.")
    namespace: Required[str] = Field("", description="The ResourceProvider's namespace.")


class ProviderChoice(Open):
    """A provider with values for its parameters, which determine the resources."""

    name: Required[str] = Field("", description="The ResourceProvider's name.")
    parameter_values: JsonObject = Field({}, description="Values of the provider's parameters, by parameter.")


class ResourceState(Open):
    """The state of one resource."""

    name: str = Field("", description="The resource's name, unique in the handle.")
    reference: ResourceReference | None = Field(None, description="The resource; absent until its name is known.")
    healthy: bool | None = Field(None, description="The result of the provider's health check; absent if unknown.")
    ready: bool | None = Field(None, description="The result of the provider's readiness check; absent if unknown.")
    waiting_for: WaitingReason = Field("", description="What must happen before the resource is created.")
