"""Writes objects as a whole, only if they differ, and only over the version that the decision saw.

A patch without changes costs the API server as much as one with changes. A merge patch would keep entries that were
removed from free-form maps, so objects are replaced.
"""

from __future__ import annotations

from typing import cast

from temporalio import activity

from activities.activity_class import Activities
from activities.claims.cache import ClaimCache
from domain.claims.deep_merge import same
from domain.claims.finalizers import is_in_hand, others_finalizers
from domain.claims.json_objects import JsonObject, is_deleting, name_of, object_at, text_at, version_of
from domain.claims.writes import LetGo, PutObject, PutStatus, Stored
from domain.identity import Kind
from engine import kube
from engine.errors import Absent, unless_absent
from engine.kube import KubeApi


class Writer:
    def __init__(self, api: KubeApi, cache: ClaimCache) -> None:
        self.api = api
        self.names = cache.names
        self._cache = cache

    async def put(self, kind: Kind, before: JsonObject, after: JsonObject) -> JsonObject:
        """Write the object except its status; returns the newest version."""
        if all(same(before.get(part), after.get(part)) for part in ("metadata", "spec")):
            return before
        return self._learnt(kind, await self.api.replace(kind, *name_of(before), _plain(after)))

    async def put_status(self, kind: Kind, before: JsonObject, status: JsonObject) -> JsonObject:
        if same(object_at(before, "status"), status):
            return before
        body = _plain({**before, "status": status})
        return self._learnt(kind, await self.api.replace(kind, *name_of(before), body, subresource="status"))

    async def patch(self, kind: Kind, obj: JsonObject, patch: JsonObject) -> JsonObject:
        """Raises Conflict if the object has changed since it was read."""
        version = version_of(obj)
        return self._learnt(kind, await self.api.patch(kind, *name_of(obj), patch, resource_version=version))

    async def create(self, kind: Kind, body: JsonObject, namespace: str) -> JsonObject:
        return self._learnt(kind, await self.api.create(kind, _plain(body), namespace))

    async def delete(self, kind: Kind, obj: JsonObject, *, as_seen: bool = False) -> JsonObject:
        """Request the deletion; returns the object. Raises Conflict if it was recreated or, with `as_seen`, changed."""
        if is_deleting(obj):
            return obj
        version = version_of(obj) if as_seen else ""
        left = await unless_absent(
            self.api.delete(kind, *name_of(obj), uid=text_at(obj, "metadata", "uid"), resource_version=version)
        )
        return obj if left is None else self._learnt(kind, left)

    async def let_go(self, kind: Kind, obj: JsonObject) -> None:
        """Remove our finalizers, including those of Poolboy's multi-pod mode."""
        if not is_in_hand(self.names, obj):
            return
        others = others_finalizers(self.names, obj)
        body = {"metadata": {"uid": text_at(obj, "metadata", "uid"), "finalizers": others}}
        try:
            answer = await self.api.patch(kind, *name_of(obj), body, resource_version=version_of(obj))
        except Absent:
            return
        if others or not is_deleting(obj):
            self._learnt(kind, answer)

    def _learnt(self, kind: Kind, answer: kube.JsonObject) -> JsonObject:
        self._cache.learn(kind, answer)
        return cast("JsonObject", answer)


class WriteActivities(Activities):
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @activity.defn(name=PutObject.activity)
    async def put(self, action: PutObject) -> Stored:
        return Stored(obj=await self._writer.put(action.kind, action.before, action.after))

    @activity.defn(name=PutStatus.activity)
    async def put_status(self, action: PutStatus) -> Stored:
        status = object_at(action.after, "status")
        return Stored(obj=await self._writer.put_status(action.kind, action.before, status))

    @activity.defn(name=LetGo.activity)
    async def let_go(self, action: LetGo) -> Stored:
        await self._writer.let_go(action.kind, action.before)
        return Stored(obj=action.after)


def _plain(obj: JsonObject) -> kube.JsonObject:
    """The object without managedFields, which the API server keeps if a write omits them."""
    metadata = {name: value for name, value in object_at(obj, "metadata").items() if name != "managedFields"}
    return {**obj, "metadata": metadata}
