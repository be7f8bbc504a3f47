"""One kind, mirrored: list, watch, and again whatever happens to the stream.

    list in pages ──► watch from the list's version ──► (server ends it after about 5 min) ──► watch on
       ▲                 │ 410, ERROR event, three broken streams without an event
       └─────────────────┤
                         └ cut, silent for 70 s: reopen from the last version, which bookmarks keep fresh

What makes each step necessary:
- A watch starts from a version that the server may have forgotten (410, "too old"); only a new list helps. Errors can
  also arrive inside the stream, as ERROR events.
- Streams freeze without a TCP error (load balancers do this). Bookmarks come about once a minute, so 70 s without a
  byte is a frozen stream.
- A proxy can repeat what it has sent. Versions in a stream only grow, so an event that is not newer than the position
  is old news; taking it would put the index back.
- A kind whose CRD is not installed answers 404. It is tried again with growing delay and holds nobody else up.

The reflector tells its `Changes` what is different: `started` with everything after its first list, `changed` with each
difference after that, whether it came by an event or was found by a later list.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from engine.errors import Absent, ApiError
from engine.kube.api import KubeApi, WatchEvent
from engine.kube.errors import Expired
from engine.kube.json import JsonObject, text
from starters.watch import metrics
from starters.watch.kinds import Watched
from starters.watch.projection import Name, Projection, project

FIRST_BACKOFF = 0.2
LONGEST_BACKOFF = 30.0
LONGEST_WITHOUT_CRD = 10.0
# A stream that lived so long was a good one: the next failure starts the backoff anew.
GOOD_STREAM = 5.0
STREAMS_BEFORE_RELIST = 3

logger = logging.getLogger(__name__)


class Changes(Protocol):
    """Who is told."""

    def started(self, watched: Watched, objects: list[Projection]) -> None:
        """The first list is complete."""

    def changed(
        self, watched: Watched, before: Projection | None, after: Projection | None, *, seen_live: bool
    ) -> None:
        """An object differs from before; `seen_live` if this is one event and no sum of several."""

    def absent(self, watched: Watched) -> None:
        """The kind is not installed."""


@dataclass(frozen=True)
class Timing:
    """How long streams live, and how long they may be silent."""

    duration: timedelta = timedelta(seconds=300)
    silence: timedelta = timedelta(seconds=70)


class Reflector:
    """Keeps one kind's projections in the index equal to the API server's objects."""

    def __init__(
        self,
        api: KubeApi,
        watched: Watched,
        objects: dict[Name, Projection],
        changes: Changes,
        *,
        cluster: str = "",
        timing: Timing | None = None,
    ) -> None:
        self.watched = watched
        self._api = api
        self._objects = objects
        self._changes = changes
        self._cluster = cluster
        self._timing = timing or Timing()
        self._broken_streams = 0
        self.position = ""  # the resource version up to which everything is known
        self.listed = False
        self.installed = True
        self.trouble = ""  # why the last attempt failed, empty while the stream runs
        self.last_sign = time.monotonic()

    async def run(self) -> None:
        """Mirror for ever."""
        failures = 0
        while True:
            began = time.monotonic()
            try:
                if not self.position:
                    await self._list()
                await self._watch()
                quick = time.monotonic() - began < 1.0  # a server that ends streams at once must not be hammered
            except ApiError as error:
                self._failed(error)
                quick = True
            failures = failures + 1 if quick and time.monotonic() - began < GOOD_STREAM else int(quick)
            if failures:
                await asyncio.sleep(self._backoff(failures))

    async def _list(self) -> None:
        seen: dict[Name, Projection] = {}
        position = ""
        watched = self.watched
        pages = self._api.pages(
            watched.kind,
            watched.namespace,
            label_selector=watched.label_selector,
            field_selector=watched.field_selector,
        )
        async with aclosing(pages) as listings:
            async for listing in listings:
                for obj in listing.items:
                    projection = self._project(obj)
                    seen[projection.name] = projection
                position = listing.resource_version
        metrics.RELISTS.labels(watched.name).inc()
        self.installed = True
        self._sign()
        self._replace(seen)
        self.position = position

    async def _watch(self) -> None:
        watched = self.watched
        duration = self._timing.duration * random.uniform(1.0, 1.1)  # noqa: S311 - so that streams do not end together
        events = self._api.watch(
            watched.kind,
            watched.namespace,
            resource_version=self.position,
            label_selector=watched.label_selector,
            field_selector=watched.field_selector,
            duration=duration,
            silence=self._timing.silence,
            opened=self._opened,
        )
        async with aclosing(events) as stream:
            async for event in stream:
                self._sign()
                self._broken_streams = 0
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        version = text(event.object, "metadata", "resourceVersion")
        if not newer(version, self.position):
            return
        if event.type != "BOOKMARK":
            metrics.EVENTS.labels(self.watched.name).inc()
            self._change(self._project(event.object), deleted=event.type == "DELETED")
        self.position = version

    def _change(self, projection: Projection, *, deleted: bool) -> None:
        name = projection.name
        before = self._objects.get(name)
        if deleted:
            self._objects.pop(name, None)
        else:
            self._objects[name] = projection
        self._count()
        if deleted:
            self._changes.changed(self.watched, before or projection, None, seen_live=True)
        else:
            self._changes.changed(self.watched, before, projection, seen_live=True)

    def _replace(self, seen: dict[Name, Projection]) -> None:
        """Take a list as the truth and tell what differs from what was known."""
        before = dict(self._objects)
        self._objects.clear()
        self._objects.update(seen)
        self._count()
        if not self.listed:
            self.listed = True
            self._changes.started(self.watched, list(seen.values()))
            return
        for name in before.keys() | seen.keys():
            old, new = before.get(name), seen.get(name)
            if old is None or new is None or old.resource_version != new.resource_version:
                self._changes.changed(self.watched, old, new, seen_live=False)

    def _failed(self, error: ApiError) -> None:
        self.trouble = error.message
        if isinstance(error, Expired):
            logger.info("%s; listing again", error)
            self.position = ""
        elif isinstance(error, Absent):
            self._not_installed(error)
        else:
            metrics.RECONNECTS.labels(self.watched.name).inc()
            logger.info("%s; going on from version %s", error, self.position or "none")
            self._broken_streams += 1
            if self._broken_streams >= STREAMS_BEFORE_RELIST:
                self._broken_streams = 0
                self.position = ""

    def _not_installed(self, error: Absent) -> None:
        if self.installed:
            logger.warning("%s is not installed in the cluster, trying again: %s", self.watched.name, error)
        self.installed = False
        self.position = ""
        if self.listed:
            self._replace({})
        self._changes.absent(self.watched)

    def _backoff(self, failures: int) -> float:
        longest = LONGEST_BACKOFF if self.installed else LONGEST_WITHOUT_CRD
        seconds = min(longest, FIRST_BACKOFF * 2.0 ** min(failures - 1, 10))
        return seconds * random.uniform(0.5, 1.0)  # noqa: S311

    def _project(self, obj: JsonObject) -> Projection:
        return project(self.watched.kind.name, self._cluster, obj, self.watched.read)

    def _opened(self) -> None:
        self._sign()
        self.trouble = ""

    def _sign(self) -> None:
        self.last_sign = time.monotonic()

    def _count(self) -> None:
        metrics.OBJECTS.labels(self.watched.name).set(len(self._objects))


def newer(version: str, than: str) -> bool:
    """Whether a resource version is newer; versions that are no numbers cannot be compared and count as newer."""
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than or not version
