"""Defaults of the resources that a claim lists (list mode), written into its spec once; an annotation records that.

The user's values have precedence, then the provider's `default`, then the defaults of the provider's schema.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims.deep_merge import merge, schema_defaults
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.template_variables import Scene


def with_defaults(scene: Scene, provider_names: Sequence[str]) -> list[JsonObject]:
    """The listed resources, with defaults of the providers `provider_names`. Raises ProviderMissing, TemplateError."""
    entries = objects_at(scene.claim, "spec", "resources")
    return [
        _with_defaults(scene, index, entry, scene.provider(name))
        for index, (entry, name) in enumerate(zip(entries, provider_names, strict=True))
    ]


def _with_defaults(scene: Scene, index: int, entry: JsonObject, provider: JsonObject) -> JsonObject:
    template: JsonValue = object_at(entry, "template")
    for defaults in (_provider_default(scene, index, entry, provider), _schema_default(provider)):
        template = merge(template, defaults, overwrite=False)
    filled: JsonObject = {**entry, "provider": scene.reference(provider)}
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
