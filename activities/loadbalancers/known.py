"""What a worker knows of load balancers, sets and machines, so that a pass reads them without a request.

    watch streams, own writes --> mirrors --> by name, by label --> views, one per pass

Objects are found by one of the labels that are asked for, and so are those who have asked: neither a pass nor a change
looks at everything.

Mirrors are some milliseconds behind the API server. Where that could lose something it is made good:

- what a pass writes is put in at once, and told to those who have read it a moment before; its writes of its own object
  carry the resourceVersion that they rest on: a pass that was refused for it is made again from the API server;
- an object that is not in a mirror, or older there than the last pass left it, is read from the API server;
- what a pass has read is noted: a change of it that comes in afterwards wakes that lifecycle once more, as the pass may
  have missed what the watcher woke it for (a stream may hang for a minute before anybody notices); a report that says
  the same again is no change;
- a mirror whose stream is broken is not read at all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

from domain.identity import Key, Kind
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.resource import CustomResource
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.kube.reflector import Name, newer
from engine.kube.store import Followed, Mirror, Store

# For how long after a read a change of what was read may have been missed: longer than a stream may hang unseen.
MAY_HAVE_MISSED = 90.0
# An own write may be watched before its answer is read: so long until that is known.
ANSWERED = 0.5
MOST_LEARNT = 10_000
# For how long an answer may lie unread while the watcher has already woken who reads what was written.
UNREAD = 1.0

# Kind, namespace, a label and its value; a name, or all of the namespace, has the empty label.
Topic = tuple[str, str, str, str]

_reader: ContextVar[Key | None] = ContextVar("reader", default=None)  # whose pass this is

R = TypeVar("R", bound=CustomResource)
Wake = Callable[[Key], Awaitable[None]]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Selection:
    """Something that a pass has read: one object, or all with some labels."""

    kind: str
    namespace: str
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def holds(self, kind: str, obj: JsonObject) -> bool:
        if kind != self.kind or text(obj, "metadata", "namespace") != self.namespace:
            return False
        if self.name:
            return text(obj, "metadata", "name") == self.name
        return self.labels.items() <= mapping(obj, "metadata", "labels").items()

    @property
    def topics(self) -> list[Topic]:
        """What it holds is found under each of them, among others."""
        if self.name or not self.labels:
            return [(self.kind, self.namespace, "", self.name)]
        return [(self.kind, self.namespace, label, value) for label, value in self.labels.items()]


@dataclass
class _Reading:
    """What a lifecycle's last pass has read, when it began, and when it read last."""

    begun: float
    at: float
    selections: list[tuple[Topic, _Selection]]


