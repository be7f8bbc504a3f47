"""CustomPolicyDefinition and ProxyConfigPromote: a tenant's own policy, and a one-time promotion."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import CustomResource, KubeModel, PrinterColumn
from domain.schema import JsonObject, Required
from domain.threescale import CUSTOM_POLICY_DEFINITION, PROXY_CONFIG_PROMOTE
from domain.threescale.resources.shared import Conditions, Int64, InTenant, RemoteResource, RemoteStatus


class PolicySchema(KubeModel):
    """A policy's name and version, and the schema of its configuration."""

    name: Required[str] = Field("", description="Its name for people.")
    version: Required[str] = Field("", description="Its version.")
    summary: Required[str] = Field("", description="What it does, in a sentence.")
    schema_: Required[str] = Field(
        "", alias="$schema", description="The version of JSON Schema that `configuration` follows."
    )
    configuration: Required[JsonObject] = Field({}, description="The JSON schema of the policy's configuration.")
    description: tuple[str, ...] = Field((), description="What it does, at length.")


class CustomPolicyDefinitionSpec(InTenant):
    """The desired state in 3scale."""

    name: Required[str] = Field("", description="The policy's name.")
    version: Required[str] = Field("", description="The policy's version.")
    schema_: Required[PolicySchema] = Field(PolicySchema(), alias="schema", description="The policy's schema.")


class CustomPolicyDefinitionStatus(RemoteStatus):
    """The observed state."""

    policy_id: Int64 | None = Field(None, alias="policyID", description="Its id in 3scale.")
    conditions: Conditions = Field((), description="Ready, Invalid and Failed.")


class CustomPolicyDefinition(RemoteResource):
    """A policy that the tenant itself defines."""

    kind_of: ClassVar[Kind] = CUSTOM_POLICY_DEFINITION
    id_field: ClassVar[str] = "policy_id"
    counterpart: ClassVar[str] = "3scale policy {}"
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Provider Account", type="string", json_path=".status.providerAccountHost"),
        PrinterColumn(name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn(name="3scale ID", type="integer", json_path=".status.policyID"),
    )

    spec: CustomPolicyDefinitionSpec = CustomPolicyDefinitionSpec()
    status: CustomPolicyDefinitionStatus = CustomPolicyDefinitionStatus()


class ProxyConfigPromoteSpec(KubeModel):
    """The product to be promoted, and to which environment."""

    product_cr_name: Required[str] = Field("", alias="productCRName", description="The Product.")
    production: bool | None = Field(None, description="True to promote to production, too.")
    delete_cr: bool | None = Field(
        None, alias="deleteCR", description="True to delete this object after the promotion."
    )


class ProxyConfigPromoteStatus(KubeModel):
    """The promoted versions."""

    product_id: str | None = Field(None, description="The product's id in 3scale, or `product not found`.")
    latest_production_version: int | None = Field(None, description="The newest version in production.")
    latest_staging_version: int | None = Field(None, description="The newest version in staging.")
    conditions: Conditions = Field((), description="Ready and Failed.")


class ProxyConfigPromote(CustomResource):
    """A promotion of a product's gateway configuration, done once."""

    kind_of: ClassVar[Kind] = PROXY_CONFIG_PROMOTE

    spec: ProxyConfigPromoteSpec = ProxyConfigPromoteSpec()
    status: ProxyConfigPromoteStatus = ProxyConfigPromoteStatus()

    @property
    def owner(self) -> str:
        name = self.spec.product_cr_name
        return f"Product/{self.metadata.namespace}/{name}" if name else ""
