"""The definition of each resource of a handle, or what it waits for.

A provider may require a claim, and its links may impose waits and provide values (linked_providers.py). The provider's
`override` is merged over the handle's template. Parameter values reach a resource only through `template.definition`.

A resource is pinned to its recorded reference: edits of name and namespace are ignored, so that they never create a
second object; a change of apiVersion or kind is an error while the recorded kind is served. A name that the API server
refuses, such as `Foo_Bar`, can be corrected. If two entries define the same object, the first entry with a recorded
reference owns it, else the first entry. The other entry waits until it has another name.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from domain.claims.deep_merge import TooDeep, merge
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Fault, Requester
from domain.claims.handle_names import guid_of
from domain.claims.json_objects import JsonObject, name_of, object_at, text_at, value_at
from domain.claims.linked_providers import Lent, Resources, lent_by_links
from domain.claims.references import provider_name, reference_of
from domain.claims.resources.shared import WaitingFor
from domain.identity import is_possible_name

_KIND = ("apiVersion", "kind")


class DefinitionError(Exception):
    pass


def resource_name(name: str, generate_name: str, *, guid: str, index: int) -> str:
    return name or (generate_name or f"guid{index}-") + guid


def definitions(resources: Resources) -> list[JsonObject | WaitingFor]:
    """Each resource's definition, or what it waits for. Templates read the references of earlier resources.

    Raises DefinitionError, ProviderError, TemplateError.
    """
    found: list[JsonObject | WaitingFor] = []
    for index in range(len(resources.entries)):
        outcome = definition_or_wait(resources, index)
        if not isinstance(outcome, WaitingFor):
            reference = reference_for(resources, index, outcome)
            if reference != resources.recorded(index):
                resources = resources.with_reference(index, reference)
        found.append(outcome)
    return found


def definition_or_wait(resources: Resources, index: int) -> JsonObject | WaitingFor:
    provider = resources.scene.provider(provider_name(resources.entries[index]))
    bound = bool(object_at(resources.handle, "spec", "resourceClaim"))
    if value_at(provider, "spec", "resourceRequiresClaim") is True and not bound:
        return WaitingFor.CLAIM
    lent = lent_by_links(resources, index, provider)
    return WaitingFor.LINKED if lent is None else definition(resources, index, provider, lent)


def reference_for(resources: Resources, index: int, defined: JsonObject) -> JsonObject:
    """The recorded reference, or a new one if none is recorded, or if apiVersion or kind has changed. A missing
    namespace is added while the object does not exist.
    """
    recorded, namespace = resources.recorded(index), text_at(defined, "metadata", "namespace")
    if any(defined[field] != recorded.get(field) for field in _KIND):
        return reference_of(defined)
    lacks = bool(namespace) and not recorded.get("namespace") and resources.state(index) is None
    return {**recorded, "namespace": namespace} if lacks else recorded


def doubled(resources: Resources, outcomes: Sequence[JsonObject | WaitingFor]) -> dict[int, Fault]:
    owners: dict[tuple[str, ...], int] = {}
    found: dict[int, Fault] = {}
    for index in sorted(range(len(outcomes)), key=lambda number: (not resources.recorded(number), number)):
        outcome = outcomes[index]
        if isinstance(outcome, WaitingFor):
            continue
        owner = owners.setdefault(_identity(outcome), index)
        if owner != index:
            same = f"{outcome['kind']} {'/'.join(filter(None, name_of(outcome)))}"
            message = (
                f"{where(resources, index)} would be the same {same} as {where(resources, owner)}: "
                "give one of them a metadata.name or a metadata.generateName of its own"
            )
            found[index] = Fault(reason="ResourceDoubled", message=message)
    return found


def _identity(defined: JsonObject) -> tuple[str, ...]:
    """A kind is the same in all versions of its API group."""
    metadata = object_at(defined, "metadata")
    return _group(defined), text_at(defined, "kind"), text_at(metadata, "namespace"), text_at(metadata, "name")


def _group(obj: JsonObject) -> str:
    return text_at(obj, "apiVersion").rpartition("/")[0]


def definition(resources: Resources, index: int, provider: JsonObject, lent: Lent) -> JsonObject:
    template = object_at(resources.entries[index], "template")
    here = where(resources, index)
    try:
        merged = merge(template, _override(resources, index, provider, lent), overwrite=True)
    except TooDeep as error:
        raise DefinitionError(f"{here}: the definition is {error}") from error
    if not isinstance(merged, dict) or not isinstance(merged.get("metadata", {}), dict):
        raise DefinitionError(f"{here}: the definition or its metadata is not an object")
    for field in _KIND:
        if not text_at(merged, field):
            raise DefinitionError(f"{here}: the definition has no {field}")
    metadata = _metadata(resources, index, provider, merged)
    for field in ("name", "namespace"):
        if not is_possible_name(value := text_at(metadata, field)):
            raise DefinitionError(f"{here}: no object can have the {field} {value!r}")
    return {**merged, "metadata": metadata}


def _override(resources: Resources, index: int, provider: JsonObject, lent: Lent) -> JsonValue:
    override = object_at(provider, "spec", "override")
    if value_at(provider, "spec", "template", "enable") is not True:
        return override
    scene = resources.scene
    variables = {**lent.values, **_fixed_variables(resources, index), **scene.views(provider)}
    what = f"ResourceProvider {text_at(provider, 'metadata', 'name')}, override"
    return scene.renderer.render(override, variables, what=what, lazy=lent.beside(scene.vars(provider)))


def _fixed_variables(resources: Resources, index: int) -> dict[str, object]:
    """Variables that the vars of provider, handle or link cannot override."""
    entries, requester = resources.entries, resources.question.requester
    return {
        "guid": _guid(resources.handle),
        "requester_identities": list(requester.identities),
        "requester_identity": next(iter(requester.identities), None),
        "requester_user": requester.user,
        "resource_index": index,
        "resource_name": value_at(entries[index], "name"),
        "resource_reference": object_at(entries[index], "reference"),
        "resource_references": [object_at(entry, "reference") for entry in entries],
        "resource_state": resources.state(index),
        "resource_states": [resources.state(number) for number in range(len(entries))],
        "resource_template": object_at(entries[index], "template"),
        "resource_templates": [object_at(entry, "template") for entry in entries],
    }


def _metadata(resources: Resources, index: int, provider: JsonObject, merged: JsonObject) -> JsonObject:
    spec = object_at(resources.handle, "spec")
    metadata = {**object_at(merged, "metadata"), **_pinned(resources, index, merged)}
    annotations: JsonObject = {
        **object_at(metadata, "annotations"),
        **object_at(spec, "resourceAnnotations"),
        **own_annotations(resources, index, provider),
    }
    labels = {**object_at(metadata, "labels"), **object_at(spec, "resourceLabels")}
    return {**metadata, "annotations": annotations, **({"labels": labels} if labels else {})}


def _pinned(resources: Resources, index: int, merged: JsonObject) -> JsonObject:
    recorded = resources.recorded(index)
    differs = [field for field in _KIND if merged[field] != recorded.get(field)]
    if not recorded or (differs and index in resources.question.unserved):
        metadata = object_at(merged, "metadata")
        name, generate_name = text_at(metadata, "name"), text_at(metadata, "generateName")
        return {"name": resource_name(name, generate_name, guid=_guid(resources.handle), index=index)}
    same_kind = differs == ["apiVersion"] and _group(merged) == _group(recorded)
    if differs and not (same_kind and index in resources.question.outdated):
        field, was = differs[0], recorded.get(differs[0])
        raise DefinitionError(f"{where(resources, index)}: {field} may not change from {was} to {merged[field]}")
    return {field: recorded[field] for field in ("name", "namespace") if recorded.get(field)}


def own_annotations(resources: Resources, index: int, provider: JsonObject) -> JsonObject:
    names = resources.scene.names
    meta, spec = object_at(resources.handle, "metadata"), object_at(resources.handle, "spec")
    annotations: JsonObject = {
        names.resource_provider_name_annotation: text_at(provider, "metadata", "name"),
        names.resource_provider_namespace_annotation: text_at(provider, "metadata", "namespace"),
        names.resource_handle_name_annotation: text_at(meta, "name"),
        names.resource_handle_namespace_annotation: text_at(meta, "namespace"),
        names.resource_handle_uid_annotation: text_at(meta, "uid"),
        names.resource_index_annotation: str(index),
    }
    if claim := object_at(spec, "resourceClaim"):
        annotations[names.claim_name_key] = text_at(claim, "name")
        annotations[names.claim_namespace_key] = text_at(claim, "namespace")
    if pool := object_at(spec, "resourcePool"):
        annotations[names.pool_name_key] = text_at(pool, "name")
        annotations[names.pool_namespace_key] = text_at(pool, "namespace")
    return {**annotations, **_requester_annotations(names, resources.question.requester)}


def _requester_annotations(names: DomainNames, requester: Requester) -> JsonObject:
    if requester.user is None:
        return {}
    annotations: JsonObject = {names.requester_user_annotation: text_at(requester.user, "metadata", "name")}
    for identity in requester.identities[:1]:
        extra = object_at(identity, "extra")
        annotations[names.requester_email_annotation] = text_at(extra, "email")
        annotations[names.requester_name_annotation] = text_at(extra, "name")
        annotations[names.requester_preferred_username_annotation] = text_at(extra, "preferred_username")
    return annotations


def _guid(handle: JsonObject) -> str:
    return guid_of(text_at(handle, "metadata", "name"), text_at(handle, "metadata", "generateName"))


def where(resources: Resources, index: int) -> str:
    name = text_at(resources.entries[index], "name") or str(index)
    return f"resource {name} of ResourceProvider {provider_name(resources.entries[index])}"
