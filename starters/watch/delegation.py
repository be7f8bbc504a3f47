"""Decides which workflow does an object's work: the object's own workflow, or the workflow of its delegate (see
`watched_kinds.py`). In the second case, the delegate *carries* the object.

After a delegate has taken over the work, the object's own workflow is woken. When the delegate gives the work back, the
object's own workflow is opened. When a carried object is deleted, its own workflow is woken if it is still open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable

from domain.identity import Key
from starters.watch.projection import Projection
from starters.watch.projection_index import Index
from starters.watch.wake_queue import WakeQueue
from starters.watch.watched_kinds import Watched

# Whether the workflow of an object is open.
IsOpen = Callable[[Key], Awaitable[bool]]

# The binder carries a claim, and a claim carries its handle. The limit also stops a cycle.
LONGEST_CHAIN = 4


# Seconds, at most, from the deletion of a carried object to the wake of its workflow. This wake is delayed because a
# workflow that deletes many objects at once needs the Temporal server more urgently.
ENDS_WITHIN = 1.0


class Delegation:
    def __init__(self, watched: Iterable[Watched], index: Index) -> None:
        # The kinds with workflows, by name. Each is watched by one entry.
        self.entries = {entry.kind.name: entry for entry in watched if entry.kind.lifecycle}
        self._index = index

    def of(self, known: Projection) -> Key:
        for _ in range(LONGEST_CHAIN):
            entry = self.entries.get(known.key.kind)
            if entry is None:
                break
            delegate = entry.carried.by(known, self._index)
            following = self.known(delegate)
            if delegate == known.key or following is None:
                return delegate
            known = following
        return known.key

    def of_all(self, keys: Iterable[Key]) -> dict[Key, None]:
        """The keys whose workflows do these objects' work, without duplicates. A key not in the index is kept."""
        known = ((key, self.known(key)) for key in keys)
        return dict.fromkeys(self.of(one) if one is not None else key for key, one in known)

    def carried(self, key: Key) -> bool:
        """Whether another workflow does the object's work; False if the object is not in the index."""
        known = self.known(key)
        return known is not None and self.of(known) != key

    def known(self, key: Key) -> Projection | None:
        entry = self.entries.get(key.kind)
        known = self._index.get(entry.name, key.namespace, key.name) if entry else None
        return known if known is not None and known.key == key else None


class Handover:
    def __init__(self, delegation: Delegation, queue: WakeQueue, is_open: IsOpen | None) -> None:
        self._delegation = delegation
        self._queue = queue
        self._is_open = is_open
        self.opening: set[asyncio.Task[None]] = set()

    def noted(self, watched: Watched, before: Projection | None, after: Projection | None) -> None:
        if not watched.carried.relieved or (before is None and not watched.carried.from_birth):
            return
        if after is None:
            if before is not None and self._is_open is not None and self._is_carried(before):
                self._later(self._end(before.key, min(ENDS_WITHIN, watched.carried.relieved)))
            return
        was_carried, is_carried = self._is_carried(before), self._is_carried(after)
        if is_carried and not was_carried:
            asyncio.get_running_loop().call_later(watched.carried.relieved, self._queue.put, after.key)
        elif was_carried and not is_carried:
            self._later(self._open(after.key, watched.carried.relieved))

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self.opening.add(task)
        task.add_done_callback(self.opening.discard)

    def _is_carried(self, known: Projection | None) -> bool:
        return known is None or self._delegation.of(known) != known.key

    async def _open(self, key: Key, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if await self._opened(key) is not True:
            self._queue.put(key)

    async def _end(self, key: Key, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if await self._opened(key) is not False:
            self._queue.put(key)

    async def _opened(self, key: Key) -> bool | None:
        """Whether the workflow is open. None if Temporal did not answer: the caller must then wake the workflow."""
        try:
            return self._is_open is not None and await self._is_open(key)
        except Exception:
            return None
