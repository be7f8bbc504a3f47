"""ResourceProvider: how a resource is created, checked and updated, and what claims may request.

Its status is not a subresource; it contains Perdure's conditions. Expressions, templates and regular expressions stay
strings until they are used.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from domain.claims import RESOURCE_PROVIDER
from domain.claims.constants import APPROVAL_PENDING_MESSAGE, DEFAULT_ALLOWED_OPS
from domain.claims.resources.shared import DEFINITION, Duration, LifespanTerms, Open
from domain.identity import Kind
from domain.resource import AGE, Condition, CustomResource, Definition, KubeModel, PrinterColumn
from domain.schema import Json, JsonObject, Marker, Preserved, Required


class ProviderApproval(Open):
    """Whether a person must approve a claim before it gets a handle."""

    required: bool = Field(False, description="True if only approved claims get a handle.")
    pending_message: str = Field(
        APPROVAL_PENDING_MESSAGE, description="What the claim shows until it is approved or rejected."
    )


class ProviderLifespan(LifespanTerms):
    """The lifespan of the provider's resources; all but `unclaimed` may be templates."""

    default: str = Field("", description="Lifespan of a claim that does not set spec.lifespan.end.")
    unclaimed: Duration = Field("", description="Lifespan of a handle without a claim.")


class TemplateVariable(Open):
    """A variable that is read from a linked resource."""

    name: Required[str] = Field("", description="The variable's name.")
    from_: Required[str] = Field("", alias="from", description="JSON pointer into the linked resource.")


class LinkedProvider(Open):
    """Another provider, whose resource is created along with this provider's."""

    name: Required[str] = Field("", description="The other ResourceProvider's name.")
    parameter_values: JsonObject = Field(
        {}, description="Values of the other provider's parameters; strings are templates."
    )
    resource_name: str = Field("", description="The linked resource's name; by default the other provider's name.")
    template_vars: tuple[TemplateVariable, ...] = Field((), description="Variables read from the linked resource.")
    wait_for: str = Field(
        "", description="Expression that must be true before the linking provider's resource is created."
    )
    when: str = Field("", description="Expression that decides whether the link applies; true if absent.")


class Check(Open):
    """A condition that valid values fulfil."""

    name: Required[str] = Field("", description="The check's name in error messages.")
    check: Required[str] = Field("", description="A Jinja2 expression that is true of valid values.")


class Validation(Open):
    """The validation of values."""

    checks: tuple[Check, ...] = Field((), description="Conditions that valid values fulfil.")
    open_api_v3_schema: JsonObject | None = Field(
        None, alias="openAPIV3Schema", description="The OpenAPI schema of valid values."
    )


class ParameterDefault(Open):
    """A parameter's value if the claim gives none; `template` has precedence over `value`."""

    template: str = Field("", description="Jinja2 template of the value.")
    value: Json = Field(None, description="The value, of any type.")


class Parameter(Open):
    """A parameter that claims may give."""

    name: str = Field("", description="The parameter's name.")
    allow_update: bool = Field(False, description="True if a claim may change the value after it was accepted.")
    default: Preserved[ParameterDefault | None] = Field(None, description="The value if the claim gives none.")
    required: bool = Field(False, description="True if a value is required.")
    validation: Validation | None = Field(None, description="What values are valid.")


class ProviderTemplate(Open):
    """How the provider's templates are rendered, and its parametrised resource."""

    definition: JsonObject | None = Field(None, description="The resource, as templates over the parameters.")
    enable: bool = Field(False, description="True if `default` and `override` are templates.")
    style: Annotated[str, Marker(enum=("jinja2",))] = Field("jinja2", description="The language: jinja2.")


class UpdateFilter(Open):
    """A part of the live resource that may be changed after its creation."""

    path_match: Required[str] = Field("", description="Regular expression that matches a whole JSON pointer.")
    allowed_ops: tuple[str, ...] = Field(
        DEFAULT_ALLOWED_OPS, description="The allowed operations: add, remove, replace. If absent, all three."
    )


class ResourceProviderSpec(Open):
    """How a resource is created, checked and updated."""

    approval: ProviderApproval | None = Field(None, description="Whether claims need an approval.")
    default: JsonObject | None = Field(
        None, description="Values that are added, one time only, where a claim's template has none."
    )
    disable_creation: bool = Field(False, description="True to bind claims to existing free handles only.")
    health_check: str = Field("", description="Expression over the resource: true if it is healthy.")
    lifespan: ProviderLifespan | None = Field(None, description="Lifespan of handles and claims of the provider.")
    linked_resource_providers: tuple[LinkedProvider, ...] = Field(
        (), description="Providers whose resources are created before this one's."
    )
    match: JsonObject | None = Field(
        None, description="A claim's template that contains these values gets this provider."
    )
    match_ignore: tuple[str, ...] = Field(
        (),
        description="A free handle may differ from the wanted template where the JSON pointer matches one of these "
        "regular expressions.",
    )
    override: JsonObject | None = Field(None, description="Merged over the template of the resource.")
    parameters: tuple[Parameter, ...] = Field((), description="The parameters that claims may give.")
    readiness_check: str = Field("", description="Expression over the resource: true if it is ready.")
    resource_claim_annotations: dict[str, str] = Field({}, description="Annotations that its claims get.")
    resource_claim_labels: dict[str, str] = Field({}, description="Labels that its claims get.")
    resource_name: str = Field("", description="The resource's name in a handle; by default the provider's name.")
    resource_requires_claim: bool = Field(
        False, description="True to create the resource only once the handle is bound to a claim."
    )
    status_summary_template: JsonObject | None = Field(None, description="Template of the claim's summary.")
    template: ProviderTemplate | None = Field(None, description="How templates are rendered.")
    update_filters: tuple[UpdateFilter, ...] = Field(
        (), description="What may be changed in a live resource; nothing if there is no filter."
    )
    validation: Validation | None = Field(None, description="How claims' templates are validated.")
    vars: JsonObject = Field({}, description="Variables of its templates.")


class ResourceProviderStatus(KubeModel):
    """What Perdure reports about the provider."""

    conditions: tuple[Condition, ...] = Field((), description="What an administrator should know about the provider.")


class ResourceProvider(CustomResource):
    """How a resource is created, checked and updated, and what claims may ask of it."""

    kind_of: ClassVar[Kind] = RESOURCE_PROVIDER
    definition: ClassVar[Definition] = DEFINITION.model_copy(update={"status_subresource": False})
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (
        PrinterColumn(name="Api Version", type="string", json_path=".spec.override.apiVersion"),
        PrinterColumn(name="Kind", type="string", json_path=".spec.override.kind"),
        AGE,
    )

    spec: ResourceProviderSpec = ResourceProviderSpec()
    status: ResourceProviderStatus = ResourceProviderStatus()
