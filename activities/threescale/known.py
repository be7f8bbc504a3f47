"""What a worker knows of the area's objects, so that a pass finds relatives without a request and without a search.

    watch streams, own writes ─► mirrors ─► read once ─► by name, by what they refer to, by system name ─► views

An object is found under the names by which others refer to it, and under the names that it refers to itself
(`domain/threescale/wakes.py`): the same by which the watcher knows whom to wake. One that cannot be read by its model
is not found at all; its own lifecycle says what is wrong with it.

Mirrors are some milliseconds behind the API server. So every write's answer is put in at once; and a pass notes what it
has asked for: news of it that comes in afterwards wakes that lifecycle once more, as the pass may have missed what the
watcher woke it for (a stream may hang for a minute before anybody notices). What this worker has written itself is no
such news but for those who have read a moment before. Secrets are not mirrored: a worker may not list them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from domain.custom_resources import custom_resources
from domain.identity import Key, Kind
from domain.reading import Malformed, read
from domain.resource import CustomResource
from domain.threescale import CUSTOM_KINDS
from domain.threescale.notes import remembered_id
from domain.threescale.references import seniority
from domain.threescale.wakes import called, known_as, refers_to, seen_by_others
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.kube.json import JsonObject, text
from engine.kube.store import Followed, InformerCache, Store

# For how long after a read a change of what was read may have been missed: longer than a stream may hang unseen.
MAY_HAVE_MISSED = 90.0
# An own write may be watched before its answer is read: so long until that is known.
ANSWERED = 0.5
MOST_LEARNT = 10_000
# Longer than any list takes: what is not there by then is denied, or the API server is away.
LISTED = 60.0
# For how long an answer may lie unread while the watcher has already woken who reads what was written.
UNREAD = 1.0

Place = tuple[str, str, str]  # kind, namespace, name
Asked = tuple[str, str]  # for objects of a kind, by a topic
R = TypeVar("R", bound=CustomResource)
Wake = Callable[[Key], Awaitable[None]]

_MODELS = {model.kind_of.name: model for model in custom_resources() if model.kind_of in CUSTOM_KINDS}
_reader: ContextVar[Key | None] = ContextVar("reader", default=None)  # whose pass this is

log = logging.getLogger(__name__)


class Known(InformerCache):
    """The area's objects as one worker process knows them."""

    def __init__(self, api: KubeApi, store: Store, wake: Wake) -> None:
        self._wake = wake
        self._objects: dict[Place, CustomResource] = {}
        self._topics: defaultdict[str, dict[Place, None]] = defaultdict(dict)
        self._readers: dict[Key, tuple[float, set[Asked]]] = {}
        self._by_question: defaultdict[Asked, dict[Key, None]] = defaultdict(dict)
        self._learning = False
        self._learnt: dict[tuple[str, str], None] = {}  # own writes by uid and resourceVersion, in their order
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(api, [store.follow(Followed(kind)) for kind in CUSTOM_KINDS])
        for name, mirror in self.mirrors.items():
            mirror.listen(partial(self._changed, name))

    async def settled(self) -> None:
        """Until every kind is known completely, or known not to be installed.

        Raises:
            Unavailable: one cannot be listed.
        """
        try:
            async with asyncio.timeout(LISTED):
                for mirror in self.mirrors.values():
                    await mirror.settled()
        except TimeoutError:
            missing = {name: mirror.trouble for name, mirror in self.mirrors.items() if not mirror.listed}
            told = "; ".join(f"{name}: {trouble or 'in progress'}" for name, trouble in missing.items())
            raise Unavailable(f"not listed yet: {told}") from None

    def view(self, reader: Key) -> View:
        """What the next pass of a lifecycle reads."""
        _reader.set(reader)
        self._forget(reader)
        self._forget_old()
        self._readers[reader] = (time.monotonic(), set())
        return View(self, reader)

    def learn(self, kind: Kind, obj: JsonObject) -> None:
        """What a write has answered; it is no news to the pass that made it."""
        self._learning = True
        self._learnt[_version(obj)] = None
        if len(self._learnt) > MOST_LEARNT:
            del self._learnt[next(iter(self._learnt))]
        try:
            super().learn(kind, obj)
        finally:
            self._learning = False

    def found(self, topic: str) -> list[CustomResource]:
        """The objects of a topic: a name, `to` a name that they refer to, or what they are called in 3scale."""
        return [self._objects[place] for place in self._topics.get(topic, ())]

    def everything(self, *models: type[CustomResource]) -> list[CustomResource]:
        """All objects of some kinds."""
        return [each for each in self._objects.values() if isinstance(each, models)]

    def note(self, reader: Key, asked: Asked) -> None:
        """A pass has asked for this."""
        if reader in self._readers:
            self._readers[reader][1].add(asked)
            self._by_question[asked][reader] = None

    def _forget(self, reader: Key) -> None:
        for asked in self._readers.pop(reader, (0.0, set()))[1]:
            self._by_question[asked].pop(reader, None)
            if not self._by_question[asked]:
                del self._by_question[asked]

    def _forget_old(self) -> None:
        limit = time.monotonic() - MAY_HAVE_MISSED
        while self._readers:
            oldest = next(iter(self._readers))
            if self._readers[oldest][0] >= limit:
                return
            self._forget(oldest)

    def _changed(self, kind: str, before: JsonObject | None, after: JsonObject | None) -> None:
        obj = after or before or {}
        place = (kind, text(obj, "metadata", "namespace"), text(obj, "metadata", "name"))
        old, new = self._objects.pop(place, None), _resource(kind, after)
        for topic in _topics(old):
            self._topics[topic].pop(place, None)
            if not self._topics[topic]:
                del self._topics[topic]
        if new is not None:
            self._objects[place] = new
            for topic in _topics(new):
                self._topics[topic][place] = None
        readers = {reader for topic in _news(old, new) for reader in self._by_question.get((kind, topic), ())}
        self._tell(readers | self._younger_siblings(old, new), after)

    def _younger_siblings(self, before: CustomResource | None, after: CustomResource | None) -> set[Key]:
        """Who looked for those called alike before an older one was seen here: that goes before it."""
        if before is not None or after is None:
            return set()
        kind, born = after.kind_of.name, seniority(after.metadata)
        readers = self._by_question.get((kind, called(after)), {})
        own = {each: self._objects.get((kind, each.namespace, each.name)) for each in readers}
        return {each for each, found in own.items() if found is None or seniority(found.metadata) > born}

    def _tell(self, readers: Iterable[Key], after: JsonObject | None) -> None:
        limit = time.monotonic() - (UNREAD if self._learning else MAY_HAVE_MISSED)
        writer = _reader.get() if self._learning else None
        for reader in readers:
            if reader == writer or self._readers[reader][0] < limit:
                continue
            task = asyncio.get_running_loop().create_task(self._told(reader, None if self._learning else after))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _told(self, key: Key, watched: JsonObject | None) -> None:
        if watched is not None:
            await asyncio.sleep(ANSWERED)
            if _version(watched) in self._learnt:
                return
        try:
            await self._wake(key)
        except Exception as error:  # the watcher wakes as well; this is the second chance
            log.warning("%s could not be woken: %s", key, error)


