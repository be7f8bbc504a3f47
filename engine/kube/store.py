"""Objects of many kinds as a process knows them, so that a pass reads them without a request.

    follow(kind) ──► reflector (list, watch) ──► indexer ──► get, find, all
                                                   ▲
    own writes ──► learn (the answer) ─────────────┘

There is one mirror for each kind and namespace, however many ask for it. Kinds come and go while the process runs: one
that is not installed yet, or that may not be listed, is tried again by its reflector and holds nobody else up; until
then `Mirror.trouble` says why it is empty.

A mirror is some milliseconds behind the API server. So every write's answer is put in at once (`learn`), and of two
versions of an object the larger resourceVersion stays: whoever reads after writing finds what was written. What others
write is found late by those milliseconds: whoever knows of its version waits for that (`reached`), or is told of each
change (`listen`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from sys import intern
from types import TracebackType

from domain.identity import Kind
from engine.errors import Absent
from engine.kube.api import KubeApi
from engine.kube.indexer import Indexer, IndexFunction
from engine.kube.json import JsonObject, mapping, text
from engine.kube.reflector import Name, Reflector, Timing, newer

# Told of a change: the object before and after, None for not existing.
Listener = Callable[[JsonObject | None, JsonObject | None], None]


@dataclass(frozen=True)
class Followed:
    """What one mirror holds; `called` is what metrics and logs call it, where its kind does not say enough."""

    kind: Kind
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    called: str = ""

    @property
    def name(self) -> str:
        """For metrics and logs; kinds of different groups may share a name."""
        if self.called:
            return self.called
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind.name}.{self.kind.group}{where}" if self.kind.group else f"{self.kind.name}{where}"


# A cache is behind by milliseconds; one that is not within this long has a stream that hangs.
LONGEST_BEHIND = 2.0
# Far more than go within the time that an answer takes.
MOST_GONE_REMEMBERED = 10_000
# Longer texts are hardly ever alike.
LONGEST_SHARED = 100


@dataclass(frozen=True, slots=True)
class Entry:
    """An object with what the reflector compares."""

    name: Name
    resource_version: str
    object: JsonObject


class Mirror:
    """The objects of one kind."""

    def __init__(self, api: KubeApi, followed: Followed, timing: Timing | None = None) -> None:
        self.followed = followed
        self._entries: Indexer[Entry] = Indexer()
        self._gone: dict[str, None] = {}  # uids, in the order of their going
        self._listeners: list[Listener] = []
        self._known = asyncio.Event()
        self._reflector: Reflector[Entry] = Reflector(api, followed, _entry, self._entries, self, timing=timing)

    @property
    def listed(self) -> bool:
        """Whether it has been complete once."""
        return self._reflector.listed

    @property
    def trouble(self) -> str:
        """Why it may be empty or stale: not installed, not allowed, not reachable; empty while its stream runs."""
        return self._reflector.trouble

    async def settled(self) -> None:
        """Until it is complete, or known to be of a kind that is not installed."""
        await self._known.wait()

    async def current(self) -> None:
        """Until its stream runs, or runs again: what it holds is behind by milliseconds then."""
        await self._reflector.running.wait()

    async def reach(self, version: str) -> None:
        """Until it holds everything up to a version."""
        await self._reflector.reach(version)

    async def refresh(self, version: str) -> None:
        """List the objects if a version was not reached: its stream hangs, or the API server counts from another."""
        await self._reflector.refresh(version)

    def get(self, namespace: str, name: str) -> JsonObject | None:
        """One object."""
        entry = self._entries.get((namespace, name))
        return entry.object if entry else None

    def add_index(self, name: str, function: IndexFunction[JsonObject]) -> None:
        """Declare an index over the objects; `find` looks them up by it."""
        self._entries.add_index(name, lambda entry: function(entry.object))

    def find(self, index: str, value: Hashable) -> list[JsonObject]:
        """The objects that an index lists under a value, by their names."""
        found = self._entries.find(index, value)
        return [entry.object for entry in sorted(found, key=lambda each: each.name)]

    def count(self, index: str, value: Hashable) -> int:
        """How many objects an index lists under a value."""
        return self._entries.count(index, value)

    def values_of(self, index: str) -> Iterable[Hashable]:
        """The values under which an index lists objects."""
        return self._entries.values_of(index)

    def all(self) -> Iterator[JsonObject]:
        """All objects, as they were when asked."""
        return iter([entry.object for entry in self._entries.values()])

    def __len__(self) -> int:
        return len(self._entries)

    def learn(self, obj: JsonObject) -> None:
        """Put in what a write of ours has answered, unless something newer is known.

        An answer may come when the object is gone already; nothing would take it out again then.
        """
        seen = _entry(obj)
        if _uid(seen) in self._gone:
            return
        before = self._entries.get(seen.name)
        if before is None or newer(seen.resource_version, before.resource_version):
            self._entries[seen.name] = seen
            self._tell(before, seen)

    def listen(self, listener: Listener) -> None:
        """Tell `listener` of each change from now on, own writes included."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Mirror for ever."""
        await self._reflector.run()

    # What the reflector tells.

    def started(self, objects: list[Entry]) -> None:
        """The first list is complete."""
        self._known.set()
        for entry in objects:
            self._tell(None, entry)

    def changed(self, before: Entry | None, after: Entry | None, *, seen_live: bool) -> None:
        """An object differs from before."""
        if before is not None and (after is None or _uid(after) != _uid(before)):
            self._gone[_uid(before)] = None
            if len(self._gone) > MOST_GONE_REMEMBERED:
                del self._gone[next(iter(self._gone))]
        if before is None or after is None or before.resource_version != after.resource_version:
            self._tell(before, after)

    def absent(self) -> None:
        """The kind is not installed."""
        self._known.set()

    def _tell(self, before: Entry | None, after: Entry | None) -> None:
        for listener in self._listeners:
            listener(before.object if before else None, after.object if after else None)


