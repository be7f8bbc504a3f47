"""All watched kinds together: which keys a change wakes, what is woken after a start, and when the watcher is ready.

After a start the objects are listed, and waking all of them would cost a pass each (47 ms of CPU, measured; half a
minute for a thousand). So only these are woken at once:

- what its own status does not show as settled, with its relatives as if it were new;
- what changed since the last watcher's *checkpoint*: the versions up to which everything was acknowledged, kept in the
  Lease (a change that a settled object's status does not show would be lost otherwise).

Then, slowly: without a checkpoint, the settled objects whose last writer was not Perdure; settled objects without a
workflow, and workflows without an object (`adoption.py`). `watch_wake_all` and `watch_sweep` wake everything.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from domain.identity import Key
from engine.health import Health
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject
from engine.kube.reflector import Reflector, Timing, newer
from starters.watch import metrics
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.projection import Projection, project
from starters.watch.queue import WakeQueue

# The annotation of the Lease that holds the checkpoint: a JSON object of resource versions by name of the kind.
CHECKPOINT = "perdure.dev/acknowledged"

Wake = Callable[[Key], Awaitable[None]]
# For a kind and the keys of its objects: whom to wake because object or workflow lacks the other.
Unmatched = Callable[[str, list[Key]], Awaitable[list[Key]]]

logger = logging.getLogger(__name__)


class Watcher:
    """Mirrors the watched kinds and wakes lifecycles, for as long as `run` runs."""

    def __init__(
        self,
        api: KubeApi,
        wake: Wake,
        watched: Iterable[Watched],
        *,
        cluster: str = "",
        timing: Timing | None = None,
        wakers: int = 10,
        unmatched: Unmatched | None = None,
        adoption_rate: float = 5.0,
        wake_all: bool = False,
        sweep: timedelta = timedelta(0),
        checkpoint: str = "",
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._timing = timing or Timing()
        self._wakers = wakers
        self._unmatched = unmatched
        self._adoption_rate = adoption_rate
        self._wake_all_at_start = wake_all
        self._sweep = sweep
        self._inherited = _versions(checkpoint)
        self._acknowledged: dict[str, str] = {}
        self._first_wakes_acknowledged = False
        self._adopted = False
        self._doubtful: list[Key] = []
        self._watched = {entry.name: entry for entry in watched}
        self._declared: dict[str, Watched] = {}
        self._reflectors: dict[str, Reflector[Projection]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._listed = asyncio.Event()
        self.index = Index()
        self.queue = WakeQueue(wake, on_woken=lambda key: metrics.WAKES.labels(key.kind).inc())

    async def run(self) -> None:
        """Watch and wake for ever."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            for entry in self._watched.values():
                self._start(entry)
            group.create_task(self.queue.run(self._wakers))
            group.create_task(self._after_start())
            if self._sweep:
                group.create_task(self._sweep_for_ever())

    def wake_all(self) -> None:
        """Wake every object of every kind, and whom they concern."""
        for entry in tuple(self._watched.values()):
            if entry.has_workflow:
                for known in tuple(self.index.all(entry.name)):
                    self._wake_with_relatives(entry, None, known)

    def checkpoint(self) -> str:
        """The versions up to which nothing has to be looked at again, for the Lease; renewed when nothing waits."""
        if self._adopted and not len(self.queue):
            for name, mirror in self._reflectors.items():
                if mirror.listed and mirror.position:
                    self._acknowledged[name] = mirror.position
        return json.dumps(self._acknowledged or self._inherited, sort_keys=True)

    # What a change wakes.

    def started(self, watched: Watched, objects: list[Projection]) -> None:
        """The first list of a kind is complete."""
        for known in objects:
            if self._wake_all_at_start or not known.settled or self._changed_since_checkpoint(watched, known):
                self._wake_with_relatives(watched, None, known)
            elif watched.has_workflow and watched.name not in self._inherited and not known.ours:
                self._doubt(known.key)
        self._follow_declarations(watched)
        self._notice_listed()

    def changed(
        self, watched: Watched, before: Projection | None, after: Projection | None, *, seen_live: bool
    ) -> None:
        """An object differs from before."""
        if before is not None and after is not None and before.key != after.key:
            # Deleted and made anew between two lists: two objects.
            self.changed(watched, before, None, seen_live=seen_live)
            self.changed(watched, None, after, seen_live=seen_live)
            return
        if before is None or after is None:
            self._wake_with_relatives(watched, before, after)
        elif before.fingerprint == after.fingerprint:
            metrics.IGNORED.labels(watched.name).inc()
        elif seen_live and _echo(before, after):
            # Its own workflow's write, which that workflow knows of; what its relatives care about may still differ.
            metrics.ECHOES.labels(watched.name).inc()
            self.queue.put_all(watched.dependents(before, after, self.index))
        else:
            self._wake_with_relatives(watched, before, after)
        self._follow_declarations(watched)

    def absent(self, watched: Watched) -> None:
        """A kind is not installed."""
        self._notice_listed()

    def _doubt(self, key: Key) -> None:
        """Woken slowly, unless that has been done with: then this kind was installed later, and its objects are few."""
        if self._adopted:
            self.queue.put(key)
        else:
            self._doubtful.append(key)

    def _wake_with_relatives(self, watched: Watched, before: Projection | None, after: Projection | None) -> None:
        subject = after or before
        if subject is not None and watched.has_workflow:
            self._wake_itself(watched, before, after, subject.key)
        keys = watched.dependents(before, after, self.index)
        self.queue.put_all(keys)
        if watched.kept and keys and before is not None:
            asyncio.get_running_loop().call_later(watched.kept, self.queue.put_all, keys)

    def _wake_itself(self, watched: Watched, before: Projection | None, after: Projection | None, key: Key) -> None:
        """At once, unless another workflow is doing its work; a restarted watcher cannot know that."""
        patience = watched.patience(before, after) if after is not None and self._adopted else 0.0
        if patience:
            self.queue.hold(key, patience)
        else:
            self.queue.put_now(key)

    def _changed_since_checkpoint(self, watched: Watched, known: Projection) -> bool:
        seen = self._inherited.get(watched.name, "")
        return bool(seen) and newer(known.resource_version, seen)

    # Kinds that come and go.

    def _start(self, entry: Watched) -> None:
        if self._group is None:
            raise RuntimeError("the watcher is not running")

        def read(obj: JsonObject) -> Projection:
            return project(entry.kind.name, self._cluster, obj, entry.read)

        reflector = Reflector(
            self._api, entry, read, self.index.of(entry.name), _ChangesOf(self, entry), timing=self._timing
        )
        self._reflectors[entry.name] = reflector
        self._tasks[entry.name] = self._group.create_task(reflector.run(), name=f"reflector {entry.name}")
        kind = entry.kind.name
        metrics.LAG.labels(kind).set_function(lambda: self.queue.oldest_age(kind))
        metrics.QUEUE.labels(kind).set_function(lambda: self.queue.length(kind))
        metrics.LAST_EVENT_AGE.labels(entry.name).set_function(lambda: time.monotonic() - reflector.last_sign)

    def _stop(self, entry: Watched) -> None:
        self._tasks.pop(entry.name).cancel()
        self._reflectors.pop(entry.name)
        self.index.of(entry.name).clear()

    def _follow_declarations(self, changed: Watched) -> None:
        """Watch the kinds that objects declare, and stop watching those that none declares any more."""
        if not changed.declaring:
            return
        wanted: dict[str, Watched] = {}
        for entry in self._watched.values():
            if entry.declaring and entry.name not in self._declared:
                for known in self.index.all(entry.name):
                    wanted.update({each.name: each for each in entry.declares(known)})
        for name, entry in tuple(self._declared.items()):
            if name not in wanted or wanted[name].selection != entry.selection:
                logger.info("%s is not watched any more", name)
                self._stop(entry)
                del self._declared[name], self._watched[name]
        for name, entry in wanted.items():
            if name not in self._watched:
                logger.info("%s is watched from now on", name)
                self._declared[name] = self._watched[name] = entry
                self._start(entry)

    # After the start.

    async def _after_start(self) -> None:
        await self._listed.wait()
        await self.queue.acknowledged()
        self._first_wakes_acknowledged = True
        logger.info("ready: every kind is listed and every first wake is acknowledged")
        await self._adopt()
        self._adopted = True

    async def _adopt(self) -> None:
        slowly = dict.fromkeys(self._doubtful)
        if self._unmatched is not None:
            for entry in tuple(self._watched.values()):
                if entry.has_workflow and self._reflectors[entry.name].listed:
                    slowly.update(dict.fromkeys(await self._find_unmatched(self._unmatched, entry)))
        if slowly:
            logger.info("%d settled objects or left-over workflows are woken one by one", len(slowly))
        for key in slowly:
            self.queue.put(key)
            await asyncio.sleep(1 / self._adoption_rate)
        self._doubtful.clear()

    async def _find_unmatched(self, unmatched: Unmatched, entry: Watched) -> list[Key]:
        while True:
            try:
                return await unmatched(entry.kind.name, [known.key for known in self.index.all(entry.name)])
            except Exception as error:  # whatever visibility answers, it only delays this courtesy
                logger.warning("open workflows cannot be listed, trying again: %s", error)
                await asyncio.sleep(30)

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._sweep.total_seconds())
            self.wake_all()

    def _notice_listed(self) -> None:
        if not self._unlisted():
            self._listed.set()

    # What it says about itself.

    def register(self, health: Health) -> None:
        """Tell `health` when the watcher is ready, and what it misses."""
        health.add("watch", unready=self.unready, notes=self._notes)

    def unready(self) -> list[str]:
        """Why it is not ready: a list that is missing, or first wakes that Temporal does not have yet.

        A kind that is not installed is no reason: whoever uses one area only has the CRDs of that area only.
        """
        missing = self._unlisted()
        if missing:
            return [f"{mirror.selection.name} is not listed: {mirror.trouble or 'in progress'}" for mirror in missing]
        if not self._first_wakes_acknowledged:
            return [f"{len(self.queue)} first wakes are not acknowledged"]
        return []

    def _unlisted(self) -> list[Reflector[Projection]]:
        return [mirror for mirror in self._reflectors.values() if mirror.installed and not mirror.listed]

    def _notes(self) -> list[str]:
        notes = []
        for mirror in self._reflectors.values():
            if not mirror.installed:
                notes.append(f"{mirror.selection.name} is not installed in the cluster")
            elif mirror.listed and mirror.trouble:
                notes.append(f"{mirror.selection.name}: {mirror.trouble}")
        return notes


@dataclass(frozen=True)
class _ChangesOf:
    """What a kind's reflector tells, told to the watcher with the kind."""

    watcher: Watcher
    watched: Watched

    def started(self, objects: list[Projection]) -> None:
        self.watcher.started(self.watched, objects)

    def changed(self, before: Projection | None, after: Projection | None, *, seen_live: bool) -> None:
        self.watcher.changed(self.watched, before, after, seen_live=seen_live)

    def absent(self) -> None:
        self.watcher.absent(self.watched)


def _echo(before: Projection, after: Projection) -> bool:
    """Whether a change is the own workflow's write, beyond doubt.

    A deletion leaves no trace in managedFields, nor does somebody who takes away the last that he had written (a pause
    lifted with kubectl): the newest entry is ours then, though the change is not.
    """
    return (
        after.ours
        and before.handed == after.handed
        and before.deleting == after.deleting
        and before.others == after.others
    )


def _versions(checkpoint: str) -> Mapping[str, str]:
    try:
        versions = json.loads(checkpoint or "{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in versions.items()} if isinstance(versions, dict) else {}
