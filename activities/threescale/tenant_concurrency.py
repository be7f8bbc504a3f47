"""The tenants that a worker calls, identified by their normalized addresses.

Each tenant has limits (`call_limits.py`), slots for passes, and lists that passes share if they request the lists at
the same time. A pass takes a slot at its first call and keeps the slot. If no slot is free, the pass waits for a while.
If many passes wait already or the tenant does not answer, the pass ends at once as throttled (`slot_backoff.py`), so
that a hanging tenant never occupies all activities of the worker.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from activities.threescale.call_limits import Guard
from activities.threescale.client import Connections, Tenant
from activities.threescale.slot_backoff import SlotBackoff
from domain.threescale.calls import Read, SecretKey, Write
from domain.threescale.provider_account import plain
from engine.errors import Throttled

MOST_WAITING = 25
# Passes of one tenant that call 3scale concurrently, each with one call at a time.
SLOTS = 8
LONGEST_WAIT = 20.0  # seconds until a slot must be free
# A list is shared for this many seconds after the start of its read.
SHARED_SECONDS = 1.0

_Shared = tuple[float, "asyncio.Task[object]"]


class Share:
    def __init__(self, address: str, slots: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.guard = Guard(f"3scale at {address}", slots, clock=clock)
        self.lists: dict[tuple[str, ...], _Shared] = {}
        self._address = address
        self._clock = clock
        self._slots = asyncio.Semaphore(slots)
        self._turns = SlotBackoff(slots)
        self._waiting = 0
        self._occupied = 0
        self._moved = 0.0  # when a pass last freed a slot while the tenant answered, or took a slot while all were free

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """The context of all calls of a pass. Raises `Throttled` if no slot is free."""
        if self._slots.locked() and (self._waiting >= MOST_WAITING or self.guard.silences):
            raise self._full()
        self._waiting += 1
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await self._slots.acquire()
        except TimeoutError:
            raise self._full() from None
        finally:
            self._waiting -= 1
        began = self._clock()
        if not self._occupied:
            self._moved = began
        self._occupied += 1
        try:
            yield
        finally:
            self._occupied -= 1
            left = self._clock()
            if not self.guard.silences:
                self._moved = left
            self._turns.freed(left - began)
            self._slots.release()

    def _full(self) -> Throttled:
        message = f"3scale at {self._address}: the limit of concurrent reconciliations of one tenant is reached"
        return Throttled(message, code=Guard.busy, delay=self._turns.away(self._clock() - self._moved))


class Calls:
    def __init__(self, tenant: Tenant, share: Share, token: str) -> None:
        self._tenant = tenant
        self._share = share
        self._token = token

    def slot(self) -> AbstractAsyncContextManager[None]:
        return self._share.slot()

    async def read(self, read: Read, *, fresh: bool) -> object:
        """3scale's answer; None if the object does not exist. If `fresh`, an earlier read of a list is not shared."""
        if not read.paged or "/" in read.path:
            return await self._tenant.read(read)
        key = (self._token, read.path, *(f"{name}={value}" for name, value in sorted(read.query.items())))
        began, task = self._share.lists.get(key, (0.0, None))
        if task is None or fresh or time.monotonic() - began > SHARED_SECONDS:
            task = asyncio.create_task(self._tenant.read(read))
            self._share.lists[key] = (time.monotonic(), task)
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(task)

    async def write(self, write: Write, texts: Mapping[SecretKey, str], *, repeated: bool) -> object:
        return await self._tenant.write(write, texts, repeated=repeated)

    def _forget(self, key: tuple[str, ...], done: asyncio.Task[object]) -> None:
        if done.cancelled() or done.exception() is not None:
            self._drop(key, done)
        else:
            asyncio.get_running_loop().call_later(SHARED_SECONDS, self._drop, key, done)

    def _drop(self, key: tuple[str, ...], task: asyncio.Task[object]) -> None:
        if self._share.lists.get(key, (0.0, None))[1] is task:
            del self._share.lists[key]


class Tenants:
    def __init__(self, connections: Connections, unverified: Connections, slots: int = SLOTS) -> None:
        self._connections = connections
        self._unverified = unverified
        self._slots = slots
        self._shares: dict[tuple[str, str, str], Share] = {}

    def calls(self, url: str, token: str, *, insecure: bool = False) -> Calls:
        """The calls to a tenant. If `insecure`, any certificate is trusted."""
        share = self._shares.setdefault(plain(url), Share(url, self._slots))
        http = (self._unverified if insecure else self._connections).http
        return Calls(Tenant(http, url, token, share.guard), share, token)
