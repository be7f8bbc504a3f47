"""Deletion of a handle with its resources and its claim, in an order in which each step can be repeated.

    handle marked as deleted --> resources, newest first --> its claim --> finalizer of the handle dropped

The deletion of resources is requested, not awaited. The handle's finalizer stays while a request fails and, in a batch
of claims, until all claims are marked as deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from activities.claims.cache import ClaimCache
from activities.claims.expiry_batch import behind_the_others
from activities.claims.managed_resources import Managed
from activities.claims.object_writes import Writer
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.claim_deleted_with_handle import deletes_claim
from domain.claims.json_objects import JsonObject
from domain.claims.references import holder_of
from engine.errors import ApiError, Conflict


@dataclass(frozen=True)
class Ended:
    """`claim` is the claim whose deletion was requested; None if the claim stays."""

    refused: tuple[ApiError, ...] = ()
    claim: JsonObject | None = None


class Releasing:
    def __init__(self, cache: ClaimCache, writer: Writer, managed: Managed) -> None:
        self._cache = cache
        self._writer = writer
        self._managed = managed

    async def end(
        self,
        handle: JsonObject,
        *,
        as_seen: bool = False,
        claim: JsonObject | None = None,
        states: Sequence[JsonObject | None] = (),
    ) -> Ended:
        """With `as_seen`, raises Conflict if the handle has changed."""
        marked = await self._writer.delete(RESOURCE_HANDLE, handle, as_seen=as_seen)
        refused = await self._managed.delete_all(marked, states)
        ended = await self._end_claim(marked, claim)
        if not refused:
            async with behind_the_others():
                await self._writer.let_go(RESOURCE_HANDLE, marked)
        return Ended(tuple(refused), ended)

    async def _end_claim(self, handle: JsonObject, claim: JsonObject | None) -> JsonObject | None:
        holder = holder_of(handle)
        if holder is None:
            return None
        claim = claim or await self._cache.fresh(RESOURCE_CLAIM, *holder)
        if claim is None or not deletes_claim(handle, claim):
            return None
        try:
            return await self._writer.delete(RESOURCE_CLAIM, claim)
        except Conflict:
            return None  # recreated under the same name
