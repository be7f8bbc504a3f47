"""The informer cache: objects of many kinds, kept so that a pass reads them without a request.

Each kind and namespace has one copy, a `Mirror`, which all readers share. The reflector of a kind that is not
installed, or that may not be listed, tries again without delaying others; `Mirror.trouble` says why the mirror is
empty.

A mirror is some milliseconds behind the API server. The answer to each write is therefore added at once (`learn`),
unless a newer version is there, so a reader finds its own writes. For other clients' writes, a reader can wait until
the mirror has reached a version (`reached`), or be called at each change (`listen`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from sys import intern

from domain.identity import Kind
from domain.resource import newest_version
from engine.errors import unless_absent
from engine.kube.api import KubeApi
from engine.kube.indexer import Indexer, IndexFunction
from engine.kube.json import JsonObject, mapping, text
from engine.kube.reflector import Followed, Name, Reflector, newer

# Called with the object before and after a change; None if it does not exist.
Listener = Callable[[JsonObject | None, JsonObject | None], None]

# A mirror is behind by milliseconds; after this many seconds its stream must be hanging.
LONGEST_BEHIND = 2.0
# Far more objects than are deleted while an answer is on its way.
MOST_GONE_REMEMBERED = 10_000
# Longer strings are hardly ever equal.
LONGEST_SHARED = 100


@dataclass(frozen=True, slots=True)
class Entry:
    name: Name
    resource_version: str
    object: JsonObject


class Mirror(Reflector[Entry]):
    def __init__(self, api: KubeApi, followed: Followed) -> None:
        self.entries: Indexer[Entry] = Indexer()
        self._gone: dict[str, None] = {}  # uids, in the order of deletion
        self._listeners: list[Listener] = []
        self._learned = ""
        self._known = asyncio.Event()
        super().__init__(api, followed, partial(entry_of, without=followed.without), self.entries, self)

    @property
    def newest(self) -> str:
        """The version of the newest change that the mirror shows, own writes included."""
        return newest_version(self.received, self._learned)

    async def settled(self) -> None:
        """Wait until the mirror is complete, or the kind is found not to be installed."""
        await self._known.wait()

    async def served(self) -> None:
        """Wait like `settled`; raises ApiError if the first list failed, or the right to list or watch is missing."""
        await self.attempted.wait()
        if self.failure and (self.denied or not self.listed):
            raise self.failure
        await self.settled()

    async def current(self) -> None:
        """Wait until the watch runs, so that the mirror is only milliseconds behind."""
        await self.running.wait()

    def get(self, namespace: str, name: str) -> JsonObject | None:
        entry = self.entries.get((namespace, name))
        return entry.object if entry else None

    def add_index(self, name: str, function: IndexFunction[JsonObject]) -> None:
        self.entries.add_index(name, lambda entry: function(entry.object))

    def find(self, index: str, value: Hashable) -> list[JsonObject]:
        found = self.entries.find(index, value)
        return [entry.object for entry in sorted(found, key=lambda each: each.name)]

    def count(self, index: str, value: Hashable) -> int:
        return self.entries.count(index, value)

    def values_of(self, index: str) -> Iterable[Hashable]:
        return self.entries.values_of(index)

    def all(self) -> Iterator[JsonObject]:
        return iter([entry.object for entry in self.entries.values()])

    def __len__(self) -> int:
        return len(self.entries)

    def learn(self, obj: JsonObject) -> None:
        """Store the object that the API server returned for our write, unless a newer version is stored.

        An object that is known to be deleted is not stored, because nothing would remove it.
        """
        seen = self._read(obj)
        if _uid(seen) in self._gone:
            return
        before = self.entries.get(seen.name)
        if before is None or newer(seen.resource_version, before.resource_version):
            self.entries[seen.name] = seen
            self._learned = newest_version(self._learned, seen.resource_version)
            self._notify(before, seen)

    def listen(self, listener: Listener) -> None:
        """Call `listener` at each change, our own writes included."""
        self._listeners.append(listener)

    # Called by `Reflector`.

    def started(self, objects: list[Entry]) -> None:
        self._known.set()
        for entry in objects:
            self._notify(None, entry)

    def changed(self, before: Entry | None, after: Entry | None, *, seen_live: bool) -> None:
        if before is not None and (after is None or _uid(after) != _uid(before)):
            self._gone[_uid(before)] = None
            if len(self._gone) > MOST_GONE_REMEMBERED:
                del self._gone[next(iter(self._gone))]
        if before is None or after is None or before.resource_version != after.resource_version:
            self._notify(before, after)

    def absent(self) -> None:
        self._known.set()

    def _notify(self, before: Entry | None, after: Entry | None) -> None:
        for listener in self._listeners:
            listener(before.object if before else None, after.object if after else None)


class InformerCache:
    def __init__(self, api: KubeApi, mirrors: Iterable[Mirror]) -> None:
        self._api = api
        self.mirrors = {mirror.followed.kind.name: mirror for mirror in mirrors}

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        if kind.name in self.mirrors and text(obj, "metadata", "uid"):
            self.mirrors[kind.name].learn(obj)

    def newest(self, *kinds: Kind) -> dict[str, str]:
        """The newest version by kind. A cache that has reached these versions shows all that this cache shows now."""
        mirrors = [self.mirrors[kind.name] for kind in kinds] if kinds else self.mirrors.values()
        return {mirror.followed.kind.name: mirror.newest for mirror in mirrors if mirror.newest}

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        answer = await unless_absent(self._api.get(kind, namespace, name))
        if answer is not None:
            self.learn(kind, answer)
        return answer


class Store:
    def __init__(self, api: KubeApi) -> None:
        self._api = api
        self._mirrors: dict[Followed, Mirror] = {}
        self._tasks: dict[Followed, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = tuple(self._tasks.values())
        for followed in tuple(self._mirrors):
            self.leave(followed)
        await asyncio.gather(*tasks, return_exceptions=True)  # they use a connection that is closed next

    def follow(self, followed: Followed, indexes: Mapping[str, IndexFunction[JsonObject]] | None = None) -> Mirror:
        """The kind's mirror, started at the first request; `Mirror.settled` waits for its first list."""
        if followed not in self._mirrors:
            mirror = Mirror(self._api, followed)
            self._mirrors[followed] = mirror
            self._tasks[followed] = asyncio.create_task(mirror.run(), name=f"mirror {followed.name}")
        for name, function in (indexes or {}).items():
            self._mirrors[followed].add_index(name, function)
        return self._mirrors[followed]

    def leave(self, followed: Followed) -> None:
        if followed in self._mirrors:
            del self._mirrors[followed]
            self._tasks.pop(followed).cancel()


