"""References between claims, handles and pools, in the configured domain whatever domain the object was named by."""

from __future__ import annotations

from domain.claims.constants import API_VERSION
from domain.claims.objects import JsonObject, text_at


def claim_reference(claim: JsonObject) -> JsonObject:
    """What a handle's `spec.resourceClaim` says of its claim."""
    return _reference("ResourceClaim", claim)


def handle_reference(handle: JsonObject) -> JsonObject:
    """What a claim's `status.resourceHandle` says of its handle."""
    return _reference("ResourceHandle", handle)


def pool_reference(pool: JsonObject) -> JsonObject:
    """What a handle's `spec.resourcePool` says of its pool."""
    return _reference("ResourcePool", pool)


def _reference(kind: str, resource: JsonObject) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": text_at(resource, "metadata", "name"),
        "namespace": text_at(resource, "metadata", "namespace"),
    }
