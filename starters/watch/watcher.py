"""All watched kinds together: which lifecycles a change wakes, which ones a start wakes, and readiness.

After a start, the watcher wakes an object at once if its status does not show that it is settled, if it has changed
since the *checkpoint* in the Lease, or if it needs a missing object. The watcher slowly wakes:

- settled objects that another client wrote last, if the checkpoint lacks their kind;
- objects without a workflow, and workflows without an object (`missing_workflows.py`).

Waking every object would cost a pass each.

If an object is deleted, only a lifecycle that is open is woken. Every wake goes to the object's delegate
(`delegation.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from domain.identity import Key, all_kinds
from domain.resource import parse_timestamp
from engine.health import Health
from engine.kube.api import KubeApi
from engine.kube.reflector import Timing
from engine.tracing import change
from starters.watch import metrics
from starters.watch.checkpoint import Checkpoint
from starters.watch.delegation import Delegation, Handover, IsOpen
from starters.watch.missed_heartbeats import EVERY, MissedHeartbeats
from starters.watch.own_writes import is_echo
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.reflectors import Mirrors
from starters.watch.wake_queue import WakeQueue, is_urgent
from starters.watch.watched_kinds import Watched

# Seconds, at most, that the wakes after a start wait for the lists of all kinds, which contain the objects' relatives.
PATIENCE_WITH_LISTS = 10.0
# Seconds for which the lifecycle of a deletion in progress is not woken. A deletion takes tens of milliseconds, or ten
# seconds when hundreds run at once on a small machine. Passes for objects that are already gone would delay other
# objects.
ENDS_BY_ITSELF = 15.0

Wake = Callable[[Key], Awaitable[None]]
# Given a kind and the keys of its objects: the keys to wake because the object or the workflow is missing.
Unmatched = Callable[[str, list[Key]], Awaitable[list[Key]]]

logger = logging.getLogger(__name__)


class Watcher:
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
        is_open: IsOpen | None = None,
        wake_open: Wake | None = None,
        adoption_rate: float = 5.0,
        checkpoint: str = "",
        served: KubeApi | None = None,
    ) -> None:
        self._wake = wake
        self._wake_open = wake_open or wake
        self._wakers = wakers
        self._unmatched = unmatched
        self._adoption_rate = adoption_rate
        self._checkpoint = Checkpoint(checkpoint)
        self._first_wakes_acknowledged = False
        self._adopted = False
        self.doubtful: list[Key] = []
        self._watched = {entry.name: entry for entry in watched}
        self._until_listed: list[Callable[[], None]] | None = []  # None once the first lists have been read
        self._listed = asyncio.Event()
        self.index = Index()
        self.queue = WakeQueue(self.send, on_woken=lambda key: metrics.WAKES.labels(key.kind).inc())
        self.delegation = Delegation(self._watched.values(), self.index)
        self.handover = Handover(self.delegation, self.queue, is_open)
        self._silence = MissedHeartbeats(self._watched.values(), self.index)
        self.mirrors = Mirrors(
            api, self.index, lambda entry: _ChangesOf(self, entry), cluster=cluster, timing=timing, served=served
        )

    async def run(self) -> None:
        kinds = {entry.kind.name for entry in self._watched.values()} | _without_objects()
        try:
            await self._run(kinds)
        finally:
            self.mirrors.ended()
            for kind in kinds:
                metrics.LAG.remove(kind)
                metrics.QUEUE.remove(kind)

    async def _run(self, kinds: Iterable[str]) -> None:
        async with asyncio.TaskGroup() as group:
            self.mirrors.group = group
            for entry in self._watched.values():
                self.mirrors.start(entry)
            for kind in kinds:
                self._measure(kind)
            group.create_task(self.queue.run(self._wakers))
            group.create_task(self._after_start())
            group.create_task(self._listen_for_silence())

    def seen(self, key: Key) -> dict[str, str]:
        """By kind, the resource version that a cache must reach to contain all changes that caused wakes of the key."""
        return self.mirrors.newest(all_kinds()[key.kind].area)

    def checkpoint(self) -> str:
        if self._adopted and not len(self.queue):
            self._checkpoint.renew(self.mirrors.positions(), self.mirrors.names())
        return str(self._checkpoint)

    # What a change wakes.

    def started(self, watched: Watched, objects: list[Projection]) -> None:
        for known in objects:
            self.mirrors.follow(watched, None, known)
        if self._until_listed is not None:
            self._until_listed.append(partial(self._take_first_list, watched, objects))
            self._notice_listed()
        else:
            self._take_first_list(watched, objects)

    def changed(
        self, watched: Watched, before: Projection | None, after: Projection | None, *, seen_live: bool
    ) -> None:
        if before is not None and after is not None and before.key != after.key:
            # Deleted and recreated between two lists: two objects.
            self.changed(watched, before, None, seen_live=seen_live)
            self.changed(watched, None, after, seen_live=seen_live)
            return
        if before is not None and after is not None and before.fingerprint == after.fingerprint:
            metrics.IGNORED.labels(watched.name).inc()
        elif seen_live and (is_echo(before, after) or _made_by_others(watched, before, after)):
            # The workflow that made the change needs no wake; the object's relatives may still depend on the change.
            metrics.ECHOES.labels(watched.name).inc()
            self._wake_now_and_once_listed(partial(self._wake_relatives, watched, before, after))
        else:
            self._wake_now_and_once_listed(partial(self._wake_with_relatives, watched, before, after))
        self.handover.noted(watched, before, after)
        self.mirrors.follow(watched, before, after)

    def absent(self, watched: Watched) -> None:
        self.mirrors.absent(watched)
        self._notice_listed()

    def _take_first_list(self, watched: Watched, objects: list[Projection]) -> None:
        declared = self.mirrors.declares(watched)
        for known in objects:
            if not known.settled or self._checkpoint.is_behind(watched.name, known):
                self._wake_with_relatives(watched, None, known)
            elif not self._checkpoint.covers(watched.name) and not known.ours:
                if self._concerned(watched, None, known):
                    self._doubt([known.key])
                elif declared:
                    self._doubt(watched.relatives(None, known, self.index))
        self._put_all(watched.missing(self.index))
        if declared:
            self._wake_waiting(watched)

    def _wake_waiting(self, watched: Watched) -> None:
        """Wake objects that refer to a newly listed kind, because they may wait for it."""
        if self.mirrors.awaited(watched):
            for entry in self._watched.values():
                if entry.declaring:
                    self._put_all(one.key for one in self.index.all(entry.name) if _names(entry, one, watched.name))
        self.mirrors.listed(watched)

    def _doubt(self, keys: Iterable[Key]) -> None:
        """Wake lifecycles: slowly while the watcher starts, at once after its start."""
        if self._adopted:  # a kind that is listed after the start, such as one installed later, has few objects
            self._put_all(keys)
        else:
            self.doubtful.extend(keys)

    def _wake_now_and_once_listed(self, wake: Callable[[], None]) -> None:
        """Wake now, and again when all kinds are listed: before that, relatives may be unknown."""
        wake()
        if self._until_listed is not None:
            self._until_listed.append(wake)

    def _wake_with_relatives(self, watched: Watched, before: Projection | None, after: Projection | None) -> None:
        subject = after or before
        # A deletion in the first list may belong to a workflow that died: it does not count as in progress.
        if before is not None and subject is not None and watched.ending(before, after, self.index):
            self._leave_to_its_end(watched, before, after, subject)
            return
        if subject is not None and self._concerned(watched, before, after):
            delegate = self.delegation.of(subject)
            if delegate != subject.key:
                self.queue.put(delegate, urgent=is_urgent(before, after))
            else:
                self._wake_itself(watched, before, after, delegate)
        self._wake_relatives(watched, before, after)

    def _concerned(self, watched: Watched, before: Projection | None, after: Projection | None) -> bool:
        return watched.kind.lifecycle and any(watched.lives(each, self.index) for each in (before, after) if each)

    def _leave_to_its_end(
        self, watched: Watched, before: Projection | None, after: Projection | None, subject: Projection
    ) -> None:
        """Delay the wakes that a step of a deletion in progress causes: a wake at each step would cost more than the
        deletion.

        The deleted object's workflow is woken after a delay, in case its worker has died. Lifecycles of relatives that
        are not being deleted are woken at once.
        """
        if watched.kind.lifecycle:
            self.queue.leave(self.delegation.of(subject), ENDS_BY_ITSELF)
        for key in self.delegation.of_all(watched.relatives(before, after, self.index)):
            if self._is_ending(key):
                self.queue.leave(key, ENDS_BY_ITSELF)
            else:
                self.queue.put(key)

    def _is_ending(self, key: Key) -> bool:
        known = self.delegation.known(key)
        return key.kind in self.delegation.entries and (known is None or known.deleting)

    def _wake_relatives(self, watched: Watched, before: Projection | None, after: Projection | None) -> None:
        find = partial(self._relatives, watched, before, after)
        if watched.pacing.gathers:
            self.queue.gather(find, watched.pacing.gathers)
        else:
            self.queue.put_all(find())

    def _relatives(self, watched: Watched, before: Projection | None, after: Projection | None) -> Iterable[Key]:
        return self.delegation.of_all(watched.relatives(before, after, self.index))

    def _wake_itself(self, watched: Watched, before: Projection | None, after: Projection | None, key: Key) -> None:
        """Wake the object's own lifecycle. If another workflow does the work (`Pacing.patience`), the wake is delayed,
        but not while the watcher starts.
        """
        patience = watched.pacing.patience(before, after) if after is not None and self._adopted else 0.0
        if patience:
            self.queue.hold(key, patience)
        else:
            self.queue.put_now(key, urgent=is_urgent(before, after))

    async def send(self, key: Key) -> None:
        """Wake a lifecycle. If its object is gone, a lifecycle that is not open is not started."""
        await (self._wake_open if self._is_gone(key) else self._wake)(key)

    def _is_gone(self, key: Key) -> bool:
        entry, known = self.delegation.entries.get(key.kind), self.delegation.known(key)
        if entry is None or not self.mirrors.is_listed(entry):
            return False
        return known is None or not entry.lives(known, self.index)

    def _put_all(self, keys: Iterable[Key]) -> None:
        self.queue.put_all(self.delegation.of_all(keys))

    # After the start.

    async def _after_start(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_WITH_LISTS):
                await self._listed.wait()
        self._take_first_lists()
        await self._listed.wait()
        await self.queue.acknowledged()
        self._first_wakes_acknowledged = True
        logger.info("ready: every kind is listed and every first wake is acknowledged")
        await self.mirrors.declared_tried(PATIENCE_WITH_LISTS)
        await self.adopt()
        self._adopted = True

    def _notice_listed(self) -> None:
        if not self.mirrors.unlisted():
            self._take_first_lists()
            self._listed.set()

    def _take_first_lists(self) -> None:
        waiting, self._until_listed = self._until_listed, None
        for wake in waiting or ():
            wake()

    async def adopt(self) -> None:
        slowly = self.delegation.of_all(self.doubtful)
        if self._unmatched is not None:
            for entry in self.delegation.entries.values():
                if self.mirrors.is_listed(entry):
                    found = await self._find_unmatched(self._unmatched, entry)
                    slowly.update(dict.fromkeys(key for key in found if not self.delegation.carried(key)))
        if slowly:
            logger.info("%d settled objects or left-over workflows are woken one by one", len(slowly))
        due = self._ending_within(timedelta(seconds=len(slowly) / self._adoption_rate)) if slowly else set()
        self.queue.put_all(key for key in slowly if key in due)
        for key in slowly:
            if key not in due:
                self.queue.put(key)
                await asyncio.sleep(1 / self._adoption_rate)
        self.doubtful.clear()

    def _ending_within(self, time: timedelta) -> set[Key]:
        until = datetime.now(UTC) + time
        known = (each for entry in self.delegation.entries.values() for each in self.index.all(entry.name))
        ends = ((each, parse_timestamp(each.fact("end"))) for each in known)
        return {self.delegation.of(each) for each, end in ends if end is not None and end <= until}

    async def _find_unmatched(self, unmatched: Unmatched, entry: Watched) -> list[Key]:
        while True:
            try:
                living = [known.key for known in self.index.all(entry.name) if entry.lives(known, self.index)]
                return await unmatched(entry.kind.name, living)
            except Exception as error:  # a failing visibility store only delays these optional wakes
                logger.warning("open workflows cannot be listed, trying again: %s", error)
                await asyncio.sleep(30)

    async def _listen_for_silence(self) -> None:
        await self._listed.wait()
        while True:
            self._put_all(self._silence.news())
            await asyncio.sleep(EVERY)

    # State, for health checks.

    def register(self, health: Health) -> None:
        health.add("watch", dead=self.queue.stalled, unready=self.unready, notes=self.notes)

    def unready(self) -> list[str]:
        """Why the watcher is not ready: a kind is not listed yet, a first wake is not accepted, or a right is missing.

        Declared kinds (`reflectors.py`) and kinds that are not installed never make the watcher unready, because an
        installation may have only one area's CRDs.
        """
        if missing := self.mirrors.unlisted():
            return [f"{mirror.followed.name} is not listed: {mirror.trouble or 'in progress'}" for mirror in missing]
        if not self._first_wakes_acknowledged:
            return [f"{len(self.queue)} first wakes are not acknowledged"]
        return list(self.mirrors.denied())

    def notes(self) -> list[str]:
        return list(self.mirrors.notes())

    def _measure(self, kind: str) -> None:
        metrics.LAG.labels(kind).set_function(lambda: self.queue.oldest_age(kind))
        metrics.QUEUE.labels(kind).set_function(lambda: self.queue.length(kind))


@dataclass(frozen=True)
class _ChangesOf:
    watcher: Watcher
    watched: Watched

    def started(self, objects: list[Projection]) -> None:
        self.watcher.started(self.watched, objects)

    def changed(self, before: Projection | None, after: Projection | None, *, seen_live: bool) -> None:
        known = after or before
        where = {"k8s.namespace.name": known.key.namespace, "perdure.object": known.key.path} if known else {}
        with change(f"watch {self.watched.name}", where):
            self.watcher.changed(self.watched, before, after, seen_live=seen_live)

    def absent(self) -> None:
        self.watcher.absent(self.watched)


def _without_objects() -> set[str]:
    return {kind.name for kind in all_kinds().values() if kind.lifecycle and not kind.plural}


def _names(entry: Watched, known: Projection, declared: str) -> bool:
    return any(each.name == declared for each in entry.declared(known))


def _made_by_others(watched: Watched, before: Projection | None, after: Projection | None) -> bool:
    """Whether another workflow has created the object: the creator does the object's work or opens its workflow."""
    return watched.carried.from_birth and before is None and after is not None and after.ours and not after.deleting