class InformerCache:
    """The mirrors that an area's passes read."""

    def __init__(self, api: KubeApi, mirrors: Iterable[Mirror]) -> None:
        self._api = api
        self.mirrors = {mirror.followed.kind.name: mirror for mirror in mirrors}

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        """Put in what a write of ours has answered."""
        if kind.name in self.mirrors and text(obj, "metadata", "uid"):
            self.mirrors[kind.name].learn(obj)

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object as the API server has it, None if there is none."""
        try:
            answer = await self._api.get(kind, namespace, name)
        except Absent:
            return None
        self.learn(kind, answer)
        return answer


class Store:
    """The mirrors of one process; leaving the block ends them."""

    def __init__(self, api: KubeApi, timing: Timing | None = None) -> None:
        self._api = api
        self._timing = timing
        self._mirrors: dict[Followed, Mirror] = {}
        self._tasks: dict[Followed, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Store:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for followed in tuple(self._mirrors):
            self.leave(followed)

    def follow(self, followed: Followed, indexes: Mapping[str, IndexFunction[JsonObject]] | None = None) -> Mirror:
        """The mirror of a kind, begun if nobody has asked for it before; `Mirror.settled` waits for its first list."""
        if followed not in self._mirrors:
            mirror = Mirror(self._api, followed, self._timing)
            self._mirrors[followed] = mirror
            self._tasks[followed] = asyncio.create_task(mirror.run(), name=f"mirror {followed.name}")
        for name, function in (indexes or {}).items():
            self._mirrors[followed].add_index(name, function)
        return self._mirrors[followed]

    def leave(self, followed: Followed) -> None:
        """End a mirror that nobody needs any more."""
        if followed in self._mirrors:
            del self._mirrors[followed]
            self._tasks.pop(followed).cancel()


async def reached(mirrors: Iterable[Mirror], versions: Mapping[str, str]) -> bool:
    """Wait until the mirrors hold everything up to the versions of their kinds; False if they do not soon."""
    try:
        async with asyncio.timeout(LONGEST_BEHIND):
            for mirror in mirrors:
                await mirror.reach(versions.get(mirror.followed.kind.name, ""))
    except TimeoutError:
        return False
    return True


def _uid(entry: Entry) -> str:
    return text(entry.object, "metadata", "uid")


def _entry(obj: JsonObject) -> Entry:
    """The object without its managedFields, which are its larger half and which no pass reads."""
    metadata = {name: value for name, value in mapping(obj, "metadata").items() if name != "managedFields"}
    name = (text(metadata, "namespace"), text(metadata, "name"))
    kept: JsonObject = {**obj, "metadata": metadata}
    with suppress(RecursionError):  # nested beyond reason: it is kept as it came, and the mirror goes on
        kept = _sharing(kept)
    return Entry(name, text(metadata, "resourceVersion"), kept)


def _sharing(obj: JsonObject) -> JsonObject:
    """The object with its texts shared with all others: thousands of alike objects take half as much (measured).

    Each event is read by itself, so every object would have its own copy even of the names of its fields.
    """
    return {intern(name): _shared(value) for name, value in obj.items()}


def _shared(value: object) -> object:
    if type(value) is str:
        return intern(value) if len(value) <= LONGEST_SHARED else value
    if type(value) is dict:
        return {intern(name): _shared(each) for name, each in value.items()}
    if type(value) is list:
        return [_shared(each) for each in value]
    return value
