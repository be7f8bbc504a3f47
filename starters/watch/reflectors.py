"""The reflectors of one watcher: one for each watched kind, and one for each *declared* kind.

A declared kind is watched only while objects refer to it. It is looked up until the API server serves it, and its
reflector ends minutes after the last reference. If a kind is not installed, or reading a declared kind is denied, this
neither delays other kinds nor makes the watcher unready. If the API server allows it, one cluster-wide watch replaces
many watches of parts of a kind, such as single Secrets (`WatchedWhileNamed.wider`).
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.errors import ApiError, Denied
from engine.kube.api import KubeApi
from engine.kube.discovery import Discovery
from engine.kube.json import JsonObject
from engine.kube.reflector import OBJECTS, Changes, Followed, Reflector, Timing
from starters.watch import metrics
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.watched_kinds import Watched, WatchedWhileNamed

FIRST_ATTEMPT = 0.2
LONGEST_ATTEMPT = 60.0
# Seconds. Templates may name thousands of missing kinds, so lookups after failures are spaced out.
BETWEEN_FAILURES = 0.05
# Up to this many parts of a kind are watched one by one, because a cluster-wide watch reads more.
FEW = 10
# Seconds that the parts wait for the cluster-wide list before they are watched one by one.
LISTED_WITHIN = 20.0

logger = logging.getLogger(__name__)


@dataclass
class _Declared:
    entry: WatchedWhileNamed
    by: int = 0  # number of objects that refer to the kind
    trouble: str = ""  # why the kind is not watched
    awaited: bool = False  # the kind was missing, so objects that refer to it may wait for it
    task: asyncio.Task[None] | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    tried: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self) -> None:
        self.awaited, self.trouble = False, ""
        self.tried.set()


@dataclass
class _Parts:
    whole: WatchedWhileNamed
    members: dict[Followed, _Declared] = field(default_factory=dict)
    together: bool = False  # whether the cluster-wide watch has replaced the watches of parts
    refused: bool = False  # whether the parts are many, but the cluster-wide watch is not allowed
    news: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Mirrors:
    def __init__(
        self,
        api: KubeApi,
        index: Index,
        listener: Callable[[Watched], Changes[Projection]],
        *,
        cluster: str = "",
        timing: Timing | None = None,
        served: KubeApi | None = None,
    ) -> None:
        self._api = api
        self._served = served or api
        self._index = index
        self._listener = listener
        self._cluster = cluster
        self._timing = timing or Timing()
        self._discovery = Discovery(api)
        self._asking = asyncio.Lock()
        self.reflectors: dict[str, Reflector[Projection]] = {}
        self._areas: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._declared: dict[Followed, _Declared] = {}
        self._parts: dict[Followed, _Parts] = {}
        self.group: asyncio.TaskGroup  # runs all tasks; set before `start`

    def start(self, entry: Watched, *, missing: bool = False) -> None:
        """Start a watch. `missing`: whether the kind was not found before."""

        def read(obj: JsonObject) -> Projection:
            return entry.project(self._cluster, obj)

        api = self._served if entry.kind.served else self._api
        objects, listener = self._index.of(entry.name), self._listener(entry)
        reflector = Reflector(api, entry.followed, read, objects, listener, timing=self._timing, installed=not missing)
        self.reflectors[entry.name] = reflector
        self._areas[entry.name] = entry.area
        self._tasks[entry.name] = self.group.create_task(reflector.run(), name=f"reflector {entry.name}")
        metrics.LAST_EVENT_AGE.labels(entry.name).set_function(lambda: time.monotonic() - reflector.last_sign)
        metrics.UNSERVED.labels(entry.name).set_function(lambda: reflector.unserved)

    def _stop(self, entry: Watched) -> None:
        if entry.name in self.reflectors:
            self._tasks.pop(entry.name).cancel()
            self.reflectors.pop(entry.name)
            self._areas.pop(entry.name)
            self._index.of(entry.name).clear()
            _measure_no_more(entry.name)

    def ended(self) -> None:
        for name in self.reflectors:
            _measure_no_more(name)

    # Declared kinds.

    def follow(self, entry: Watched, before: Projection | None, after: Projection | None) -> None:
        if not entry.declaring or self.declares(entry):
            return
        left, joined = _declarations(entry, before), _declarations(entry, after)
        for selection in left.keys() - joined.keys():
            self._leave(selection)
        for selection in joined.keys() - left.keys():
            self._join(joined[selection])

    def declares(self, entry: Watched) -> bool:
        return any(self._of(entry))

    def awaited(self, entry: Watched) -> bool:
        waiting = any(declared.awaited for declared in self._of(entry))
        return waiting or bool(self.reflectors[entry.name].trouble if entry.name in self.reflectors else "")

    def _join(self, entry: WatchedWhileNamed) -> None:
        declared = self._declared.get(entry.followed)
        if declared is None:
            logger.info("%s is watched from now on", entry.name)
            declared = self._declared[entry.followed] = _Declared(entry)
            if entry.wider is None:
                self._begin(declared)
            else:
                self._add_part(entry.wider, declared)
        declared.by += 1

    def _leave(self, selection: Followed) -> None:
        declared = self._declared.get(selection)
        if declared is None:
            return
        declared.by -= 1
        if not declared.by:
            if declared.entry.lingers:
                asyncio.get_running_loop().call_later(declared.entry.lingers, self._end_unless_declared, declared)
            else:
                self._end_unless_declared(declared)

    def _end_unless_declared(self, declared: _Declared) -> None:
        selection = declared.entry.followed
        if declared.by == 0 and self._declared.get(selection) is declared:
            logger.info("%s is not watched any more", declared.entry.name)
            del self._declared[selection]
            self._end(declared)
            if declared.entry.wider is not None:
                self._remove_part(declared.entry.wider, selection)

    def _begin(self, declared: _Declared) -> None:
        if declared.task is None:
            declared.task = self.group.create_task(self._serve(declared), name=f"declared {declared.entry.name}")

    def _end(self, declared: _Declared) -> None:
        if declared.task is not None:
            declared.task.cancel()
            declared.task = None
        self._stop(declared.entry)

    async def _serve(self, declared: _Declared) -> None:
        failures = 0
        while True:
            try:
                entry = await self._resolved(declared.entry)
            except ApiError as error:
                self._is_missing(declared, error.message)
            else:
                declared.gone.clear()
                self.start(entry, missing=bool(declared.trouble))
                await declared.gone.wait()
                failures = 0 if self.reflectors[entry.name].listed else failures
                self._stop(entry)
                self._discovery.forget(entry.kind.api_version, entry.kind.name)
                self._is_missing(declared, "the API server does not serve it")
            failures += 1
            longest = min(LONGEST_ATTEMPT, FIRST_ATTEMPT * 2.0 ** min(failures - 1, 10))
            await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311

    async def _resolved(self, entry: WatchedWhileNamed) -> WatchedWhileNamed:
        if entry.kind.plural:
            return entry
        async with self._asking:
            try:
                served = await self._discovery.served(entry.kind.api_version, entry.kind.name)
            except ApiError:
                await asyncio.sleep(BETWEEN_FAILURES)
                raise
        return replace(entry, followed=replace(entry.followed, kind=served.kind))

    # Parts of a kind, one by one or together.

    def _add_part(self, whole: WatchedWhileNamed, part: _Declared) -> None:
        parts = self._parts.get(whole.followed)
        if parts is None:
            parts = self._parts[whole.followed] = _Parts(whole)
            parts.task = self.group.create_task(self._share(parts), name=f"parts of {whole.name}")
        parts.members[part.entry.followed] = part
        if parts.together:
            part.settle()
        else:
            parts.news.set()

    def _remove_part(self, whole: Watched, part: Followed) -> None:
        parts = self._parts[whole.followed]
        del parts.members[part]
        if not parts.members:
            del self._parts[whole.followed]
            if parts.task is not None:
                parts.task.cancel()
            self._leave(whole.followed)

    async def _share(self, parts: _Parts) -> None:
        allowed, ask_at = False, 0.0
        while True:
            parts.news.clear()
            many = parts.together or len(parts.members) > FEW
            if many and time.monotonic() >= ask_at:
                allowed = await self._may_watch(parts.whole, otherwise=allowed)
                ask_at = time.monotonic() + self._timing.rights.total_seconds()
            parts.refused = many and not allowed
            parts.together = many and allowed and await self._whole_is_listed(parts.whole)
            if parts.together:
                for part in parts.members.values():
                    self._end(part)
                    part.settle()
            else:
                for part in parts.members.values():
                    self._begin(part)
                if not (many and allowed):
                    self._leave(parts.whole.followed)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, ask_at - time.monotonic()) if many else None):
                    await parts.news.wait()

    async def _may_watch(self, entry: Watched, *, otherwise: bool) -> bool:
        api = self._served if entry.kind.served else self._api
        try:
            return await api.may(("list", "watch"), entry.kind, entry.followed.namespace)
        except Denied:
            return False
        except ApiError as error:
            logger.info("cannot find out whether %s may be watched: %s", entry.name, error)
            return otherwise

    async def _whole_is_listed(self, entry: WatchedWhileNamed) -> bool:
        if entry.followed not in self._declared:
            self._join(entry)
        with suppress(TimeoutError):
            async with asyncio.timeout(LISTED_WITHIN):
                await self._declared[entry.followed].tried.wait()
        return self.is_listed(entry)

    def _is_missing(self, declared: _Declared, why: str) -> None:
        if not declared.trouble:
            logger.warning("%s cannot be watched, trying again: %s", declared.entry.name, why)
        declared.trouble, declared.awaited = why, True
        declared.tried.set()

    # Events from the reflectors.

    def listed(self, entry: Watched) -> None:
        for declared in self._of(entry):
            declared.settle()
        if (parts := self._parts.get(entry.followed)) is not None:
            parts.news.set()

    def absent(self, entry: Watched) -> None:
        for declared in self._of(entry):
            declared.gone.set()

    def _of(self, entry: Watched) -> Iterator[_Declared]:
        return (declared for declared in self._declared.values() if declared.entry.name == entry.name)

    async def declared_tried(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for declared in tuple(self._declared.values()):
                    await declared.tried.wait()

    # State, for the checkpoint and health.

    def is_listed(self, entry: Watched) -> bool:
        mirror = self.reflectors.get(entry.name)
        return mirror is not None and mirror.listed

    def positions(self) -> Mapping[str, str]:
        mirrors = self.reflectors.items()
        return {name: mirror.position for name, mirror in mirrors if mirror.listed and mirror.position}

    def newest(self, area: str) -> dict[str, str]:
        """By kind, the newest resource version that the area's watches have seen. Watches of parts of a kind are left
        out, because each has its own version.
        """
        apart = {one.entry.name for one in self._declared.values() if not one.entry.whole}
        names = (name for name, of in self._areas.items() if of == area and name not in apart)
        mirrors = [self.reflectors[name] for name in names]
        return {each.followed.kind.name: each.received for each in mirrors if each.listed and each.received}

    def names(self) -> set[str]:
        """The names of the watches, except those that a cluster-wide watch has replaced."""
        return {*self.reflectors, *(one.entry.name for one in self._declared.values() if one.task is not None)}

    def unlisted(self) -> list[Reflector[Projection]]:
        declared = self._declared_names()
        mirrors = self.reflectors.items()
        return [m for name, m in mirrors if m.installed and not m.listed and name not in declared]

    def denied(self) -> Iterable[str]:
        declared = self._declared_names()
        for name, mirror in self.reflectors.items():
            if mirror.listed and mirror.denied and name not in declared:
                yield f"Perdure may not watch {name} any more, and its changes go unnoticed: {mirror.trouble}"

    def notes(self) -> Iterable[str]:
        declared = self._declared_names()
        for name, mirror in self.reflectors.items():
            if not mirror.installed:
                yield f"{name} is not installed in the cluster"
            elif mirror.trouble and (mirror.listed or name in declared):
                yield f"{name}: {mirror.trouble}"
        for one in self._declared.values():
            if one.trouble:
                yield f"{one.entry.name} is named by {one.by} objects and not watched: {one.trouble}"
        for parts in self._parts.values():
            if parts.refused:
                yield (
                    f"{len(parts.members)} watches replace a cluster-wide watch, because Perdure may not list and "
                    f"watch {parts.whole.name} in the whole cluster"
                )

    def _declared_names(self) -> set[str]:
        return {declared.entry.name for declared in self._declared.values()}


def _measure_no_more(name: str) -> None:
    for gauge in (metrics.LAST_EVENT_AGE, metrics.UNSERVED, OBJECTS):
        gauge.remove(name)


def _declarations(entry: Watched, known: Projection | None) -> dict[Followed, WatchedWhileNamed]:
    return {each.followed: each for each in entry.declared(known)} if known is not None else {}
