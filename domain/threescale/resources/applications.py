"""Application and ApplicationAuth: an account's use of a product, and its credentials, which are set once."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import CustomResource, KubeModel
from domain.schema import Marker, Required
from domain.threescale import APPLICATION, APPLICATION_AUTH
from domain.threescale.resources.shared import Conditions, Int64, InTenant, LocalReference, RemoteResource, RemoteStatus

_IMMUTABLE = "AccountCR reference is immutable once set"


class ApplicationSpec(KubeModel):
    """The desired state in 3scale."""

    account_cr: Required[Annotated[LocalReference, Marker(immutable=_IMMUTABLE)]] = Field(
        LocalReference(), alias="accountCR", description="The DeveloperAccount that the application belongs to."
    )
    product_cr: Required[LocalReference] = Field(
        LocalReference(), alias="productCR", description="The Product that the application calls."
    )
    application_plan_name: Required[str] = Field("", description="The system name of its plan.")
    name: Required[str] = Field("", description="Its name for people.")
    description: Required[str] = Field("", description="A description.")
    suspend: bool | None = Field(None, description="True to suspend the application.")
    auth_secret_ref: LocalReference | None = Field(
        None, description="A Secret with its credentials, read when the application is created."
    )


class ApplicationStatus(RemoteStatus):
    """The observed state."""

    application_id: Int64 | None = Field(None, alias="applicationID", description="Its id in 3scale.")
    state: str | None = Field(None, description="Its state in 3scale.")
    conditions: Conditions = Field((), description="Ready comes first: clients read the first condition.")


class Application(RemoteResource):
    """An account's subscription to a product's plan, with its credentials."""

    kind_of: ClassVar[Kind] = APPLICATION
    id_field: ClassVar[str] = "application_id"
    id_annotation: ClassVar[str] = "applicationID"
    counterpart: ClassVar[str] = "3scale application {}"

    spec: ApplicationSpec = ApplicationSpec()
    status: ApplicationStatus = ApplicationStatus()

    @property
    def owner(self) -> str:
        name = self.spec.account_cr.name
        return f"DeveloperAccount/{self.metadata.namespace}/{name}" if name else ""


class ApplicationAuthSpec(InTenant):
    """The application, and the Secret with its credentials."""

    application_cr_name: Required[str] = Field("", alias="applicationCRName", description="The Application.")
    auth_secret_ref: Required[LocalReference] = Field(
        LocalReference(),
        description="The Secret with the credentials; `generateSecret` adds missing credentials.",
    )
    generate_secret: bool | None = Field(None, description="True to generate the values that the Secret lacks.")


class ApplicationAuthStatus(KubeModel):
    """Whether the credentials were set."""

    conditions: Conditions = Field((), description="Ready and Failed.")


class ApplicationAuth(CustomResource):
    """Credentials of an application, set once."""

    kind_of: ClassVar[Kind] = APPLICATION_AUTH

    spec: ApplicationAuthSpec = ApplicationAuthSpec()
    status: ApplicationAuthStatus = ApplicationAuthStatus()

    @property
    def owner(self) -> str:
        name = self.spec.application_cr_name
        return f"Application/{self.metadata.namespace}/{name}" if name else ""
