"""The resources that handles manage: objects of any kind, found by discovery, read when they are needed.

An existing object with the name of a resource is adopted, whatever its origin: it is brought to its definition like any
other, as far as the provider's filters allow. Only an object that another living handle manages is left alone; an
annotation names its handle. The same annotation is checked before each deletion.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, cast

from activities.claims.cache import ClaimCache
from domain.claims import RESOURCE_HANDLE
from domain.claims.constants import RESOURCE_FIELD_MANAGER
from domain.claims.definitions import reference_of
from domain.claims.linked import recorded_reference
from domain.claims.marks import is_deleting
from domain.claims.objects import JsonObject, object_at, objects_at, text_at, without
from domain.claims.plans import Fault, Operations
from domain.identity import Kind
from engine import kube
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid
from engine.kube import KubeApi
from engine.kube.discovery import Discovery
from engine.kube.errors import NO_SUCH_KIND

# Number of refused deletions before it is left to the next pass.
MOST_DELETIONS = 3


class States(NamedTuple):
    """The live objects of resources: None for missing ones, and for those that may not be read (`unreadable`)."""

    objects: tuple[JsonObject | None, ...]
    unreadable: tuple[int, ...] = ()


class Managed:
    """Managed resources on the API server."""

    def __init__(self, api: KubeApi, discovery: Discovery, cache: ClaimCache) -> None:
        self._api = api
        self._discovery = discovery
        self._cache = cache
        self._owner = ("metadata", "annotations", cache.names.resource_handle_name_annotation)

    async def states(self, handle: JsonObject) -> States:
        """The live objects of the handle's resources, in order.

        A reference is recorded before its object is made, so the object may belong to another living handle: it then
        does
        not count as this handle's and stays unchanged.

        Raises:
            ApiError: no answer, which must not count as absence.
        """
        unreadable: list[int] = []

        async def read(index: int) -> JsonObject | None:
            try:
                return await self._state(handle, recorded_reference(handle, index))
            except Denied:
                unreadable.append(index)
                return None

        entries = objects_at(handle, "spec", "resources")
        states = await asyncio.gather(*(read(index) for index in range(len(entries))))
        return States(tuple(states), tuple(unreadable))

    async def _state(self, handle: JsonObject, reference: JsonObject) -> JsonObject | None:
        if not reference:
            return None
        namespace, name = text_at(reference, "namespace"), text_at(reference, "name")
        try:
            kind = await self._kind(reference)
            there = _seen(await self._api.get(kind, namespace, name))
        except (Absent, Invalid):
            return None
        return None if await self._other_owner(handle, there) else there

    async def unknown_kinds(
        self, handle: JsonObject, states: Sequence[JsonObject | None]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The resources whose recorded kind its group serves in no version, and those whose kind it serves in another
        one.

        Checked for missing objects; if the API server does not answer or refuses, a resource is in neither.
        """
        unserved: list[int] = []
        outdated: list[int] = []
        for index, state in enumerate(states):
            reference = recorded_reference(handle, index)
            if state is not None or not reference:
                continue
            with suppress(ApiError):
                if not await self._is_served(reference):
                    names = text_at(reference, "apiVersion"), text_at(reference, "kind")
                    (outdated if await self._discovery.in_any_version(*names) else unserved).append(index)
        return tuple(unserved), tuple(outdated)

    async def _is_served(self, reference: JsonObject) -> bool:
        try:
            await self._kind(reference)
        except Absent:
            return False
        return True

    async def create(self, handle: JsonObject, definition: JsonObject) -> JsonObject | Fault:
        """Create the object from its definition or return the existing one; or the fault that prevents it."""
        namespace, name = text_at(definition, "metadata", "namespace"), text_at(definition, "metadata", "name")
        where = (
            f"{text_at(definition, 'kind')} {namespace}/{name}"
            if namespace
            else f"{text_at(definition, 'kind')} {name}"
        )
        try:
            kind = await self._kind(definition)
            try:
                made = await self._api.create(kind, definition, namespace, field_manager=RESOURCE_FIELD_MANAGER)
                return _seen(made)
            except Conflict as taken:
                if taken.code != "AlreadyExists":
                    raise
            there = _seen(await self._api.get(kind, namespace, name))
            if owner := await self._other_owner(handle, there):
                return Fault(reason="ResourceOwned", message=f"{where} belongs to ResourceHandle {owner}, which exists")
            return there
        except Absent as error:
            if error.code == NO_SUCH_KIND:
                return Fault(reason="UnknownKind", message=f"{where}: {error.message}")
            return Fault(reason="ResourceNotCreated", message=_said(error, definition))
        except (Denied, Invalid) as error:
            return _refused(error, definition)

    async def update(self, state: JsonObject, operations: Operations) -> JsonObject | Fault:
        """Patch the object, only in the version that the patch was computed from; returns the result.

        Raises:
            Conflict: it has changed meanwhile.
        """
        try:
            kind = await self._kind(state)
            meta = object_at(state, "metadata")
            answer = await self._api.json_patch(
                kind,
                text_at(meta, "namespace"),
                text_at(meta, "name"),
                operations.patch,
                resource_version=text_at(meta, "resourceVersion"),
                field_manager=RESOURCE_FIELD_MANAGER,
            )
        except (Denied, Invalid) as error:
            return _refused(error, state)
        return _seen(answer)

    async def delete_all(self, handle: JsonObject, states: Sequence[JsonObject | None] = ()) -> list[ApiError]:
        """Request the deletion of the handle's resources, newest first; returns the errors of those that failed.

        `states` are live objects that were just read; None, or an empty sequence, for those to look up here.
        """
        refused: list[ApiError] = []
        for index in reversed(range(resource_count(handle))):
            reference = recorded_reference(handle, index)
            try:
                if reference:
                    await self._delete(handle, reference, states[index] if index < len(states) else None)
            except ApiError as error:
                refused.append(error)
        return refused

    async def take_back(self, handle: JsonObject, definitions: Sequence[JsonObject]) -> bool:
        """Delete the objects made from these definitions if the handle has ended meanwhile; returns whether it has.

        A handle is marked as deleted before its resources are deleted: objects made after that are seen by no other
        pass.
        """
        if not definitions:
            return False
        there = await self._cache.fresh(RESOURCE_HANDLE, self._cache.namespace, text_at(handle, "metadata", "name"))
        same_one = text_at(there, "metadata", "uid") == text_at(handle, "metadata", "uid")
        if same_one and not is_deleting(there):
            return False
        for definition in reversed(definitions):
            await self._delete(handle, reference_of(definition), bearing_its_name=True)
        return True

    async def _delete(
        self,
        handle: JsonObject,
        reference: JsonObject,
        state: JsonObject | None = None,
        *,
        bearing_its_name: bool = False,
    ) -> None:
        """Delete one, see `_delete_as`; in another version of its group if the recorded one is no longer served.

        If its group serves the kind in no version, all objects of the kind are gone.

        Raises:
            Conflict: it still exists, and its deletion was refused repeatedly.
            ApiError: no answer, which must not count as absence.
        """
        delete = partial(self._delete_as, handle, reference, state, bearing_its_name=bearing_its_name)
        try:
            await delete(await self._kind(reference))
        except Absent as absent:
            if absent.code != NO_SUCH_KIND:
                return
            api_version, name = text_at(reference, "apiVersion"), text_at(reference, "kind")
            self._discovery.forget(api_version, name)
            if served := await self._discovery.in_any_version(api_version, name):
                with suppress(Absent):
                    await delete(served.kind)

    async def _delete_as(
        self,
        handle: JsonObject,
        reference: JsonObject,
        state: JsonObject | None,
        kind: Kind,
        *,
        bearing_its_name: bool,
    ) -> None:
        """Delete one; with `bearing_its_name` only if its annotation names the handle, as on objects that the handle
        made.

        A conflict mostly means that another object has the name now, but not always: the existing object decides.

        Raises:
            Absent: it is gone, or its kind.
            Conflict: it still exists, and its deletion was refused repeatedly.
        """
        namespace, name = text_at(reference, "namespace"), text_at(reference, "name")
        refused: Conflict | None = None
        tried = ""
        for _ in range(MOST_DELETIONS):
            there = state or cast("JsonObject", await self._api.get(kind, namespace, name))
            state = None
            if is_deleting(there) or await self._other_owner(handle, there):
                return
            uid = text_at(there, "metadata", "uid")
            if (bearing_its_name or (tried and tried != uid)) and not text_at(there, *self._owner):
                return
            try:
                await self._api.delete(kind, namespace, name, uid=uid)
                return
            except Conflict as conflict:
                refused, tried = conflict, uid
        if refused:
            raise refused

    async def _other_owner(self, handle: JsonObject, state: JsonObject) -> str:
        """The name of another existing handle that manages the object; empty if there is none."""
        owner = text_at(state, *self._owner)
        if not owner or owner == text_at(handle, "metadata", "name"):
            return ""
        return owner if await self._cache.fresh(RESOURCE_HANDLE, self._cache.namespace, owner) else ""

    async def _kind(self, obj: JsonObject) -> Kind:
        served = await self._discovery.served(text_at(obj, "apiVersion"), text_at(obj, "kind"))
        return served.kind


def _seen(answer: kube.JsonObject) -> JsonObject:
    """A live object as templates, filters and claims see it, without managedFields."""
    state = cast("JsonObject", answer)
    for part, field in (("metadata", "managedFields"), ("status", "diffBase")):
        inner = state.get(part)
        if isinstance(inner, dict) and field in inner:
            state = {**state, part: without(inner, (field,))}
    return state


def _refused(error: Denied | Invalid, obj: JsonObject) -> Fault:
    reason = "ResourceForbidden" if isinstance(error, Denied) else "ResourceInvalid"
    return Fault(reason=reason, message=_said(error, obj))


def _said(error: ApiError, obj: JsonObject) -> str:
    """The API server's message; for a Secret only the reason, as the message may quote secret data."""
    if text_at(obj, "kind") != "Secret":
        return error.message
    namespace, name = text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name")
    return f"Secret {namespace}/{name}: {error.code}"


def resource_count(handle: JsonObject) -> int:
    """The number of the handle's resources in spec or status, whichever is larger."""
    return max(len(objects_at(handle, part, "resources")) for part in ("spec", "status"))
