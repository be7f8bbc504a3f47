"""The clock of `perdure bench claims`: when this process's watches first saw each state of an object.

States are words (`bound`, `ready`, ...); times are seconds since the epoch.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial

from domain.built_in_kinds import CONFIG_MAP
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_POOL
from domain.claims.domain_names import DomainNames
from domain.identity import Kind
from engine.errors import ApiError
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, at, flag, sequence, text

BOUND, READY, FREE, PENDING, DETACHED = "bound", "ready", "free", "pending", "detached"
FREE_AND_READY = "free and ready"
DELETING, GONE = "deleting", "gone"
AGAIN_SECONDS = 0.05

Words = Callable[[JsonObject], Iterable[str]]


class Sightings:
    def __init__(self, kube: KubeApi) -> None:
        self._kube = kube
        marked = DomainNames(domain=kube.operator_domain).resource_handle_name_annotation
        self._words: Mapping[Kind, Words] = {**_WORDS, CONFIG_MAP: partial(_thing, marked)}
        self._first: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        self._now: dict[tuple[str, str], frozenset[str]] = {}
        self._count: Counter[tuple[str, str]] = Counter()
        self._listed: set[Kind] = set()
        self._following: dict[Kind, asyncio.Task[None]] = {}
        self._changed = asyncio.Condition()
        self.pools: dict[str, JsonObject] = {}
        self.handle_of: dict[str, str] = {}
        """The name of each claim's handle, by the claim's path."""
        self.things_of: dict[str, tuple[str, ...]] = {}
        """The paths of each claim's resources, by the claim's path."""

    def first(self, kind: Kind, path: str, word: str) -> float | None:
        return self._first[kind.name, path].get(word)

    def ended(self, kind: Kind, path: str) -> float | None:
        seen = self._first[kind.name, path]
        return min((seen[word] for word in (DELETING, GONE) if word in seen), default=None)

    def count(self, kind: Kind, word: str) -> int:
        return self._count[kind.name, word]

    async def until(self, condition: Callable[[], bool]) -> None:
        """There is no time limit; use `asyncio.timeout`."""
        async with self._changed:
            await self._changed.wait_for(condition)

    async def moment(self, kind: Kind, path: str, word: str) -> float:
        await self.until(lambda: self.first(kind, path, word) is not None)
        return self._first[kind.name, path][word]

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        try:
            await self._begin(self._words)
            yield
        finally:
            await self._end(tuple(self._following))

    @asynccontextmanager
    async def only(self, *kinds: Kind) -> AsyncIterator[None]:
        others = [kind for kind in self._words if kind not in kinds]
        await self._end(others)
        try:
            yield
        finally:
            await self._begin(others)

    async def _begin(self, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            self._following[kind] = asyncio.create_task(self._follow(kind, self._words[kind]))
        await self.until(lambda: self._listed >= self._following.keys())

    async def _end(self, kinds: Iterable[Kind]) -> None:
        tasks = [self._following.pop(kind) for kind in kinds]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listed &= self._following.keys()

    async def _follow(self, kind: Kind, words: Words) -> None:
        while True:
            try:
                listing = await self._kube.list(kind)
                await self._listing(kind, words, listing.items)
                async for event in self._kube.watch(kind, resource_version=listing.resource_version):
                    if event.type != "BOOKMARK":
                        async with self._changed:
                            self._learn(kind, words, event.object, gone=event.type == "DELETED")
                            self._changed.notify_all()
            except ApiError:  # a starting API server refuses in several ways
                await asyncio.sleep(AGAIN_SECONDS)

    async def _listing(self, kind: Kind, words: Words, items: Iterable[JsonObject]) -> None:
        async with self._changed:
            seen = {_path(obj) for obj in items}
            for name, path in [key for key in self._now if key[0] == kind.name and key[1] not in seen]:
                self._show(name, path, frozenset())
                self._first[name, path].setdefault(GONE, time.time())
            for obj in items:
                self._learn(kind, words, obj, gone=False)
            self._listed.add(kind)
            self._changed.notify_all()

    def _learn(self, kind: Kind, words: Words, obj: JsonObject, *, gone: bool) -> None:
        now, path = time.time(), _path(obj)
        shown = frozenset() if gone else frozenset((*words(obj), *_deleting(obj)))
        for word in (GONE,) if gone else shown:
            self._first[kind.name, path].setdefault(word, now)
        self._show(kind.name, path, shown)
        if kind == RESOURCE_POOL:
            self.pools[path] = obj
        if kind == RESOURCE_CLAIM and BOUND in shown:
            self.handle_of[path] = text(obj, "status", "resourceHandle", "name")
            self.things_of[path] = tuple(
                f"{text(entry, 'reference', 'namespace')}/{text(entry, 'reference', 'name')}"
                for entry in sequence(obj, "status", "resources")
                if text(entry, "reference", "name")
            )

    def _show(self, name: str, path: str, shown: frozenset[str]) -> None:
        before = self._now.pop((name, path), frozenset())
        for word in before - shown:
            self._count[name, word] -= 1
        for word in shown - before:
            self._count[name, word] += 1
        if shown:
            self._now[name, path] = shown


def _claim(obj: JsonObject) -> Iterable[str]:
    if text(obj, "status", "approval", "state") == "pending":
        yield PENDING
    if flag(obj, "status", "resourceHandle", "detached"):
        yield DETACHED
    elif text(obj, "status", "resourceHandle", "name"):
        yield BOUND
    if flag(obj, "status", "ready"):
        yield READY


def _handle(obj: JsonObject) -> Iterable[str]:
    free, ready = at(obj, "spec", "resourceClaim") is None, flag(obj, "status", "ready")
    yield from (word for word, so in ((FREE, free), (READY, ready), (FREE_AND_READY, free and ready)) if so)


def _pool(obj: JsonObject) -> Iterable[str]:
    return (READY,) if at(obj, "status", "resourceHandleCount", "ready") == at(obj, "spec", "minAvailable") else ()


def _thing(marked: str, obj: JsonObject) -> Iterable[str]:
    return (BOUND,) if text(obj, "metadata", "annotations", marked) else ()


def _deleting(obj: JsonObject) -> Iterable[str]:
    return (DELETING,) if text(obj, "metadata", "deletionTimestamp") else ()


def _path(obj: JsonObject) -> str:
    return f"{text(obj, 'metadata', 'namespace')}/{text(obj, 'metadata', 'name')}"


_WORDS: Mapping[Kind, Words] = {
    RESOURCE_CLAIM: _claim,
    RESOURCE_HANDLE: _handle,
    RESOURCE_POOL: _pool,
}
