"""Labels and spec of a handle when it is bound to a claim, and when a pool creates it.

At binding, the resource names and the provider of the claim replace the handle's, and missing resources are added. The
handle's next pass merges the templates. A default lifespan starts at the binding; a handle without a default lifespan
keeps the end that it had while it was free.

A pool's handle is created with its provider's resources, so that claims can match it at once. If templates need the
handle's uid, it gets the resources in its first pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from domain.claims.constants import HANDLE_NAME_PREFIX
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import BindingQuestion, HandleBody, PoolQuestion, WantedEntry
from domain.claims.faults import FAULTS, fault_of
from domain.claims.handle_creation import effective_provider
from domain.claims.handle_expiry import ended
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at, without
from domain.claims.lifespan import end_at_binding, for_pool_handle
from domain.claims.lifespan_templates import handle_terms
from domain.claims.marks import reference_to
from domain.claims.provider_resources import Scene, referring, resource_list
from domain.claims.templates.errors import TemplateError
from domain.claims.timestamps import end_of_handle, requested_end_of
from domain.resource import timestamp

_HANDED_ON = ("preferenceScore", "resourceAnnotations", "resourceLabels", "vars")
_SOME_UID = "00000000-0000-0000-0000-000000000000"


def plan_binding(question: BindingQuestion) -> HandleBody:
    """Labels and spec of the bound handle. If the plan has a fault, the handle must not be bound."""
    claim, handle = question.claim, question.handle
    holder = reference_to(question.names, RESOURCE_CLAIM, claim)
    spec: JsonObject = {**object_at(handle, "spec"), "resourceClaim": holder}
    spec["resources"] = _side_by_side(objects_at(spec, "resources"), question.wanted)
    spec = without(spec, ("provider",))
    if object_at(claim, "spec", "provider"):
        spec["provider"] = effective_provider(claim)
    bound: JsonObject = {**handle, "spec": spec}
    scene = Scene.of(question, claim=claim, handle=bound)
    try:
        end = end_at_binding(
            handle_terms(scene),
            current=end_of_handle(handle),
            requested_end=requested_end_of(claim),
            now=question.now,
        )
    except FAULTS as error:
        return HandleBody(fault=fault_of(error))
    return HandleBody(labels=claim_labels(question.names, claim), spec=object_at(ended(bound, end), "spec"))


def claim_labels(names: DomainNames, claim: JsonObject) -> dict[str, str]:
    return {
        names.claim_name_key: text_at(claim, "metadata", "name"),
        names.claim_namespace_key: text_at(claim, "metadata", "namespace"),
    }


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


def _side_by_side(held: Sequence[JsonObject], wanted: Sequence[WantedEntry]) -> list[JsonValue]:
    entries: list[JsonValue] = []
    for index, resource in enumerate(wanted):
        name: JsonObject = {"name": resource.name} if resource.name else {}
        if index < len(held):
            entries.append({**without(held[index], ("name",)), **name})
        else:
            template: JsonObject = {"template": resource.template} if resource.template else {}
            entries.append({**name, "provider": resource.reference, **template})
    return [*entries, *held[len(wanted) :]]


def plan_pool_handle(question: PoolQuestion) -> HandleBody:
    """Labels and spec of a pool's new handle. If the body has a fault, the handle must not be created."""
    pool = question.pool
    try:
        return HandleBody(labels=_pool_labels(question.names, pool), spec=_pool_spec(question))
    except FAULTS as error:
        return HandleBody(fault=fault_of(error))


def _pool_labels(names: DomainNames, pool: JsonObject) -> dict[str, str]:
    return {
        names.pool_name_key: text_at(pool, "metadata", "name"),
        names.pool_namespace_key: text_at(pool, "metadata", "namespace"),
    }


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
