"""A handle bound twice because the answer to the first bind was lost.

    bind without an answer --> the worker dies, or gives up waiting --> the claim gets another handle
                           '-> ... the bind is done all the same, late

The claim's status names its handle. Another handle that names the claim is deleted with its resources if Perdure bound
it; one that a person bound by hand stays, and `perdure audit claims` reports it.
"""

from __future__ import annotations

from activities.claims.cache import ClaimCache
from domain.claims import RESOURCE_HANDLE
from domain.claims.marks import handle_name, is_deleting
from domain.claims.objects import JsonObject, object_at, objects_at, text_at
from domain.claims.references import holder_of
from engine.kube.api import FIELD_MANAGER


async def is_surplus(cache: ClaimCache, handle: JsonObject, claim: JsonObject) -> bool:
    """True if the claim's status names another existing handle. `handle` needs its managedFields."""
    named = handle_name(claim)
    if not named or named == text_at(handle, "metadata", "name") or not _bound_by_perdure(handle):
        return False
    other = await cache.fresh(RESOURCE_HANDLE, cache.namespace, named)
    return other is not None and holder_of(other) == holder_of(handle) and not is_deleting(other)


def _bound_by_perdure(handle: JsonObject) -> bool:
    written = objects_at(handle, "metadata", "managedFields")
    return any(
        text_at(entry, "manager") == FIELD_MANAGER and object_at(entry, "fieldsV1", "f:spec", "f:resourceClaim")
        for entry in written
    )