class View:
    """What one pass reads of other objects."""

    def __init__(self, known: Known, reader: Key) -> None:
        self._known = known
        self._reader = reader

    def named(self, model: type[R], name: str, *, heeded: bool = True) -> tuple[R, ...]:
        """The objects of a kind that are known by this name (`Kind/namespace/name`).

        Unless they are heeded nothing follows from others that come or from what becomes of them.
        """
        return self._of(model, name, heeded=heeded)

    def get(self, model: type[R], namespace: str, name: str) -> R | None:
        """The object of this very name, None if there is none."""
        found = self._of(model, f"{model.kind_of.name}/{namespace}/{name}")
        return next((each for each in found if each.metadata.name == name), None)

    def referring(self, model: type[R], name: str, *, heeded: bool = True) -> tuple[R, ...]:
        """The objects of a kind that refer to this name."""
        return self._of(model, _to(name), heeded=heeded)

    def siblings(self, resource: R) -> tuple[R, ...]:
        """The other objects of its kind that are called the same in 3scale, whatever their tenant."""
        name = called(resource)
        found = self._of(type(resource), name) if name else ()
        return tuple(each for each in found if each.metadata.uid != resource.metadata.uid)

    def heeded(self, others: Iterable[R]) -> tuple[R, ...]:
        """The others, of which this pass wants to know more than that they are there."""
        found = tuple(others)
        for each in found:
            self._known.note(self._reader, (each.kind_of.name, known_as(each)[0]))
        return found

    def _of(self, model: type[R], topic: str, *, heeded: bool = True) -> tuple[R, ...]:
        if heeded:
            self._known.note(self._reader, (model.kind_of.name, topic))
        return tuple(each for each in self._known.found(topic) if isinstance(each, model))


def _to(name: str) -> str:
    return f"to {name}"


def _topics(resource: CustomResource | None) -> set[str]:
    if resource is None:
        return set()
    names = {*known_as(resource), *map(_to, refers_to(resource))}
    return names | ({called(resource)} if called(resource) else set())


def _news(before: CustomResource | None, after: CustomResource | None) -> set[str]:
    """The topics of whose readers something may follow from a change.

    Who looks for the object by its name wants to know what it shows. Who looks for those that refer to something, or
    are called like something, which may be hundreds, wants to know of those that come, go, or do so no more; of those
    called alike that come, only who is younger.
    """
    if before is None and after is not None:
        return _topics(after) - {called(after)}
    if before is None or after is None or _identity(before) != _identity(after):
        return _topics(before) | _topics(after)
    told = _topics(before) ^ _topics(after)
    return told if _shown(before) == _shown(after) else told | {*known_as(before), *known_as(after)}


def _identity(resource: CustomResource) -> tuple[str, bool]:
    """Which object it is, and whether it goes."""
    return resource.metadata.uid, resource.metadata.deleting


def _shown(resource: CustomResource) -> tuple[object, ...]:
    return seen_by_others(resource), remembered_id(resource)


def _resource(kind: str, obj: JsonObject | None) -> CustomResource | None:
    found = read(_MODELS[kind], obj) if obj is not None else None
    return None if isinstance(found, Malformed) else found


def _version(obj: JsonObject) -> tuple[str, str]:
    return text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")
