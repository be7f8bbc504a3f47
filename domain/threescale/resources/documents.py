"""ActiveDoc, an API description for developers; OpenAPI, a document that becomes a Product and a Backend."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import CustomResource, PrinterColumn
from domain.schema import Marker, Required
from domain.threescale import ACTIVE_DOC, OPEN_API
from domain.threescale.resources.shared import (
    Conditions,
    Document,
    Int64,
    InTenant,
    LocalReference,
    OneDocument,
    OpenIdConnect,
    RemoteResource,
    RemoteStatus,
    ReportedStatus,
    Url,
)


class ActiveDocSpec(InTenant):
    """The desired state in 3scale."""

    name: Required[str] = Field("", description="Its name for people.")
    system_name: Annotated[str, Marker(pattern=r"^[a-z0-9]+$")] = Field(
        "", description="Its system name in 3scale; derived from the name if absent."
    )
    description: str | None = Field(None, description="A description.")
    active_doc_open_api_ref: Required[OneDocument] = Field(
        Document(), alias="activeDocOpenAPIRef", description="Where the document is."
    )
    product_system_name: str | None = Field(
        None, description="The system name of the product that the document describes."
    )
    published: bool | None = Field(None, description="True to show the document to developers.")
    skip_swagger_validations: bool | None = Field(None, description="True to skip 3scale's validation of the document.")


class ActiveDocStatus(RemoteStatus):
    """The observed state."""

    active_doc_id: Int64 | None = Field(None, description="Its id in 3scale.")
    product_resource_name: LocalReference | None = Field(None, description="The Product that the document describes.")
    conditions: Conditions = Field((), description="Ready, Orphan, Invalid and Failed.")


class ActiveDoc(RemoteResource):
    """A description of an API for developers."""

    kind_of: ClassVar[Kind] = ACTIVE_DOC
    id_field: ClassVar[str] = "active_doc_id"
    counterpart: ClassVar[str] = "3scale ActiveDocs document {}"
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Provider Account", type="string", json_path=".status.providerAccountHost"),
        PrinterColumn(name="Ready", type="string", json_path='.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn(name="3scale ID", type="integer", json_path=".status.activeDocId"),
    )

    spec: ActiveDocSpec = ActiveDocSpec()
    status: ActiveDocStatus = ActiveDocStatus()


class OpenApiSpec(InTenant):
    """The document from which the Product and the Backend are generated."""

    openapi_ref: Required[OneDocument] = Field(Document(), description="Where the OpenAPI document is.")
    product_system_name: str | None = Field(
        None, description="The system name of Product and Backend; derived from the title if absent."
    )
    private_base_url: str | None = Field(
        None, alias="privateBaseURL", description="The backend's address; the first server of the document if absent."
    )
    production_public_base_url: Url | None = Field(
        None, alias="productionPublicBaseURL", description="The production gateway's address."
    )
    staging_public_base_url: Url | None = Field(
        None, alias="stagingPublicBaseURL", description="The staging gateway's address."
    )
    prefix_matching: bool | None = Field(None, description="True for mapping rules that match by prefix.")
    private_api_host_header: str | None = Field(
        None, alias="privateAPIHostHeader", description="The Host header that the backend gets."
    )
    private_api_secret_token: str | None = Field(
        None, alias="privateAPISecretToken", description="A token by which the backend recognises the gateway."
    )
    oidc: OpenIdConnect | None = Field(None, description="OpenID Connect settings that the document cannot contain.")


class OpenApiStatus(ReportedStatus):
    """The generated objects, and their state."""

    product_resource_name: LocalReference | None = Field(None, description="The generated Product.")
    backend_resource_names: tuple[LocalReference, ...] = Field((), description="The generated Backend.")
    conditions: Conditions = Field((), description="Ready, Invalid and Failed.")


class OpenApi(CustomResource):
    """An OpenAPI document that becomes a Product and a Backend."""

    kind_of: ClassVar[Kind] = OPEN_API

    spec: OpenApiSpec = OpenApiSpec()
    status: OpenApiStatus = OpenApiStatus()
