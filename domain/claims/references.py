from __future__ import annotations

from domain.claims.domain_names import DomainNames
from domain.claims.json_objects import JsonObject, object_at, text_at
from domain.identity import Key, Kind


def claim_reference(names: DomainNames, claim: JsonObject) -> JsonObject:
    return _reference(names, "ResourceClaim", claim)


def handle_reference(names: DomainNames, handle: JsonObject) -> JsonObject:
    return _reference(names, "ResourceHandle", handle)


def pool_reference(names: DomainNames, pool: JsonObject) -> JsonObject:
    return _reference(names, "ResourcePool", pool)


def holder_of(handle: JsonObject | None) -> tuple[str, str] | None:
    holder = object_at(handle, "spec", "resourceClaim")
    return (text_at(holder, "namespace"), text_at(holder, "name")) if holder else None


def key_of(kind: Kind, obj: JsonObject, cluster: str) -> Key:
    meta = object_at(obj, "metadata")
    namespace, name, uid = (text_at(meta, field) for field in ("namespace", "name", "uid"))
    return Key(kind=kind.name, namespace=namespace, name=name, uid=uid, cluster=cluster)


def _reference(names: DomainNames, kind: str, resource: JsonObject) -> JsonObject:
    return {
        "apiVersion": names.api_version,
        "kind": kind,
        "name": text_at(resource, "metadata", "name"),
        "namespace": text_at(resource, "metadata", "namespace"),
    }
