"""Resources that a claim lists itself (list mode): their defaults, applied once, and their validation on each pass.

Initialisation happens once in a claim's life, marked by an annotation: each entry gets the full reference to its
provider, and its template is filled up with the provider's `default` and then with the defaults of its schema; what
the user wrote always wins. Later edits of claim or provider never apply defaults again. From then on every pass holds
the claim's own template against the provider's schema and then against its checks; the first fault is told in
`status.resources[].validationError`, in texts that clients compare.
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
    """The claim's whole `spec.resources` with references and defaults; the names are those assigned, one per entry.

    Raises:
        ProviderMissing: an assigned provider does not exist.
        TemplateError: a provider's `default` cannot be rendered.
    """
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
    """For each entry of the claim's list the text of its first fault, None while it is valid.

    Raises:
        ProviderMissing: an assigned provider does not exist.
    """
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
    """The first check that is false or raises; the template's own top-level keys win over every other variable."""
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
