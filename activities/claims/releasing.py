"""The end of a handle: its resources, its claim and itself, in an order in which each step can be done again.

    handle marked as deleted --> resources, newest first --> claim (unless detached) --> finalizer of the handle dropped

The mark comes first: from then on nobody binds or renews it, and whoever finds it goes on from there. Resources are
asked to go and not waited for. The finalizer stays while one of them cannot be asked.
"""

from __future__ import annotations

from activities.claims.known import Known
from activities.claims.managed import Managed
from activities.claims.writing import Writer
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.objects import JsonObject, object_at, text_at, value_at
from engine.errors import ApiError, Conflict


class Releasing:
    """Ending handles."""

    def __init__(self, known: Known, writer: Writer, managed: Managed) -> None:
        self._known = known
        self._writer = writer
        self._managed = managed

    async def end(self, handle: JsonObject, *, as_seen: bool = False) -> list[ApiError]:
        """End the handle and everything that hangs on it; what could not be asked to go.

        With `as_seen` only if nobody has changed the handle since it was read.

        Raises:
            Conflict: somebody has.
        """
        await self._writer.delete(RESOURCE_HANDLE, handle, as_seen=as_seen)
        name = text_at(handle, "metadata", "name")
        marked = await self._known.fresh(RESOURCE_HANDLE, text_at(handle, "metadata", "namespace"), name)
        if marked is None or text_at(marked, "metadata", "uid") != text_at(handle, "metadata", "uid"):
            marked = handle
        refused = await self._managed.delete_all(marked)
        await self._end_claim(marked)
        if not refused:
            await self._writer.let_go(RESOURCE_HANDLE, marked)
        return refused

    async def _end_claim(self, handle: JsonObject) -> None:
        """Delete the claim that holds the handle; one that has given it up, or names another, lives on."""
        holder = object_at(handle, "spec", "resourceClaim")
        if not holder:
            return
        claim = await self._known.fresh(RESOURCE_CLAIM, text_at(holder, "namespace"), text_at(holder, "name"))
        if claim is None or value_at(claim, "status", "resourceHandle", "detached") is True:
            return
        held = text_at(claim, "status", "resourceHandle", "name")
        if held and held != text_at(handle, "metadata", "name"):
            return
        try:
            await self._writer.delete(RESOURCE_CLAIM, claim)
        except Conflict:
            return  # made anew under its name: another claim
