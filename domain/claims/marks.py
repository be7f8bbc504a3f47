"""What claims and handles say about themselves and about each other, and references to them."""

from __future__ import annotations

from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject, object_at, text_at, value_at
from domain.identity import Key, Kind

Name = tuple[str, str]


def name_of(obj: JsonObject) -> Name:
    return text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name")


def version_of(obj: JsonObject | None) -> str:
    return text_at(obj, "metadata", "resourceVersion")


def is_deleting(obj: JsonObject | None) -> bool:
    return bool(value_at(obj, "metadata", "deletionTimestamp"))


def is_left_alone(names: DomainNames, obj: JsonObject) -> bool:
    return names.ignore_label in object_at(obj, "metadata", "labels")


def handle_name(claim: JsonObject | None) -> str:
    return text_at(claim, "status", "resourceHandle", "name")


def is_detached(claim: JsonObject | None) -> bool:
    return value_at(claim, "status", "resourceHandle", "detached") is True


def is_held_by(handle: JsonObject | None, claim: Name) -> bool:
    return holder_of(handle) == claim and not is_deleting(handle)


def is_managed(names: DomainNames, claim: JsonObject) -> bool:
    return not (is_deleting(claim) or is_left_alone(names, claim))


def is_unbound(names: DomainNames, claim: JsonObject) -> bool:
    """Whether the binder's workflow handles the claim."""
    return is_managed(names, claim) and not handle_name(claim)


def holder_of(handle: JsonObject | None) -> Name | None:
    holder = object_at(handle, "spec", "resourceClaim")
    return (text_at(holder, "namespace"), text_at(holder, "name")) if holder else None


def key_of(kind: Kind, obj: JsonObject, cluster: str) -> Key:
    namespace, name = name_of(obj)
    return Key(kind=kind.name, namespace=namespace, name=name, uid=text_at(obj, "metadata", "uid"), cluster=cluster)


def reference_to(names: DomainNames, kind: Kind, obj: JsonObject) -> JsonObject:
    namespace, name = name_of(obj)
    return {"apiVersion": names.api_version, "kind": kind.name, "name": name, "namespace": namespace}