class Known:
    """The area's objects as one worker process knows them; without a store everything is asked of the API server."""

    def __init__(self, api: KubeApi, store: Store | None = None, wake: Wake | None = None) -> None:
        self._api = api
        self._wake = wake
        kinds = (LOAD_BALANCER, LOAD_BALANCER_SET, LOAD_BALANCER_MACHINE) if store else ()
        self._mirrors: dict[str, Mirror] = {kind.name: store.follow(Followed(kind)) for kind in kinds if store}
        self._objects: defaultdict[Topic, dict[Name, None]] = defaultdict(dict)
        self._readings: dict[Key, _Reading] = {}
        self._readers: defaultdict[Topic, dict[Key, None]] = defaultdict(dict)
        self._learning = False
        self._learnt: dict[tuple[str, str], None] = {}  # own writes by uid and resourceVersion, in their order
        self._tasks: set[asyncio.Task[None]] = set()
        for kind, mirror in self._mirrors.items():
            for obj in mirror.all():
                self._file(kind, None, obj)
            mirror.listen(lambda before, after, kind=kind: self._changed(kind, before, after))  # type: ignore[misc]

    def view(self, reader: Key, *, fresh: bool) -> View:
        """What the next pass of a lifecycle reads; from the API server where it is to be fresh."""
        _reader.set(reader)
        self._forget(reader)
        moment = time.monotonic()
        self._readings[reader] = _Reading(moment, moment, [])
        self._forget_old()
        return View(self, reader, fresh=fresh)

    def mirror(self, kind: Kind) -> Mirror | None:
        """The kind's mirror, if it can be trusted."""
        found = self._mirrors.get(kind.name)
        return found if found is not None and found.listed and not found.trouble else None

    def learn(self, kind: Kind, obj: object) -> None:
        """What a write has answered; it is no news to the pass that made it."""
        mirror = self._mirrors.get(kind.name)
        if mirror is not None and isinstance(obj, dict) and text(obj, "metadata", "uid"):
            self._learning = True
            self._learnt[_version(obj)] = None
            if len(self._learnt) > MOST_LEARNT:
                del self._learnt[next(iter(self._learnt))]
            try:
                mirror.learn(obj)
            finally:
                self._learning = False

    def wrote(self, writer: Key, kind: Kind, answer: JsonObject) -> None:
        """What a lifecycle's write of its own object has answered; it is no news to the lifecycle."""
        _reader.set(writer)
        self.learn(kind, answer)

    def note(self, reader: Key, selection: _Selection) -> None:
        """A pass has read this."""
        reading = self._readings.get(reader)
        if reading is not None:
            reading.at = time.monotonic()
            topic = _rarest(selection, self._readers)
            reading.selections.append((topic, selection))
            self._readers[topic][reader] = None

    def found(self, mirror: Mirror, selection: _Selection) -> list[JsonObject]:
        """The objects of a mirror that a selection holds."""
        names = self._objects.get(_rarest(selection, self._objects), ())
        objects = (mirror.get(*name) for name in names)
        return [each for each in objects if each is not None and selection.holds(selection.kind, each)]

    async def fresh(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """The object as the API server has it, None if there is none."""
        try:
            answer = await self._api.get(kind, namespace, name)
        except Absent:
            return None
        self.learn(kind, answer)
        return answer

    async def list(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> list[JsonObject]:
        """Objects as the API server has them."""
        selector = ",".join(f"{name}={value}" for name, value in labels.items())
        return list((await self._api.list(kind, namespace, label_selector=selector)).items)

    def _forget(self, reader: Key) -> None:
        reading = self._readings.pop(reader, None)
        for topic, _ in reading.selections if reading else ():
            self._readers[topic].pop(reader, None)
            if not self._readers[topic]:
                del self._readers[topic]

    def _forget_old(self) -> None:
        limit = time.monotonic() - MAY_HAVE_MISSED
        while self._readings:
            oldest = next(iter(self._readings))
            if self._readings[oldest].at >= limit:
                return
            self._forget(oldest)

    def _file(self, kind: str, before: JsonObject | None, after: JsonObject | None) -> None:
        """Let an object be found by what it is now."""
        old, new = _topics(kind, before), _topics(kind, after)
        for topic in old - new:
            self._objects[topic].pop(_name(before), None)
            if not self._objects[topic]:
                del self._objects[topic]
        for topic in new:
            self._objects[topic][_name(after)] = None

    def _changed(self, kind: str, before: JsonObject | None, after: JsonObject | None) -> None:
        self._file(kind, before, after)
        if self._wake is None or (before and after and _essence(before) == _essence(after)):
            return
        limit = time.monotonic() - (UNREAD if self._learning else MAY_HAVE_MISSED)
        writer = _reader.get() if self._learning else None
        sides = [side for side in (before, after) if side is not None]
        topics = _topics(kind, before) | _topics(kind, after)
        readers = {reader for topic in topics for reader in self._readers.get(topic, ())}
        for reader in sorted(readers, key=lambda each: self._readings[each].begun):
            reading = self._readings[reader]
            if reader == writer or reading.at < limit:
                continue
            if any(each.holds(kind, side) for _, each in reading.selections for side in sides):
                told = self._told(self._wake, reader, None if self._learning else after)
                task = asyncio.get_running_loop().create_task(told)
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _told(self, wake: Wake, key: Key, watched: JsonObject | None) -> None:
        if watched is not None:
            await asyncio.sleep(ANSWERED)
            if _version(watched) in self._learnt:
                return
        try:
            await wake(key)
        except Exception as error:  # the watcher wakes as well; this is the second chance
            log.warning("%s could not be woken: %s", key, error)


def _topics(kind: str, obj: JsonObject | None) -> set[Topic]:
    """Under what an object is found: its name, each of its labels, and as one of its namespace."""
    if obj is None:
        return set()
    namespace, name = _name(obj)
    labels = mapping(obj, "metadata", "labels").items()
    found = {(kind, namespace, label, value) for label, value in labels if isinstance(value, str)}
    return found | {(kind, namespace, "", name), (kind, namespace, "", "")}


def _rarest(selection: _Selection, index: Mapping[Topic, Collection[object]]) -> Topic:
    """The topic under which the fewest are found: one label may be everybody's."""
    return min(selection.topics, key=lambda each: len(index.get(each, ())))


def _name(obj: JsonObject | None) -> Name:
    return text(obj, "metadata", "namespace"), text(obj, "metadata", "name")


def _version(obj: JsonObject) -> tuple[str, str]:
    return text(obj, "metadata", "uid"), text(obj, "metadata", "resourceVersion")


def _essence(obj: JsonObject) -> JsonObject:
    """The object without what a report changes that says the same again."""
    metadata = {name: value for name, value in mapping(obj, "metadata").items() if name != "resourceVersion"}
    status = {name: value for name, value in mapping(obj, "status").items() if name != "metrics"}
    conditions = [
        {name: value for name, value in mapping(each).items() if name != "lastHeartbeatTime"}
        for each in sequence(status, "conditions")
    ]
    return {**obj, "metadata": metadata, "status": {**status, "conditions": conditions}}


class View:
    """What one pass reads."""

    def __init__(self, known: Known, reader: Key, *, fresh: bool) -> None:
        self._known = known
        self._reader = reader
        self._fresh = fresh

    async def own(self, model: type[R], version: str) -> R | None:
        """The reader's own object, not one made anew under its name, and no older than it was left."""
        key = self._reader
        found = await self._read(model.kind_of, key.namespace, key.name, key.uid, version)
        if found is None or text(found, "metadata", "uid") != key.uid:
            return None
        return model.model_validate(found)

    async def get(self, model: type[R], namespace: str, name: str) -> R | None:
        """An object, None if there is none."""
        found = await self._read(model.kind_of, namespace, name)
        return None if found is None else model.model_validate(found)

    async def all(self, model: type[R], namespace: str, labels: Mapping[str, str]) -> tuple[R, ...]:
        """The objects of a namespace that have these labels."""
        kind, selection = model.kind_of, _Selection(model.kind_of.name, namespace, labels=labels)
        mirror = None if self._fresh else self._known.mirror(kind)
        if mirror is None:
            found = await self._known.list(kind, namespace, labels)
        else:
            self._known.note(self._reader, selection)
            found = self._known.found(mirror, selection)
        return tuple(model.model_validate(each) for each in found)

    async def _read(self, kind: Kind, namespace: str, name: str, uid: str = "", version: str = "") -> JsonObject | None:
        mirror = None if self._fresh else self._known.mirror(kind)
        found = None if mirror is None else mirror.get(namespace, name)
        other = uid and text(found, "metadata", "uid") != uid
        stale = version and found is not None and newer(version, text(found, "metadata", "resourceVersion"))
        if found is None or other or stale:
            return await self._known.fresh(kind, namespace, name)
        self._known.note(self._reader, _Selection(kind.name, namespace, name))
        return found
