"""Product: an API as its users see it, with its metrics, rules, plans and the backends behind it."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.identity import Kind
from domain.resource import KubeModel
from domain.schema import Marker, Required
from domain.threescale import PRODUCT
from domain.threescale.resources.shared import (
    CallerAuthentication,
    Conditions,
    CredentialsLocation,
    Int64,
    InTenant,
    MappingRule,
    Metric,
    MetricReference,
    Money,
    OpenIdConnect,
    Policy,
    ProductMethod,
    RemoteResource,
    RemoteStatus,
    Url,
)


class UserKey(CallerAuthentication):
    """Authentication of callers by one key."""

    auth_user_key: str | None = Field(None, description="The name of the parameter or header with the key.")
    credentials: CredentialsLocation = Field(None, description="Where callers put the key.")


class AppKeyAppId(CallerAuthentication):
    """Authentication of callers by an id and a key."""

    app_id: str | None = Field(None, alias="appID", description="The name of the parameter or header with the id.")
    app_key: str | None = Field(None, description="The name of the parameter or header with the key.")
    credentials: CredentialsLocation = Field(None, description="Where callers put id and key.")


class Authentication(KubeModel):
    """The authentication of callers."""

    userkey: UserKey | None = Field(None, description="Callers authenticate by one key.")
    app_key_app_id: AppKeyAppId | None = Field(
        None, alias="appKeyAppID", description="Callers authenticate by an id and a key."
    )
    oidc: OpenIdConnect | None = Field(None, description="Callers authenticate by a token of an issuer.")


OneAuthentication = Annotated[Authentication | None, Marker(one_of=("userkey", "appKeyAppID", "oidc"))]


class Hosted(KubeModel):
    """A gateway that 3scale runs."""

    authentication: OneAuthentication = Field(None, description="How callers authenticate; unchanged if absent.")


class SelfManaged(KubeModel):
    """A self-managed gateway."""

    authentication: OneAuthentication = Field(None, description="How callers authenticate; unchanged if absent.")
    staging_public_base_url: Url | None = Field(
        None, alias="stagingPublicBaseURL", description="The staging gateway's address."
    )
    production_public_base_url: Url | None = Field(
        None, alias="productionPublicBaseURL", description="The production gateway's address."
    )


class Deployment(KubeModel):
    """The place where the gateway runs."""

    apicast_hosted: Hosted | None = Field(None, description="A gateway that 3scale runs.")
    apicast_self_managed: SelfManaged | None = Field(None, description="A self-managed gateway.")

    @property
    def authentication(self) -> Authentication | None:
        """The authentication of callers; None leaves 3scale's setting unchanged."""
        chosen = self.apicast_self_managed or self.apicast_hosted
        return chosen.authentication if chosen else None


class Limit(KubeModel):
    """A limit of an application's use."""

    period: Required[Annotated[str, Marker(enum=("eternity", "year", "month", "week", "day", "hour", "minute"))]] = (
        Field("", description="The period of the limit.")
    )
    value: Required[int] = Field(0, description="The highest count within the period.")
    metric_method_ref: Required[MetricReference] = Field(
        MetricReference(), description="The metric or method that is limited."
    )


class PricingRule(KubeModel):
    """The price of each unit of an application's use, for one range of units."""

    from_: Required[int] = Field(0, alias="from", description="The first unit of the range.")
    to: Required[int] = Field(0, description="The last unit of the range.")
    price_per_unit: Required[Money] = Field("", description="The price of each unit.")
    metric_method_ref: Required[MetricReference] = Field(
        MetricReference(), description="The metric or method with this price."
    )


class ApplicationPlan(KubeModel):
    """A plan: limits and prices of applications."""

    name: str | None = Field(None, description="Its name for people; the system name if absent.")
    apps_require_approval: bool | None = Field(None, description="True if a person must approve each application.")
    trial_period: Annotated[int | None, Marker(minimum=0)] = Field(
        None, description="The number of days for which an application costs nothing."
    )
    setup_fee: Money | None = Field(None, description="The one-time price of an application.")
    cost_month: Money | None = Field(None, description="The monthly price of an application.")
    published: bool | None = Field(None, description="True to offer the plan to developers.")
    limits: tuple[Limit, ...] = Field((), description="How much an application may use.")
    pricing_rules: tuple[PricingRule, ...] = Field((), description="The prices of an application's use.")


class BackendUsage(KubeModel):
    """The use of a backend by the product."""

    path: Required[str] = Field("", description="The path prefix of the backend.")


class ProductSpec(InTenant):
    """The desired state in 3scale."""

    name: Required[str] = Field("", description="Its name for people.")
    system_name: str = Field("", description="Its system name in 3scale; derived from the name if absent.")
    description: str | None = Field(None, description="A description.")
    deployment: Annotated[Deployment | None, Marker(one_of=("apicastHosted", "apicastSelfManaged"))] = Field(
        None, description="Where the gateway runs; unchanged if absent."
    )
    mapping_rules: tuple[MappingRule, ...] = Field((), description="Rules that count requests, in order of evaluation.")
    backend_usages: dict[str, BackendUsage] = Field(
        {}, description="The backends that the product uses, by system name."
    )
    metrics: dict[str, Metric] = Field({}, description="Metrics, by system name; `hits` is always counted.")
    methods: dict[str, ProductMethod] = Field({}, description="Methods, which count parts of `hits`, by system name.")
    application_plans: dict[str, ApplicationPlan] = Field({}, description="Its plans, by system name.")
    policies: tuple[Policy, ...] = Field((), description="The gateway's chain of policies.")


class ProductStatus(RemoteStatus):
    """The observed state."""

    product_id: Int64 | None = Field(None, description="Its id in 3scale.")
    state: str | None = Field(None, description="Its state in 3scale.")
    latest_production_version: int | None = Field(
        None, description="The newest version in production, if promotion is automatic."
    )
    conditions: Conditions = Field((), description="Synced, Orphan, Invalid and Failed.")


class Product(RemoteResource):
    """An API as its users see it."""

    kind_of: ClassVar[Kind] = PRODUCT
    id_field: ClassVar[str] = "product_id"
    counterpart: ClassVar[str] = "3scale product {}"

    spec: ProductSpec = ProductSpec()
    status: ProductStatus = ProductStatus()
