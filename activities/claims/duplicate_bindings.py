"""Claims with two handles, because the answer to the first bind was lost, and the worker died or gave up waiting.

The claim's status names its handle. Another handle that names the claim is deleted with its resources, but only if
Perdure has bound that handle.
"""

from __future__ import annotations

from typing import cast

from activities.claims.cache import ClaimCache
from domain.claims import RESOURCE_HANDLE
from domain.claims.ignore_label import is_unbound
from domain.claims.json_objects import JsonObject, Name, is_deleting, key_of, name_of, object_at, objects_at, text_at
from domain.claims.references import handle_name, holder_of
from engine.kube.api import FIELD_MANAGER
from engine.kube.informer_cache import Listener


def wake_duplicates(cache: ClaimCache) -> None:
    """From now on, whenever several handles name one claim, wake the lifecycles of these handles."""

    def check(claim: Name | None) -> None:
        handles = cache.handles_of_claim(*claim) if claim else []
        if len(handles) > 1:
            for handle in handles:
                cache.wake(key_of(RESOURCE_HANDLE, handle, cache.cluster))

    def claim_changed(before: JsonObject | None, after: JsonObject | None) -> None:
        if after is not None and is_unbound(cache.names, before or {}) and not is_unbound(cache.names, after):
            check(name_of(after))

    def handle_changed(before: JsonObject | None, after: JsonObject | None) -> None:
        if (holder := holder_of(after)) != holder_of(before):
            check(holder)

    cache.claims.listen(cast(Listener, claim_changed))
    cache.handles.listen(cast(Listener, handle_changed))


async def is_surplus(cache: ClaimCache, handle: JsonObject, claim: JsonObject) -> bool:
    """Whether Perdure bound the handle, but the claim names another existing handle. `handle` needs managedFields."""
    named = handle_name(claim)
    if not named or named == text_at(handle, "metadata", "name") or not _bound_by_perdure(handle):
        return False
    other = await cache.fresh(RESOURCE_HANDLE, cache.namespace, named)
    return other is not None and holder_of(other) == holder_of(handle) and not is_deleting(other)


def _bound_by_perdure(handle: JsonObject) -> bool:
    # Both fields are required: a person who moves a handle to another claim may write only the name.
    written = (
        object_at(entry, "fieldsV1", "f:spec", "f:resourceClaim")
        for entry in objects_at(handle, "metadata", "managedFields")
        if text_at(entry, "manager") == FIELD_MANAGER
    )
    return any({"f:name", "f:namespace"} <= fields.keys() for fields in written)