async def reached(mirrors: Iterable[Mirror], versions: Mapping[str, str]) -> bool:
    """Wait until each mirror has reached its kind's version in `versions`; False after `LONGEST_BEHIND`."""
    try:
        async with asyncio.timeout(LONGEST_BEHIND):
            for mirror in mirrors:
                await mirror.reach(versions.get(mirror.followed.kind.name, ""))
    except TimeoutError:
        return False
    return True


def _uid(entry: Entry) -> str:
    return text(entry.object, "metadata", "uid")


def entry_of(obj: JsonObject, without: frozenset[str] = frozenset()) -> Entry:
    """The object without the status fields `without`, and without managedFields.

    managedFields are the larger half of an object, and no pass reads them.
    """
    metadata = {name: value for name, value in mapping(obj, "metadata").items() if name != "managedFields"}
    name = (text(metadata, "namespace"), text(metadata, "name"))
    stored: JsonObject = {**obj, "metadata": metadata}
    if without and "status" in obj:
        stored["status"] = {name: value for name, value in mapping(obj, "status").items() if name not in without}
    with suppress(RecursionError):  # nested too deeply: it stays unchanged, and the mirror continues
        stored = _sharing(stored)
    return Entry(name, text(metadata, "resourceVersion"), stored)


def _sharing(obj: JsonObject) -> JsonObject:
    """Share equal strings among all objects, which halves the memory."""
    return {intern(name): _shared(value) for name, value in obj.items()}


def _shared(value: object) -> object:
    if type(value) is str:
        return intern(value) if len(value) <= LONGEST_SHARED else value
    if type(value) is dict:
        return {intern(name): _shared(each) for name, each in value.items()}
    if type(value) is list:
        return [_shared(each) for each in value]
    return value
