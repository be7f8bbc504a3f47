"""References among claims, handles, pools, providers and managed resources.

The API group is ignored when they are read, and is OPERATOR_DOMAIN when they are written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

from domain.claims import RESOURCE_PROVIDER
from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import (
    JsonObject,
    Name,
    entry_at,
    name_of,
    object_at,
    objects_at,
    only,
    text_at,
    value_at,
)
from domain.identity import Kind, is_possible_name

# What the API server accepts as the name of almost every kind; roles and OpenShift's users may have others.
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME, _NAMESPACE = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*"), re.compile(rf"(?=.{{1,63}}$){_LABEL}")


def handle_name(claim: JsonObject | None) -> str:
    return text_at(claim, "status", "resourceHandle", "name")


def is_detached(claim: JsonObject | None) -> bool:
    return value_at(claim, "status", "resourceHandle", "detached") is True


def holder_of(handle: JsonObject | None) -> Name | None:
    holder = object_at(handle, "spec", "resourceClaim")
    return (text_at(holder, "namespace"), text_at(holder, "name")) if holder else None


def provider_name(entry: JsonValue) -> str:
    return text_at(entry, "provider", "name")


def providers_known(claim: JsonObject) -> list[str]:
    """The provider of each listed resource, from the spec, else from the status; empty if neither names a provider."""
    shown = objects_at(claim, "status", "resources")
    found = []
    for index, entry in enumerate(objects_at(claim, "spec", "resources")):
        name, here = text_at(entry, "name"), entry_at(shown, index)
        # In the status, the entry with the resource's name counts. If there is none, the entry at the same index
        # counts, unless the resource and this entry have different names.
        known = next((each for each in (here, *shown) if name and text_at(each, "name") == name), here)
        renamed = name and text_at(known, "name") not in ("", name)
        found.append(provider_name(entry) or ("" if renamed else provider_name(known)))
    return found


def named_providers(resource: JsonValue) -> set[str]:
    names = {text_at(resource, part, "provider", "name") for part in ("spec", "status")}
    names |= {provider_name(entry) for part in ("spec", "status") for entry in objects_at(resource, part, "resources")}
    return names - {""}


def reference_to(names: DomainNames, kind: Kind, obj: JsonObject) -> JsonObject:
    namespace, name = name_of(obj)
    return {"apiVersion": names.api_version, "kind": kind.name, "name": name, "namespace": namespace}


def provider_reference(names: DomainNames, provider: JsonObject) -> JsonObject:
    return reference_to(names, RESOURCE_PROVIDER, provider)


def referring(names: DomainNames, entry: JsonObject, providers: Mapping[str, JsonObject]) -> JsonObject:
    """The entry with its provider reference corrected to this domain and namespace."""
    named, provider = object_at(entry, "provider"), providers.get(provider_name(entry))
    here = only(provider_reference(names, provider), *named) if provider else {}
    return {**entry, "provider": {**named, **here}} if here else entry


def recorded_reference(handle: JsonObject, index: int) -> JsonObject:
    """The reference to the resource's managed object, from the spec (Poolboy up to 1.13), else from the status (1.14
    and later). `{}` if there is none, or if its name is invalid for every kind.
    """
    entries, shown = (objects_at(handle, part, "resources") for part in ("spec", "status"))
    entry = entry_at(entries, index)
    if _is_possible(own := object_at(entry, "reference")):
        return own
    # If a person removes an entry of the spec, the status keeps the former order until the next pass.
    taken = [object_at(each, "reference") for each in entries]
    named = (each for each in shown if text_at(each, "name") and text_at(each, "name") == text_at(entry, "name"))
    found = (object_at(each, "reference") for each in (entry_at(shown, index), *named))
    return next((each for each in found if _is_possible(each) and each not in taken), {})


def is_likely(reference: JsonObject) -> bool:
    """Whether the name and namespace are valid for objects of most kinds."""
    name, namespace = text_at(reference, "name"), text_at(reference, "namespace")
    return bool(_NAME.fullmatch(name) and (not namespace or _NAMESPACE.fullmatch(namespace)))


def reference_of(defined: JsonObject) -> JsonObject:
    metadata = object_at(defined, "metadata")
    found: JsonObject = {"apiVersion": defined["apiVersion"], "kind": defined["kind"], "name": metadata["name"]}
    return {**found, "namespace": metadata["namespace"]} if metadata.get("namespace") else found


def _is_possible(reference: JsonObject) -> bool:
    name, namespace = text_at(reference, "name"), text_at(reference, "namespace")
    return bool(name) and is_possible_name(name) and is_possible_name(namespace)
