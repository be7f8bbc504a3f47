"""What a claim needs of a handle, and the handle that is made for it where no free one fits.

In provider mode the resources are what the provider yields for the accepted values, and the lifespan is that provider's
alone. In list mode they are the claim's own, the variables of their providers come along (later ones win), and each
setting of the lifespan is the shortest of all providers'. A provider of one of the resources, or the claim, can forbid
that a handle is made; a top-level provider that makes nothing of its own forbids nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims.lifespan import Terms, for_claim, least
from domain.claims.lifespan_templates import provider_terms
from domain.claims.objects import JsonObject, object_at, objects_at, only, text_at, value_at
from domain.claims.plans import WantedEntry
from domain.claims.providers import Scene, provider_name, reference, resource_list
from domain.claims.references import claim_reference
from domain.claims.timestamps import requested_end_of


def resources_wanted(scene: Scene, assigned: Sequence[str]) -> list[JsonObject]:
    """The entries that the scene's claim needs in its handle; `assigned` are its providers in list mode.

    Raises:
        ProviderError: a provider is missing, or links wrongly.
        TemplateError: a template of a provider fails.
    """
    if provider := text_at(scene.claim, "spec", "provider", "name"):
        return resource_list(scene, provider)
    return [
        {**only(entry, "name", "template"), "provider": reference(scene.names, scene.provider(name))}
        for entry, name in zip(objects_at(scene.claim, "spec", "resources"), assigned, strict=True)
    ]


def wanted_entries(scene: Scene, resources: Sequence[JsonObject]) -> tuple[WantedEntry, ...]:
    """The same for who looks for a free handle, with the differences that each provider tolerates."""
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
    """Why no handle may be made for the claim, in words; empty where one may."""
    if value_at(scene.claim, "spec", "disableCreation") is True:
        return "the claim disables creation"
    names = dict.fromkeys(provider_name(resource) for resource in resources)
    forbid = [name for name in names if value_at(scene.provider(name), "spec", "disableCreation") is True]
    return f"ResourceProvider {', '.join(forbid)} disables creation" if forbid else ""


def handle_for_claim(scene: Scene, resources: Sequence[JsonObject]) -> JsonObject:
    """The handle that is made for the scene's claim, without name, finalizer and labels.

    Raises:
        TemplateError: a provider's lifespan cannot be rendered.
        UnreadableDuration: it is none.
        UnreadableMoment: the end that the claim asks for is none.
    """
    claim = scene.claim or {}
    names = [provider_name(resource) for resource in resources]
    provider = text_at(claim, "spec", "provider", "name")
    if provider:
        terms = provider_terms(scene, scene.provider(provider))
        own: JsonObject = {"provider": effective_provider(claim)}
    else:
        terms = least(_each_terms(scene, names))
        own = _present(vars=_all_vars(scene, names))
    lifespan = for_claim(terms, requested_end_of(claim), scene.now).as_json()
    listed: list[JsonValue] = [*resources]
    spec: JsonObject = {
        "resourceClaim": claim_reference(scene.names, claim),
        **own,
        "resources": listed,
        **_present(lifespan=lifespan),
    }
    return {"apiVersion": scene.names.api_version, "kind": "ResourceHandle", "spec": spec}


def effective_provider(claim: JsonObject) -> JsonObject:
    """A handle's `spec.provider` for a claim in provider mode: the claim's, with the values that are in force."""
    provider: JsonObject = {"name": text_at(claim, "spec", "provider", "name")}
    values = value_at(claim, "status", "provider", "parameterValues")
    return provider if values is None else {**provider, "parameterValues": values}


def _each_terms(scene: Scene, names: Sequence[str]) -> list[Terms]:
    return [provider_terms(scene, scene.provider(name)) for name in dict.fromkeys(names)]


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
