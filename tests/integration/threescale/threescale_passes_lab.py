"""The passes themselves on objects in memory and the simulator, one after another and without Temporal.

What workflows do between passes (wait for a wake or a moment) is left out: every object of a namespace is passed over
in turn, as often as it takes, with the memory that its last pass has left. A moment that a pass waits for has come at
the next round.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment
from threescale_lab import Shop
from threescale_process import Client, fresh

from activities.threescale.area import CALL_TIMEOUT
from activities.threescale.cache import ThreescaleCache
from activities.threescale.client import Connections
from activities.threescale.document_download import Downloads
from activities.threescale.pass_context import PassContext
from activities.threescale.passes import PassActivities
from activities.threescale.tenant_concurrency import SLOTS, Tenants
from domain.decision import Outcome
from domain.identity import Key
from domain.threescale import CUSTOM_KINDS
from domain.threescale.passes import PassObject, ThreescaleWorld
from engine.errors import Conflict, Throttled, Unavailable
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import text
from engine.settings import Settings
from localcloud.threescale.control import ThreescaleControl

# Between two looks a day goes by: whatever a pass waits for has come.
A_DAY = timedelta(days=1)
MOST_ROUNDS = 25
QUICK_ROUNDS = 5
A_MOMENT = 0.2  # seconds


class Passes:
    """One worker's passes over whatever a test makes."""

    def __init__(self, kube: MemoryKube, activities: PassActivities) -> None:
        self.kube = kube
        self.activities = activities
        self.ahead = timedelta(0)  # how far the passes' clock is ahead
        self.memory: dict[Key, ThreescaleWorld] = {}  # what their last passes have left
        self.worlds: dict[Key, ThreescaleWorld] = {}

    def now(self) -> datetime:
        """By the passes' clock."""
        return datetime.now(UTC) + self.ahead

    async def shop_of_its_own(self, control: ThreescaleControl) -> Shop:
        """A namespace whose objects are in a new tenant."""
        made = control.add_tenant(fresh("Tenant"))
        return await Shop(cast("KubeApi", self.kube), Client(made.url, made.token)).open()

    async def keys(self, shop: Shop) -> list[Key]:
        """Every object of a namespace."""
        found = []
        for kind in CUSTOM_KINDS:
            for each in (await self.kube.list(kind, shop.namespace)).items:
                name, uid = text(each, "metadata", "name"), text(each, "metadata", "uid")
                found.append(Key(kind=kind.name, namespace=shop.namespace, name=name, uid=uid))
        return found

    async def look(self, key: Key, **more: Any) -> ThreescaleWorld:
        """One pass over one object."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, started_time=self.now())
        before = self.memory.get(key, ThreescaleWorld(key=key))
        requested: dict[str, Any] = {"woken": False, "refusals": before.refusals, "memory": before.known, **more}
        wanted = PassObject(key=key, **requested)
        world = await environment.run(self.activities.pass_object, wanted)
        self.memory[key] = self.worlds[key] = world
        return world

    async def round(self, shop: Shop, order: random.Random | None = None) -> list[ThreescaleWorld]:
        """One pass over everything in a namespace, a day after the last."""
        self.ahead += A_DAY
        keys = await self.keys(shop)
        if order is not None:
            order.shuffle(keys)
        found = []
        for key in keys:
            try:
                found.append(await self.look(key))
            except (Conflict, Throttled, Unavailable):
                found.append(ThreescaleWorld(key=key))  # as the server does: again
        return found

    async def settled(self, *shops: Shop, order: random.Random | None = None) -> None:
        """Round after round until everything is as it shall be, or gone."""
        await asyncio.gather(*(self._settled(shop, order) for shop in shops))

    async def _settled(self, shop: Shop, order: random.Random | None) -> None:
        worlds: Iterable[ThreescaleWorld] = ()
        for count in range(MOST_ROUNDS):
            if count >= QUICK_ROUNDS:
                await asyncio.sleep(A_MOMENT)  # 3scale's own clock does not leap: its lists may still be late
            worlds = await self.round(shop, order)
            if all(each.decision.outcome in (Outcome.SETTLED, Outcome.GONE) for each in worlds):
                return
        phases = [f"{world.key}: {world.decision.phase}, {world.decision.why}" for world in worlds]
        raise AssertionError(f"not settled after {MOST_ROUNDS} rounds: {phases}")


@asynccontextmanager
async def one_worker(*, slots: int = SLOTS, **settings: Any) -> AsyncIterator[Passes]:
    """What a worker has of the area."""
    kube = MemoryKube()

    api = cast("KubeApi", kube)
    used = Settings(**settings)
    seconds = (used.call_timeout or CALL_TIMEOUT).total_seconds()
    async with Connections(seconds) as connections, Connections(seconds, verify=False) as unverified:
        tenants = Tenants(connections, unverified, slots)
        ground = PassContext(api, ThreescaleCache(api, cast("Store", kube)), tenants, Downloads(connections.http), used)
        yield Passes(kube, PassActivities(ground))
