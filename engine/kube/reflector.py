"""Mirrors one kind: lists it, watches it, and recovers from every failure of the stream.

| what happens | what follows |
|---|---|
| start | a list, in pages |
| a list is complete | a watch from the list's version |
| a stream ends (after half an hour), is cut, or is silent for 70 s | a watch from the last event or bookmark |
| 410, an ERROR event, or three broken streams without an event | a list, in pages |

- Streams freeze without a TCP error. Bookmarks come about once a minute, so 70 s without a byte is a frozen stream.
- A proxy can repeat what it has sent. Versions in a stream only grow, so an event that is not newer is ignored.
- A busy server answers 429: the position stays valid, and a new list would only add load.
- A list of a kind without a CRD gets 404. It is retried with growing delay and delays no other kind.

`read` decides what is stored of an object: the watcher stores projections, a worker whole objects.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from prometheus_client import Counter, Gauge

from domain.identity import Kind
from engine.errors import Absent, ApiError, Denied, Throttled
from engine.health import LONGEST_TURN
from engine.kube.api import KubeApi, WatchEvent
from engine.kube.errors import Expired
from engine.kube.json import JsonObject, text

FIRST_BACKOFF = 0.2
LONGEST_BACKOFF = 30.0
LONGEST_WITHOUT_CRD = 120.0
# After a stream that lived this many seconds the backoff starts over.
GOOD_STREAM = 5.0
STREAMS_BEFORE_RELIST = 3
# Seconds of 429 answers that do not count as trouble: a server also answers 429 while it prepares a new kind.
THROTTLED_WITHOUT_TROUBLE = 5.0

log = logging.getLogger(__name__)


EVENTS = Counter("perdure_watch_events", "Watch events received.", ["kind"])
RELISTS = Counter("perdure_watch_relists", "Full lists read.", ["kind"])
RECONNECTS = Counter("perdure_watch_reconnects", "Watches that broke or fell silent.", ["kind"])
OBJECTS = Gauge("perdure_watch_objects", "Objects that are mirrored.", ["kind"])

Name = tuple[str, str]  # namespace and name


class Mirrored(Protocol):
    @property
    def name(self) -> Name:
        pass

    @property
    def resource_version(self) -> str:
        pass


M = TypeVar("M", bound=Mirrored)


class Changes(Protocol[M]):
    def started(self, objects: list[M]) -> None:
        pass

    def changed(self, before: M | None, after: M | None, *, seen_live: bool) -> None:
        """Called after each change. `seen_live`: the change came as an event, not as a difference between two lists."""

    def absent(self) -> None:
        pass


@dataclass(frozen=True)
class Followed:
    """The objects of one mirror; `called` is the mirror's name if the kind's name would be ambiguous.

    `without` are status fields that no reader needs, such as a Node's images.
    """

    kind: Kind
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    called: str = ""
    without: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        if self.called:
            return self.called
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind.name}.{self.kind.group}{where}" if self.kind.group else f"{self.kind.name}{where}"


@dataclass(frozen=True)
class Timing:
    duration: timedelta = timedelta(minutes=30)
    silence: timedelta = timedelta(seconds=70)
    unserved: timedelta = timedelta(seconds=30)  # how long a watch may lack list or stream before it counts as starved
    rights: timedelta = timedelta(seconds=300)  # the time between two checks whether we may watch more


class Reflector(Generic[M]):
    def __init__(
        self,
        api: KubeApi,
        followed: Followed,
        read: Callable[[JsonObject], M],
        objects: MutableMapping[Name, M],
        changes: Changes[M],
        *,
        timing: Timing | None = None,
        installed: bool = True,
    ) -> None:
        self.followed = followed
        self._api = api
        self._objects = objects
        self._read = read
        self._changes = changes
        self._timing = timing or Timing()
        self._broken_streams = 0
        self.position = ""  # the resource version up to which all changes are applied
        # The resource version of the newest change: of an object or event, or of a list from which a known object is
        # missing. Bookmarks advance only `position`.
        self.received = ""
        self._moved = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self.listed = False
        self.installed = installed
        self.failure: ApiError | None = None  # of the last attempt; None after a list and while the stream runs
        self.attempted = asyncio.Event()  # set once the first list was read or refused
        self.denied = False  # whether the last attempt failed for lack of permission
        self.running = asyncio.Event()  # set from the opening of a stream to the next failure
        self.last_sign = time.monotonic()
        self._last_turn = time.monotonic()
        self._unserved_since: float | None = time.monotonic()  # None while the stream runs
        self._ended_by: BaseException | None = None

    async def run(self) -> None:
        """Mirror for ever; if a bug ends this, `stalled` reports it."""
        self._last_turn = self._unserved_since = time.monotonic()
        self._api.add_watch(self, self.stalled, self.starved)
        try:
            await self._mirror()
        except asyncio.CancelledError:
            self._api.remove_watch(self)
            raise
        except Exception as bug:
            self._ended_by = bug
            raise

    @property
    def trouble(self) -> str:
        """Why the last attempt failed; empty after a list and while the stream runs."""
        return self.failure.message if self.failure else ""

    async def reach(self, version: str) -> None:
        """Wait for all changes up to a version, if given. A version that is not a number may never be reached."""
        while version and newer(version, self.position):
            await self._moved.wait()

    def stalled(self) -> Iterable[str]:
        """Why only a restart revives this watch; an outage of the API server is no reason."""
        ago = time.monotonic() - self._last_turn
        if self._ended_by is not None:
            yield f"the watch of {self.followed.name} has ended: {self._ended_by!r}"
        elif ago > max(LONGEST_TURN, 3 * self._timing.silence.total_seconds()):
            yield f"the watch of {self.followed.name} has made no progress for {ago:.0f} s"

    @property
    def unserved(self) -> float:
        """Seconds since the API server last sent a part of the list or ended the stream; 0 while the stream runs."""
        if self._unserved_since is None or self.denied or not self.installed:
            return 0.0
        return time.monotonic() - self._unserved_since

    def starved(self) -> Iterable[str]:
        if self.unserved > self._timing.unserved.total_seconds():
            lacks = "has had no watch" if self.listed else "has not been listed"
            why = self.trouble or "no answer"
            yield f"{self.followed.name} {lacks} for {self.unserved:.0f} s, so changes are not noticed: {why}"

    async def _mirror(self) -> None:
        failures = 0
        while True:
            began = self._last_turn = time.monotonic()
            try:
                if not self.position:
                    await self._list()
                await self._watch()
                quick = time.monotonic() - began < 1.0  # a server that ends streams at once must not be hammered
            except ApiError as error:
                self._failed(error)
                self.attempted.set()
                quick = True
            failures = failures + 1 if quick and time.monotonic() - began < GOOD_STREAM else int(quick)
            if failures:
                await asyncio.sleep(self._backoff(failures))

    async def refresh(self, version: str) -> None:
        """List again, unless `version` is already reached: the stream may hang, or versions may have been reset.

        Concurrent callers share a list. A list that is older than the stream is dropped. Raises ApiError if the list
        fails. A kind that is not installed counts as a kind without objects.
        """
        async with self._refreshing:
            if version and newer(version, self.position):
                with suppress(Absent):
                    await self._list()

    async def _list(self) -> None:
        seen: dict[Name, M] = {}
        position = ""
        selected = self.followed
        pages = self._api.pages(
            selected.kind,
            selected.namespace,
            label_selector=selected.label_selector,
            field_selector=selected.field_selector,
            metadata_only=selected.metadata_only,
        )
        async with aclosing(pages) as listings:
            async for listing in listings:
                self._last_turn = self._unserved_since = time.monotonic()
                self.denied = False
                for obj in listing.items:
                    known = self._read(obj)
                    seen[known.name] = known
                position = listing.resource_version
        RELISTS.labels(selected.name).inc()
        self.installed = True
        self.failure = None
        self._sign()
        if not newer(position, self.position):
            return  # the stream is newer than the list
        before = set(self._objects)
        self._replace(seen, position)
        newest = max((each.resource_version for each in seen.values()), key=_number, default="")
        self.received = position if before - self._objects.keys() else newest
        self._move(position)

    async def _watch(self) -> None:
        selected = self.followed
        duration = self._timing.duration * random.uniform(1.0, 1.1)  # noqa: S311 - so that streams do not end together
        events = self._api.watch(
            selected.kind,
            selected.namespace,
            resource_version=self.position,
            label_selector=selected.label_selector,
            field_selector=selected.field_selector,
            duration=duration,
            silence=self._timing.silence,
            opened=self._opened,
            metadata_only=selected.metadata_only,
        )
        try:
            async with aclosing(events) as stream:
                async for event in stream:
                    self._sign()
                    self._broken_streams = 0
                    self.take(event)
        finally:
            self._unserved_since = self._unserved_since or time.monotonic()

    def take(self, event: WatchEvent) -> None:
        version = text(event.object, "metadata", "resourceVersion")
        if not newer(version, self.position):
            return
        if event.type != "BOOKMARK":
            EVENTS.labels(self.followed.name).inc()
            self._change(self._read(event.object), deleted=event.type == "DELETED")
            self.received = version
        self._move(version)

    def _move(self, position: str) -> None:
        self.position = position
        self._moved.set()
        self._moved = asyncio.Event()

    def _change(self, seen: M, *, deleted: bool) -> None:
        name = seen.name
        before = self._objects.get(name)
        if before is not None and newer(before.resource_version, seen.resource_version):
            return  # a writer that shares the objects has added the answer to a later write
        if deleted:
            self._objects.pop(name, None)
        else:
            self._objects[name] = seen
        self._count()
        if deleted:
            self._changes.changed(before or seen, None, seen_live=True)
        else:
            self._changes.changed(before, seen, seen_live=True)

    def _replace(self, seen: dict[Name, M], position: str = "") -> None:
        """Replace the objects, except objects newer than `position`, which another writer of the mapping has added."""
        before = dict(self._objects)
        if position:
            seen |= {name: known for name, known in before.items() if newer(known.resource_version, position)}
        self._objects.clear()
        self._objects.update(seen)
        self._count()
        if not self.listed:
            self.listed = True
            self.attempted.set()
            self._changes.started(list(seen.values()))
            return
        for name in before.keys() | seen.keys():
            old, new = before.get(name), seen.get(name)
            if old is None or new is None or old.resource_version != new.resource_version:
                self._changes.changed(old, new, seen_live=False)

    def _failed(self, error: ApiError) -> None:
        self.running.clear()
        self.denied = isinstance(error, Denied)
        if isinstance(error, Throttled):
            self._throttled(error)
            return
        self.failure = error
        if isinstance(error, Expired):
            log.info("%s; listing again", error)
            self.position = ""
        elif isinstance(error, Absent):
            self._not_installed(error)
        else:
            RECONNECTS.labels(self.followed.name).inc()
            log.info("%s; continuing from version %s", error, self.position or "none")
            self._broken_streams += 1
            if self._broken_streams >= STREAMS_BEFORE_RELIST:
                self._broken_streams = 0
                self.position = ""

    def _throttled(self, error: Throttled) -> None:
        log.info("%s; watching again from version %s", error, self.position or "none")
        if time.monotonic() - self.last_sign > THROTTLED_WITHOUT_TROUBLE:
            self.failure = error

    def _not_installed(self, error: Absent) -> None:
        if self.installed:
            log.warning("%s is not installed in the cluster, trying again: %s", self.followed.name, error)
        self.installed = False
        self.position = ""
        if self.listed:
            self._replace({})
        self._changes.absent()

    def _backoff(self, failures: int) -> float:
        longest = LONGEST_BACKOFF if self.installed else LONGEST_WITHOUT_CRD
        seconds = min(longest, FIRST_BACKOFF * 2.0 ** min(failures - 1, 10))
        return seconds * random.uniform(0.5, 1.0)  # noqa: S311

    def _opened(self) -> None:
        self._sign()
        self.failure = None
        self.denied = False
        self._unserved_since = None
        self.running.set()

    def _sign(self) -> None:
        self.last_sign = self._last_turn = time.monotonic()

    def _count(self) -> None:
        OBJECTS.labels(self.followed.name).set(len(self._objects))


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else -1


def newer(version: str, than: str) -> bool:
    """Whether `version` is newer than `than`. If either is not a number: True, unless both are equal and not empty."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than or not version
