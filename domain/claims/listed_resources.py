"""Resources listed by a claim (list mode): defaults, applied once, and validation in each pass.

Initialisation, marked by an annotation, fills each entry's template with the provider's `default` and its schema's
defaults; the user's values have precedence. Clients compare the texts of `status.resources[].validationError`.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims import constants
from domain.claims.merging import merge, schema_defaults
from domain.claims.objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.providers import Scene, reference
from domain.claims.schemas import SchemaError, violation
from domain.claims.templates import TemplateError


def initialised_resources(scene: Scene, provider_names: Sequence[str]) -> list[JsonObject]:
    """`provider_names` has one per entry. Raises ProviderMissing, TemplateError."""
    entries = objects_at(scene.claim, "spec", "resources")
    return [
        _initialised(scene, index, entry, scene.provider(name))
        for index, (entry, name) in enumerate(zip(entries, provider_names, strict=True))
    ]


def _initialised(scene: Scene, index: int, entry: JsonObject, provider: JsonObject) -> JsonObject:
    template: JsonValue = object_at(entry, "template")
    for defaults in (_provider_default(scene, index, entry, provider), _schema_default(provider)):
        template = merge(template, defaults, overwrite=False)
    filled: JsonObject = {**entry, "provider": reference(scene.names, provider)}
    return {**filled, "template": template} if template else filled


def _provider_default(scene: Scene, index: int, entry: JsonObject, provider: JsonObject) -> JsonValue:
    default = object_at(provider, "spec", "default")
    if value_at(provider, "spec", "template", "enable") is not True:
        return default
    variables: dict[str, object] = {
        "resource_claim": scene.claim_view,
        "resource_index": index,
        "resource_name": value_at(entry, "name"),
        "resource_provider": scene.provider_view(provider),
    }
    what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, default"
    return scene.renderer.render(default, variables, what=what, lazy=scene.newer_vars(provider))


def _schema_default(provider: JsonObject) -> JsonValue:
    return schema_defaults(object_at(provider, "spec", "validation", "openAPIV3Schema"))


def validation_errors(scene: Scene, provider_names: Sequence[str]) -> list[str | None]:
    """The first fault of each entry, None if valid; raises ProviderMissing."""
    entries = objects_at(scene.claim, "spec", "resources")
    return [
        _fault(scene, object_at(entry, "template"), scene.provider(name))
        for entry, name in zip(entries, provider_names, strict=True)
    ]


def _fault(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    schema = value_at(provider, "spec", "validation", "openAPIV3Schema")
    where = f"ResourceProvider {text_at(provider, 'metadata', 'name')}"
    try:
        text = None if schema is None else violation(schema, template, f"{where}, validation schema")
    except SchemaError as error:
        return f"{where}: {error}"
    return text if text is not None else _failed_check(scene, template, provider)


def _failed_check(scene: Scene, template: JsonObject, provider: JsonObject) -> str | None:
    """A check that fails counts as false. The template's top-level keys override all variables."""
    variables = {**scene.views(provider), **template}
    weaker = scene.vars(provider)
    for check in objects_at(provider, "spec", "validation", "checks"):
        name = text_at(check, "name")
        what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, validation check {name}"
        try:
            if not scene.renderer.condition(text_at(check, "check"), variables, what=what, lazy=weaker):
                return constants.CHECK_FAILED.format(name=name)
        except TemplateError as error:
            return constants.CHECK_RAISED.format(name=name, error=error.text)
    return None
