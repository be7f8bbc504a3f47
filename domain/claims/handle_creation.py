"""New handles: for claims that no free handle matches, and for pools.

In provider mode the provider determines resources and lifespan. In list mode the claim lists the resources; the handle
gets the variables of all their providers (later providers override earlier ones) and, for each lifespan setting, the
shortest value of these providers. For claims, a provider's `disableCreation` forbids only handles with resources of
that provider.

A pool's handle is created with its provider's resources, so that claims can match it at once. If templates need the
handle's uid, it gets the resources in its first pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from domain.claims.constants import HANDLE_NAME_PREFIX
from domain.claims.domain_names import DomainNames
from domain.claims.durations import after, whole_seconds
from domain.claims.evaluator_interface import HandleBody, PoolQuestion, WantedEntry
from domain.claims.faults import FAULTS, Faulty, fault_of
from domain.claims.handle_lifespan import ended
from domain.claims.json_objects import JsonObject, name_of, object_at, objects_at, only, present, text_at, value_at
from domain.claims.lifespan_end import for_claim, for_pool_handle, least
from domain.claims.lifespan_templates import provider_terms
from domain.claims.provider_resources import resource_list
from domain.claims.references import provider_name, reference_to, referring
from domain.claims.template_variables import Scene
from domain.claims.templates.errors import TemplateError
from domain.claims.timestamps import born, end_of_handle, requested_end_of
from domain.resource import timestamp

UNCLAIMED_TOO_SHORT = "UnclaimedTooShort"
_HANDED_ON = ("preferenceScore", "resourceAnnotations", "resourceLabels", "vars")
_SOME_UID = "00000000-0000-0000-0000-000000000000"


def resources_wanted(scene: Scene, assigned: Sequence[str]) -> list[JsonObject]:
    """The resources of a new handle. In list mode, `assigned` has the provider of each resource. Raises ProviderError,
    TemplateError.
    """
    if provider := text_at(scene.claim, "spec", "provider", "name"):
        return resource_list(scene, provider)
    return [
        {**only(entry, "name", "template"), "provider": scene.reference(scene.provider(name))}
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
    """The spec of a new handle. Raises TemplateError, UnreadableDuration, UnreadableMoment."""
    claim = scene.claim or {}
    names = [provider_name(resource) for resource in resources]
    provider = text_at(claim, "spec", "provider", "name")
    if provider:
        terms = provider_terms(scene, scene.provider(provider))
        own: JsonObject = {"provider": effective_provider(claim)}
    else:
        terms = least(provider_terms(scene, scene.provider(name)) for name in dict.fromkeys(names))
        own = present(vars=_all_vars(scene, names) or None)
    lifespan = for_claim(terms, requested_end_of(claim), scene.now)
    return {
        "resourceClaim": reference_to(scene.names, RESOURCE_CLAIM, claim),
        **own,
        "resources": [*resources],
        **present(lifespan=lifespan or None),
    }


def effective_provider(claim: JsonObject) -> JsonObject:
    """A handle's `spec.provider`: the provider that the claim names, with the claim's accepted parameter values."""
    provider: JsonObject = {"name": text_at(claim, "spec", "provider", "name")}
    values = value_at(claim, "status", "provider", "parameterValues")
    return provider if values is None else {**provider, "parameterValues": values}


def claim_labels(names: DomainNames, claim: JsonObject) -> dict[str, str]:
    namespace, name = name_of(claim)
    return {names.claim_name_key: name, names.claim_namespace_key: namespace}


def plan_pool_handle(question: PoolQuestion) -> HandleBody:
    """If the body has a fault, the handle must not be created."""
    names, (namespace, name) = question.names, name_of(question.pool)
    labels = {names.pool_name_key: name, names.pool_namespace_key: namespace}
    try:
        return HandleBody(labels=labels, spec=_pool_spec(question))
    except FAULTS as error:
        return HandleBody(fault=fault_of(error))


def with_end_from_creation(handle: JsonObject, requested_at: datetime) -> JsonObject:
    end, late = end_of_handle(handle), born(handle) - whole_seconds(requested_at)
    return handle if end is None else ended(handle, after(end, late))


def new_handle(
    names: DomainNames, namespace: str, name: str, labels: Mapping[str, JsonValue], spec: JsonObject
) -> JsonObject:
    return {
        "apiVersion": names.api_version,
        "kind": RESOURCE_HANDLE.name,
        "metadata": {
            "name": name,
            "generateName": HANDLE_NAME_PREFIX,
            "namespace": namespace,
            "labels": dict(labels),
            "finalizers": [names.finalizer],
        },
        "spec": spec,
    }


def _all_vars(scene: Scene, names: Sequence[str]) -> JsonObject:
    every: JsonObject = {}
    for name in names:
        every |= object_at(scene.provider(name), "spec", "vars")
    return every


def _match_ignore(provider: JsonObject) -> tuple[str, ...]:
    patterns = value_at(provider, "spec", "matchIgnore")
    return tuple(each for each in patterns if isinstance(each, str)) if isinstance(patterns, list) else ()


def _pool_spec(question: PoolQuestion) -> JsonObject:
    pool = question.pool
    pool_spec = object_at(pool, "spec")
    handed_on: JsonObject = {field: pool_spec[field] for field in _HANDED_ON if pool_spec.get(field)}
    spec: JsonObject = {"resourcePool": reference_to(question.names, RESOURCE_POOL, pool), **handed_on}
    provider: JsonObject | None = None
    if name := text_at(pool_spec, "provider", "name"):
        spec["provider"] = pool_spec["provider"]
        provider = _scene_of_new(question, spec).provider(name)
        spec |= _yielded(question, spec, name)
    elif resources := objects_at(pool_spec, "resources"):
        spec["resources"] = [referring(question.names, entry, question.providers) for entry in resources]
    lifespan = for_pool_handle(pool_spec.get("lifespan"), value_at(provider, "spec", "lifespan"), question.now)
    if lifespan.get("end") == timestamp(question.now):
        message = "lifespan.unclaimed is 0, so each new handle would expire at once: set a longer time, or remove it"
        raise Faulty(UNCLAIMED_TOO_SHORT, message)
    return {**spec, "lifespan": lifespan} if lifespan else spec


def _scene_of_new(question: PoolQuestion, spec: JsonObject, **made: JsonValue) -> Scene:
    metadata: JsonObject = {"namespace": text_at(question.pool, "metadata", "namespace"), **made}
    if question.handle_name:
        metadata |= {"name": question.handle_name, "generateName": HANDLE_NAME_PREFIX}
    handle: JsonObject = {
        "apiVersion": question.names.api_version,
        "kind": "ResourceHandle",
        "metadata": metadata,
        "spec": spec,
    }
    return Scene.of(question, handle=handle)


def _yielded(question: PoolQuestion, spec: JsonObject, provider: str) -> JsonObject:
    """The provider's resources; empty if they cannot be computed before the handle's creation."""
    try:
        resources: list[JsonValue] = [*resource_list(_scene_of_new(question, spec), provider)]
    except TemplateError:
        if question.handle_name:  # an error that would also occur after the creation is a fault
            made = _scene_of_new(question, spec, uid=_SOME_UID, creationTimestamp=timestamp(question.now))
            resource_list(made, provider)
        return {}
    return {"resources": resources}
