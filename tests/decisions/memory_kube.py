"""An API server for one test, in its memory: objects with generations, resourceVersions, finalizers and watches.

Passes over hundreds of objects under every fault run on it in seconds; the real API server is where the lifecycles are
tested as a whole. Whatever is written here reaches the mirrors at once.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from domain.identity import Kind
from domain.operator_domain import DEFAULT
from domain.resource import CustomResource, timestamp
from domain.writes import merge
from engine.errors import Absent, Conflict
from engine.kube.api import Listing, WatchEvent
from engine.kube.indexer import IndexFunction
from engine.kube.informer_cache import Mirror, entry_of
from engine.kube.json import JsonObject, text
from engine.kube.reflector import Followed, newer

Json = dict[str, Any]


class MemoryKube:
    """What passes ask of a KubeApi."""

    operator_domain = DEFAULT

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self._versions = itertools.count(1)
        self._latest = 1
        self._changes: list[tuple[str, WatchEvent]] = []
        self._changed = asyncio.Event()
        self._mirrors: dict[str, Mirror] = {}
        self.dropped_from_status: frozenset[str] = frozenset()  # fields that the definitions do not have

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """One object."""
        found = self.objects.get((kind.name, namespace, name))
        if found is None:
            raise Absent(f"get {kind.name} {namespace}/{name}: not found")
        return copy.deepcopy(found)

    async def list(self, kind: Kind, namespace: str = "", **_: Any) -> Listing:
        """All of a kind, in one namespace or everywhere."""
        names = (name for name in self.objects if name[0] == kind.name and namespace in ("", name[1]))
        found = [self.objects[name] for name in names]
        return Listing(copy.deepcopy(found), str(self._latest))

    async def pages(self, kind: Kind, namespace: str = "", **_: Any) -> AsyncGenerator[Listing, None]:
        """The same in one page."""
        yield await self.list(kind, namespace)

    async def watch(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        resource_version: str,
        opened: Callable[[], None] | None = None,
        **_: Any,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Changes of a kind after a version, for ever."""
        if opened is not None:
            opened()
        seen = 0
        while True:
            self._changed.clear()
            new, seen = self._changes[seen:], len(self._changes)
            for changed, event in new:
                meta = event.object["metadata"]
                if (
                    changed == kind.name
                    and namespace in ("", meta["namespace"])
                    and newer(meta["resourceVersion"], resource_version)
                ):
                    yield event
            await self._changed.wait()

    def add_watch(self, *_: object) -> None:
        """Their health is not tested."""

    def remove_watch(self, watch: object) -> None:
        """The same."""

    async def applied(self, kind: Kind, obj: Mapping[str, Any], namespace: str = "", **_: Any) -> Json:
        """The object as it would be; nothing is written."""
        before = self.objects.get((kind.name, namespace, text(obj, "metadata", "name")), {})
        after: Any = merge(copy.deepcopy(before), dict(obj))
        return dict(after)

    async def create(self, kind: Kind, obj: Mapping[str, Any], namespace: str = "", **_: Any) -> Json:
        """A new object."""
        made = copy.deepcopy(dict(obj))
        name = text(made, "metadata", "name") or f"{text(made, 'metadata', 'generateName')}{next(self._versions)}"
        if (kind.name, namespace, name) in self.objects:
            raise Conflict(f"create {kind.name} {namespace}/{name}: already exists", code="AlreadyExists")
        for key, value in made.pop("stringData", {}).items():
            made.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
        version = str(next(self._versions))
        made["metadata"] = {
            **made["metadata"],
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{version}",
            "generation": 1,
            "creationTimestamp": timestamp(datetime.now(UTC)),
        }
        made |= {"apiVersion": kind.under(self.operator_domain).api_version, "kind": kind.name}
        return self._store(kind, made)

    async def put(self, *objects: CustomResource) -> None:
        """Create these objects under their own uids."""
        for each in objects:
            made = await self.create(each.kind_of, each.model_dump(mode="json", exclude_none=True), each.key.namespace)
            made["metadata"]["uid"] = each.metadata.uid
            self._store(each.kind_of, made)

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        resource_version: str = "",
        field_manager: str = "",
    ) -> Json:
        """A merge patch. From objects in its lists nulls are dropped, as the API server does."""
        before = await self._at_version(kind, namespace, name, resource_version)
        parts = ("status",) if subresource else tuple(part for part in patch if part != "status")
        given = {part: _without_nulls_in_lists(patch[part]) for part in parts if part in patch}
        return self._edited(kind, before, merge(before, given))

    async def json_patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        resource_version: str = "",
    ) -> Json:
        """Parts of the object are replaced."""
        before = await self._at_version(kind, namespace, name, resource_version)
        parts = {each["path"].removeprefix("/"): each["value"] for each in operations}
        return self._edited(kind, before, {**copy.deepcopy(before), **parts})

    async def delete(self, kind: Kind, namespace: str, name: str, **_: Any) -> Json | None:
        """The object while finalizers delay its deletion; None if it is gone."""
        found = await self.get(kind, namespace, name)
        found["metadata"].setdefault("deletionTimestamp", timestamp(datetime.now(UTC)))
        left = self._store(kind, found)
        return left if left["metadata"].get("finalizers") else None

    async def _at_version(self, kind: Kind, namespace: str, name: str, version: str) -> Json:
        found = await self.get(kind, namespace, name)
        if version and version != found["metadata"]["resourceVersion"]:
            raise Conflict(f"patch {kind.name} {namespace}/{name}: it has changed")
        return found

    def _edited(self, kind: Kind, before: Json, after: Any) -> Json:
        if after.get("spec") != before.get("spec"):
            after["metadata"]["generation"] += 1
        for field in self.dropped_from_status:
            after.get("status", {}).pop(field, None)
        return before if after == before else self._store(kind, after)

    def _store(self, kind: Kind, obj: Json) -> Json:
        meta = obj["metadata"]
        place = (kind.name, meta["namespace"], meta["name"])
        self._latest = next(self._versions)
        meta["resourceVersion"] = str(self._latest)
        before = self.objects.get(place)
        gone = "deletionTimestamp" in meta and not meta.get("finalizers")
        if gone:
            self.objects.pop(place, None)
        else:
            self.objects[place] = copy.deepcopy(obj)
        self._show(kind, before, None if gone else obj)
        type_ = "DELETED" if gone else "MODIFIED" if before else "ADDED"
        self._changes.append((kind.name, WatchEvent(type_, copy.deepcopy(obj))))
        self._changed.set()
        return obj

    def _show(self, kind: Kind, before: Json | None, after: Json | None) -> None:
        """To the mirror of the kind."""
        mirror = self._mirrors.get(kind.name)
        if mirror is not None and after is not None:
            mirror.learn(copy.deepcopy(after))
        elif mirror is not None and before is not None:
            entry = entry_of(before)
            mirror.entries.pop(entry.name, None)
            mirror.changed(entry, None, seen_live=True)

    # As a Store.

    def follow(self, followed: Followed, indexes: Mapping[str, IndexFunction[JsonObject]] | None = None) -> Mirror:
        """A mirror that is complete from the start."""
        mirror = self._mirrors.setdefault(followed.kind.name, Mirror(self, followed))  # type: ignore[arg-type]
        for name, function in (indexes or {}).items():
            mirror.add_index(name, function)
        mirror.started([])
        return mirror


def _without_nulls_in_lists(value: Any, *, listed: bool = False) -> Any:
    if isinstance(value, Mapping):
        kept = {name: each for name, each in value.items() if not (listed and each is None)}
        return {name: _without_nulls_in_lists(each, listed=listed) for name, each in kept.items()}
    return [_without_nulls_in_lists(each, listed=True) for each in value] if isinstance(value, list | tuple) else value
