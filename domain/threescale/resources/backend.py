"""Backend: an address behind the gateway, which products use."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import CustomResource, KubeModel
from domain.schema import Marker, Required
from domain.threescale import BACKEND
from domain.threescale.resources.shared import (
    Conditions,
    Int64,
    LocalReference,
    MappingRule,
    Metric,
    ProductMethod,
    SyncedStatus,
)


class BackendSpec(KubeModel):
    """The desired state in 3scale."""

    name: Required[str] = Field("", description="Its name for people.")
    system_name: Annotated[str, Marker(immutable="SystemName is immutable")] = Field(
        "", description="Its system name in 3scale; derived from the name if absent."
    )
    private_base_url: Required[Annotated[str, Marker(pattern=r"^(https?|wss?):\/\/.*$")]] = Field(
        "", alias="privateBaseURL", description="Where the gateway sends the requests."
    )
    description: str | None = Field(None, description="A description.")
    mapping_rules: tuple[MappingRule, ...] = Field((), description="Which requests count, in this order.")
    metrics: dict[str, Metric] = Field({}, description="Metrics, by system name; `hits` is always counted.")
    methods: dict[str, ProductMethod] = Field({}, description="Methods, which count parts of `hits`, by system name.")
    provider_account_ref: LocalReference | None = Field(
        None, description="The Secret with address and token of the tenant."
    )


class BackendStatus(SyncedStatus):
    """The observed state."""

    backend_id: Int64 | None = Field(None, description="Its id in 3scale.")
    provider_account_host: str | None = Field(None, description="The tenant's address.")
    observed_generation: Int64 | None = Field(
        None, description="The generation of the spec that this status describes."
    )
    conditions: Conditions = Field((), description="Synced, Invalid and Failed.")


class Backend(CustomResource):
    """An address behind the gateway, which products use."""

    kind_of: ClassVar[Kind] = BACKEND

    spec: BackendSpec = BackendSpec()
    status: BackendStatus = BackendStatus()

    @property
    def outside(self) -> tuple[str, ...]:
        return (f"3scale backend {self.status.backend_id}",) if self.status.backend_id else ()
