"""Backend: an address behind the gateway, which products use."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.schema import Marker, Required
from domain.threescale import BACKEND
from domain.threescale.resources.shared import (
    Conditions,
    Int64,
    InTenant,
    MappingRule,
    Metric,
    ProductMethod,
    RemoteResource,
    RemoteStatus,
)


class BackendSpec(InTenant):
    """The desired state in 3scale."""

    name: Required[str] = Field("", description="Its name for people.")
    system_name: Annotated[str, Marker(immutable="SystemName is immutable")] = Field(
        "", description="Its system name in 3scale; derived from the name if absent."
    )
    private_base_url: Required[Annotated[str, Marker(pattern=r"^(https?|wss?):\/\/.*$")]] = Field(
        "", alias="privateBaseURL", description="Where the gateway sends the requests."
    )
    description: str | None = Field(None, description="A description.")
    mapping_rules: tuple[MappingRule, ...] = Field((), description="Rules that count requests, in order of evaluation.")
    metrics: dict[str, Metric] = Field({}, description="Metrics, by system name; `hits` is always counted.")
    methods: dict[str, ProductMethod] = Field({}, description="Methods, which count parts of `hits`, by system name.")


class BackendStatus(RemoteStatus):
    """The observed state."""

    backend_id: Int64 | None = Field(None, description="Its id in 3scale.")
    conditions: Conditions = Field((), description="Synced, Invalid and Failed.")


class Backend(RemoteResource):
    """An address behind the gateway, which products use."""

    kind_of: ClassVar[Kind] = BACKEND
    id_field: ClassVar[str] = "backend_id"
    counterpart: ClassVar[str] = "3scale backend {}"

    spec: BackendSpec = BackendSpec()
    status: BackendStatus = BackendStatus()
