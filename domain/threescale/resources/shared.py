"""Types that several 3scale kinds share."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from domain.resource import CustomResource, KubeModel
from domain.schema import DateTime, JsonObject, Marker, Required
from domain.threescale.normalize import shown

Int32 = Annotated[int, Marker(format="int32")]
Int64 = Annotated[int, Marker(format="int64")]
Url = Annotated[str, Marker(pattern=r"^https?:\/\/.*$")]
Money = Annotated[str, Marker(pattern=r"^\d+(\.\d{2})?$")]
Method = Annotated[str, Marker(enum=("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT"))]
CredentialsLocation = Annotated[str | None, Marker(enum=("headers", "query", "authorization"))]

HITS = "hits"  # the metric that 3scale gives to each product and backend


class StatusCondition(KubeModel):
    """The state of one aspect of the object; the list is kept sorted by type."""

    type: Required[str] = Field("", description="The condition's type.")
    status: Required[str] = Field("", description="True, False or Unknown.")
    reason: str | None = Field(None, description="Why, in one word, for programs.")
    message: str | None = Field(None, description="Why, in a sentence, for people.")
    last_transition_time: DateTime[str | None] = Field(None, description="When the status last changed.")


Conditions = tuple[StatusCondition, ...]


class Digests(KubeModel):
    """Digests of the state that was last written to 3scale."""

    synced: str | None = Field(None, description="Digest of the whole desired state.")
    gateway: str | None = Field(None, description="Digest of the gateway's configuration in staging.")
    production: str | None = Field(
        None, description="Digest of the gateway's configuration in production, if promotion is automatic."
    )
    mended: str | None = Field(
        None, description="When the gateways' configuration was last corrected after a change in 3scale."
    )


class SyncedStatus(KubeModel):
    """The status of a kind that stores digests of its last sync with 3scale (`digests.py`)."""

    digests: Digests | None = Field(
        None, description="Digests of what was last synced; 3scale is not called while they match the spec."
    )


class ReportedStatus(KubeModel):
    """The status of a kind that shows its tenant."""

    provider_account_host: str | None = Field(None, description="The tenant's address.")
    observed_generation: Int64 | None = Field(
        None, description="The generation of the spec that this status describes."
    )


class RemoteStatus(SyncedStatus, ReportedStatus):
    """The status of a kind with a counterpart in a tenant."""


class RemoteResource(CustomResource):
    """An object with a counterpart in 3scale."""

    id_field: ClassVar[str]  # the field of the status with the counterpart's id
    id_annotation: ClassVar[str] = ""  # stores the id, too, for objects that are restored without status
    counterpart: ClassVar[str]  # the counterpart in words, with braces in place of its id

    status: Any

    @property
    def remote_id(self) -> int:
        return getattr(self.status, self.id_field) or 0

    @property
    def outside(self) -> tuple[str, ...]:
        return (self.counterpart.format(self.remote_id),) if self.remote_id else ()


class LocalReference(KubeModel):
    """An object by its name, in the namespace of its referrer."""

    name: str = Field("", description="The object's name.")


class InTenant(KubeModel):
    """The spec of a kind whose objects reference their tenant's Secret."""

    provider_account_ref: LocalReference | None = Field(
        None, description="The Secret with address and token of the tenant."
    )

    @property
    def tenant_secret(self) -> str:
        """The Secret's name; empty for the default tenant of the namespace."""
        return self.provider_account_ref.name if self.provider_account_ref else ""


class SecretReference(KubeModel):
    """A Secret, by default in the namespace of its referrer."""

    name: str = Field("", description="The Secret's name.")
    namespace: str = Field("", description="The Secret's namespace.")


class ObjectReference(KubeModel):
    """A reference with Kubernetes' ObjectReference fields; here always to a Secret."""

    api_version: str = Field("", description="The object's apiVersion.")
    field_path: str = Field("", description="A part of the object.")
    kind: str = Field("", description="The object's kind.")
    name: str = Field("", description="The object's name.")
    namespace: str = Field("", description="The object's namespace.")
    resource_version: str = Field("", description="The object's version.")
    uid: str = Field("", description="The object's uid.")


class Document(KubeModel):
    """Where a document is: in a Secret, or at a URL."""

    secret_ref: ObjectReference | None = Field(None, description="A Secret with the document under its only key.")
    url: Url | None = Field(None, description="The document's URL.")

    @property
    def place(self) -> str:
        return self.secret_ref.name if self.secret_ref else shown(self.url or "")


OneDocument = Annotated[Document, Marker(one_of=("secretRef", "url"))]


class Metric(KubeModel):
    """A metric, which counts hits."""

    friendly_name: Required[str] = Field("", description="Its name for people.")
    unit: Required[str] = Field("", description="What it counts.")
    description: str | None = Field(None, description="What it is for.")


