"""The resources that handles manage: objects of any kind. They are read when needed.

An object that belongs to another existing handle is neither shown nor adopted nor deleted
(`domain/claims/resource_adoption.py`).
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
from domain.claims.evaluator_interface import Fault, Operations
from domain.claims.json_objects import JsonObject, is_deleting, name_of, objects_at, text_at, version_of, without
from domain.claims.references import recorded_reference, reference_of
from domain.claims.resource_adoption import other_owner, owned_by_another, owner_of
from domain.identity import Kind
from engine import kube
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, unless_absent
from engine.kube import KubeApi
from engine.kube.discovery import Discovery, Served
from engine.kube.errors import METHOD_NOT_ALLOWED, NO_SUCH_KIND

# After this many refused deletions, an object is left to the next pass.
MOST_DELETIONS = 3


class States(NamedTuple):
    """The live objects. An object is None if it is missing, or if `unreadable` has its index."""

    objects: tuple[JsonObject | None, ...]
    unreadable: tuple[int, ...] = ()


class Managed:
    def __init__(self, api: KubeApi, discovery: Discovery, cache: ClaimCache) -> None:
        self._api = api
        self._discovery = discovery
        self._cache = cache

    async def states(self, handle: JsonObject, *, expired: bool = False) -> States:
        """The live objects of the handle's resources, in order; an object of another existing handle counts as missing.

        Raises:
            ApiError: an object cannot be read. If the handle has `expired`, or access is denied, the object's
                index is in `unreadable` instead.
        """
        unreadable: list[int] = []

        async def read(index: int) -> JsonObject | None:
            try:
                return await self._state(handle, recorded_reference(handle, index))
            except ApiError as error:
                if not (expired or isinstance(error, Denied)):
                    raise
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
        except (Absent, Invalid) as error:
            if error.code == NO_SUCH_KIND:
                self._forget(reference)
            return None
        return None if await self._other_owner(handle, there) else there

    async def unknown_kinds(
        self, handle: JsonObject, states: Sequence[JsonObject | None]
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The indices of missing resources whose kind is served in no version, and the indices of missing resources
        whose kind is served only in another version.
        """
        unserved: list[int] = []
        outdated: list[int] = []
        for index, state in enumerate(states):
            reference = recorded_reference(handle, index)
            if state is not None or not reference:
                continue
            with suppress(ApiError):
                if not await self._is_served(reference):
                    (outdated if await self._in_any_version(reference) else unserved).append(index)
        return tuple(unserved), tuple(outdated)

    async def _is_served(self, reference: JsonObject) -> bool:
        try:
            await self._kind(reference)
        except Absent:
            return False
        return True

    async def create(self, handle: JsonObject, definition: JsonObject) -> JsonObject | Fault:
        """Returns the new object, an existing object to adopt, or the fault that prevents both."""
        namespace, name = name_of(definition)
        where = f"{text_at(definition, 'kind')} {'/'.join(filter(None, (namespace, name)))}"
        try:
            kind = await self._kind(definition)
            try:
                made = await self._api.create(kind, definition, namespace, field_manager=RESOURCE_FIELD_MANAGER)
                return _seen(made)
            except Conflict as taken:
                if taken.code != "AlreadyExists":
                    raise
                if (found := await unless_absent(self._api.get(kind, namespace, name))) is None:
                    raise  # it has gone meanwhile
            there = _seen(found)
            owner = await self._other_owner(handle, there)
            return owned_by_another(where, owner) if owner else there
        except Absent as error:
            if error.code == NO_SUCH_KIND:
                return Fault(reason="UnknownKind", message=f"{where}: {error.message}")
            return Fault(reason="ResourceNotCreated", message=_error_text(error, definition))
        except (Denied, Invalid) as error:
            return _refused(error, definition)

    async def update(self, state: JsonObject, operations: Operations) -> JsonObject | Fault:
        """Patch the object; returns it or a fault. Raises Conflict if it has changed since it was read."""
        try:
            kind = await self._kind(state)
            answer = await self._api.json_patch(
                kind,
                *name_of(state),
                operations.patch,
                resource_version=version_of(state),
                field_manager=RESOURCE_FIELD_MANAGER,
            )
        except (Denied, Invalid) as error:
            return _refused(error, state)
        return _seen(answer)

    async def delete_all(self, handle: JsonObject, states: Sequence[JsonObject | None] = ()) -> list[ApiError]:
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
        """Delete the created objects if the handle was deleted meanwhile; returns whether the handle was deleted."""
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
        """Delete one object. If the recorded version is no longer served, use another version of the group.

        Raises ApiError if the object may still exist.
        """
        delete = partial(self._delete_as, handle, reference, state, bearing_its_name=bearing_its_name)
        try:
            await delete(await self._kind(reference))
        except Absent as absent:
            if absent.code != NO_SUCH_KIND:
                return
            self._forget(reference)
            if served := await self._in_any_version(reference):
                with suppress(Absent):
                    await delete(served.kind)
        except Invalid as invalid:
            if invalid.code != METHOD_NOT_ALLOWED:  # some kinds, such as reviews of access, can only be created
                raise

    async def _delete_as(
        self,
        handle: JsonObject,
        reference: JsonObject,
        state: JsonObject | None,
        kind: Kind,
        *,
        bearing_its_name: bool,
    ) -> None:
        """Delete the object, unless another handle owns it. If only the object's name is known (`bearing_its_name`), an
        object whose annotation names no handle stays.

        Raises Absent, or Conflict if the deletion was refused repeatedly.
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
            if (bearing_its_name or (tried and tried != uid)) and not owner_of(self._cache.names, there):
                return
            try:
                await self._api.delete(kind, namespace, name, uid=uid)
                return
            except Conflict as conflict:
                refused, tried = conflict, uid
        if refused:
            raise refused

    async def _other_owner(self, handle: JsonObject, state: JsonObject) -> str:
        owner = other_owner(self._cache.names, handle, state)
        return owner if owner and await self._cache.fresh(RESOURCE_HANDLE, self._cache.namespace, owner) else ""

    async def _kind(self, obj: JsonObject) -> Kind:
        return (await self._discovery.served(*_names(obj))).kind

    async def _in_any_version(self, obj: JsonObject) -> Served | None:
        return await self._discovery.in_any_version(*_names(obj))

    def _forget(self, obj: JsonObject) -> None:
        self._discovery.forget(*_names(obj))


def _names(obj: JsonObject) -> tuple[str, str]:
    return text_at(obj, "apiVersion"), text_at(obj, "kind")


def _seen(answer: kube.JsonObject) -> JsonObject:
    state = cast("JsonObject", answer)
    for part, field in (("metadata", "managedFields"), ("status", "diffBase")):
        inner = state.get(part)
        if isinstance(inner, dict) and field in inner:
            state = {**state, part: without(inner, (field,))}
    return state


def _refused(error: Denied | Invalid, obj: JsonObject) -> Fault:
    reason = "ResourceForbidden" if isinstance(error, Denied) else "ResourceInvalid"
    return Fault(reason=reason, message=_error_text(error, obj))


def _error_text(error: ApiError, obj: JsonObject) -> str:
    """The error's text; for a Secret only the error's code, because the message may quote data."""
    if text_at(obj, "kind") != "Secret":
        return error.message
    namespace, name = name_of(obj)
    return f"Secret {namespace}/{name}: {error.code}"


def resource_count(handle: JsonObject) -> int:
    return max(len(objects_at(handle, part, "resources")) for part in ("spec", "status"))
