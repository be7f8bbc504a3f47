"""A claim's requirements for a handle, and the new handle if no free one matches.

In provider mode the provider determines resources and lifespan. In list mode the claim lists the resources; the handle
gets the variables of all their providers (later ones override), and the shortest value of each lifespan setting. Only
providers that have a resource in the handle can forbid its creation.
"""

from __future__ import annotations

from collections.abc import Sequence

from domain.claims import RESOURCE_CLAIM
from domain.claims.evaluator_interface import WantedEntry
from domain.claims.json_objects import JsonObject, object_at, objects_at, only, text_at, value_at
from domain.claims.lifespan import for_claim, least
from domain.claims.lifespan_templates import provider_terms
from domain.claims.marks import reference_to
from domain.claims.provider_resources import Scene, provider_name, reference, resource_list
from domain.claims.timestamps import requested_end_of


def resources_wanted(scene: Scene, assigned: Sequence[str]) -> list[JsonObject]:
    """The resources of a new handle. In list mode, `assigned` has the provider of each resource. Raises ProviderError,
    TemplateError.
    """
    if provider := text_at(scene.claim, "spec", "provider", "name"):
        return resource_list(scene, provider)
    return [
        {**only(entry, "name", "template"), "provider": reference(scene.names, scene.provider(name))}
        for entry, name in zip(objects_at(scene.claim, "spec", "resources"), assigned, strict=True)
    ]


def wanted_entries(scene: Scene, resources: Sequence[JsonObject]) -> tuple[WantedEntry, ...]:
    return tuple(
        WantedEntry(
            provider=provider_name(resource),
            name=text_at(resource, "name"),
            template=object_at(resource, "template"),
            match_ignore=_match_ignore(scene.provider(provider_name(resource))),
            reference=object_at(resource, "provider"),
        )
        for resource in resources
    )


def creation_forbidden(scene: Scene, resources: Sequence[JsonObject]) -> str:
    if value_at(scene.claim, "spec", "disableCreation") is True:
        return "the claim disables creation"
    names = dict.fromkeys(provider_name(resource) for resource in resources)
    forbid = [name for name in names if value_at(scene.provider(name), "spec", "disableCreation") is True]
    return f"ResourceProvider {', '.join(forbid)} disables creation" if forbid else ""


def handle_for_claim(scene: Scene, resources: Sequence[JsonObject]) -> JsonObject:
    """The spec of a new handle.

    Raises:
        TemplateError: a provider's lifespan cannot be rendered.
        UnreadableDuration: a lifespan is not a duration.
        UnreadableMoment: the requested end is not a time.
    """
    claim = scene.claim or {}
    names = [provider_name(resource) for resource in resources]
    provider = text_at(claim, "spec", "provider", "name")
    if provider:
        terms = provider_terms(scene, scene.provider(provider))
        own: JsonObject = {"provider": effective_provider(claim)}
    else:
        terms = least(provider_terms(scene, scene.provider(name)) for name in dict.fromkeys(names))
        own = _present(vars=_all_vars(scene, names))
    lifespan = for_claim(terms, requested_end_of(claim), scene.now)
    return {
        "resourceClaim": reference_to(scene.names, RESOURCE_CLAIM, claim),
        **own,
        "resources": [*resources],
        **_present(lifespan=lifespan),
    }


def effective_provider(claim: JsonObject) -> JsonObject:
    """A handle's `spec.provider` in provider mode: the claim's provider, with the accepted values."""
    provider: JsonObject = {"name": text_at(claim, "spec", "provider", "name")}
    values = value_at(claim, "status", "provider", "parameterValues")
    return provider if values is None else {**provider, "parameterValues": values}


def _all_vars(scene: Scene, names: Sequence[str]) -> JsonObject:
    every: JsonObject = {}
    for name in names:
        every |= object_at(scene.provider(name), "spec", "vars")
    return every


def _match_ignore(provider: JsonObject) -> tuple[str, ...]:
    patterns = value_at(provider, "spec", "matchIgnore")
    return tuple(each for each in patterns if isinstance(each, str)) if isinstance(patterns, list) else ()


def _present(**objects: JsonObject) -> JsonObject:
    return {name: value for name, value in objects.items() if value}