class ProductMethod(KubeModel):
    """A part of all hits that is counted separately."""

    friendly_name: Required[str] = Field("", description="Its name for people.")
    description: str | None = Field(None, description="What it is for.")


class MappingRule(KubeModel):
    """Which requests count for which metric. The order of rules matters."""

    http_method: Required[Method] = Field("", description="The requests' method.")
    pattern: Required[str] = Field("", description="The requests' path, with variables in braces.")
    metric_method_ref: Required[str] = Field(
        "", description="The system name of the metric or method that the requests increment."
    )
    increment: Required[int] = Field(0, description="How much each request adds.")
    last: bool | None = Field(None, description="True to evaluate no later rule if this rule matches.")


class MetricReference(KubeModel):
    """A metric or method, of the product itself or of one of its backends."""

    system_name: Required[str] = Field("", description="Its system name.")
    backend: str | None = Field(None, description="The backend's system name; absent for the product's own metrics.")


class Security(KubeModel):
    """Headers that the gateway sends to the backends."""

    host_header: str | None = Field(None, description="The Host header that backends get.")
    secret_token: str | None = Field(None, description="A token by which backends recognise the gateway.")


class GatewayResponse(KubeModel):
    """The gateway's answers to requests that it refuses."""

    error_status_auth_failed: Int32 | None = Field(None, description="Status when credentials are wrong.")
    error_headers_auth_failed: str | None = Field(None, description="Content type when credentials are wrong.")
    error_auth_failed: str | None = Field(None, description="Body when credentials are wrong.")
    error_status_auth_missing: Int32 | None = Field(None, description="Status when credentials are missing.")
    error_headers_auth_missing: str | None = Field(None, description="Content type when credentials are missing.")
    error_auth_missing: str | None = Field(None, description="Body when credentials are missing.")
    error_status_no_match: Int32 | None = Field(None, description="Status when no mapping rule matches.")
    error_headers_no_match: str | None = Field(None, description="Content type when no mapping rule matches.")
    error_no_match: str | None = Field(None, description="Body when no mapping rule matches.")
    error_status_limits_exceeded: Int32 | None = Field(None, description="Status when a limit is exceeded.")
    error_headers_limits_exceeded: str | None = Field(None, description="Content type when a limit is exceeded.")
    error_limits_exceeded: str | None = Field(None, description="Body when a limit is exceeded.")


class AuthenticationFlow(KubeModel):
    """The enabled flows of OpenID Connect."""

    standard_flow_enabled: Required[bool] = Field(False, description="The authorization code flow.")
    implicit_flow_enabled: Required[bool] = Field(False, description="The implicit flow.")
    service_accounts_enabled: Required[bool] = Field(False, description="The client credentials flow.")
    direct_access_grants_enabled: Required[bool] = Field(False, description="The resource owner password flow.")


class CallerAuthentication(KubeModel):
    """The settings that all ways to authenticate callers share."""

    security: Security | None = Field(None, description="Headers that the gateway sends to the backends.")
    gateway_response: GatewayResponse | None = Field(
        None, description="The gateway's answers to requests that it refuses."
    )


class OpenIdConnect(CallerAuthentication):
    """Authentication of callers by a token of an issuer."""

    issuer_type: Required[Annotated[str, Marker(enum=("keycloak", "rest"))]] = Field(
        "", description="The kind of issuer, which decides how 3scale registers clients there."
    )
    issuer_endpoint: str | None = Field(None, description="The issuer's address; takes precedence over the reference.")
    issuer_endpoint_ref: SecretReference | None = Field(
        None, description="A Secret with the issuer's address under `issuerEndpoint`."
    )
    authentication_flow: AuthenticationFlow | None = Field(None, description="The enabled flows.")
    jwt_claim_with_client_id: str | None = Field(
        None, alias="jwtClaimWithClientID", description="The claim that contains the client's id."
    )
    jwt_claim_with_client_id_type: Annotated[str | None, Marker(enum=("plain", "liquid"))] = Field(
        None,
        alias="jwtClaimWithClientIDType",
        description="How the claim with the client's id is evaluated: as plain text or by Liquid.",
    )
    credentials: CredentialsLocation = Field(None, description="Where callers put the token.")


class Policy(KubeModel):
    """A policy of the gateway's chain."""

    name: Required[str] = Field("", description="The policy's name.")
    version: Required[str] = Field("", description="The policy's version.")
    enabled: Required[bool] = Field(False, description="False to turn the policy off.")
    configuration: JsonObject | None = Field(None, description="Its configuration.")
    configuration_ref: SecretReference | None = Field(
        None, description="A Secret with the configuration as JSON under `configuration`."
    )
