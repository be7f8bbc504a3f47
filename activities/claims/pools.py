"""The pass over a ResourcePool: gone, held, ignored, on its way out, or filled (filling.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from temporalio import activity

from activities.claims.filling import Filling, PoolTools, gathered
from activities.claims.tools import SOON
from activities.claims.writing import in_hand
from activities.conflicts import until_undisturbed
from domain.claims import RESOURCE_POOL, standing
from domain.claims.objects import JsonObject, object_at, text_at, value_at
from domain.claims.passes import PassPool, PoolWorld
from domain.claims.pools import plan, pool_handle, wants_of
from domain.identity import Key
from engine.clock import now


class PoolActivities:
    """The ResourcePool's activity."""

    def __init__(self, pool_tools: PoolTools) -> None:
        self._pool_tools = pool_tools
        self._tools = pool_tools.tools

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_pool,)

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        """One pass; another one at once where somebody has written what was read."""
        await self._tools.known.settled()
        return await until_undisturbed(look.key, lambda number: self._pass(look, number))

    async def _pass(self, look: PassPool, attempt: int) -> PoolWorld:
        key = look.key
        pool = await self._tools.known.fresh(RESOURCE_POOL, key.namespace, key.name)
        if pool is None or text_at(pool, "metadata", "uid") != key.uid:
            return PoolWorld(key=key, exists=False, decision=standing.GONE)
        hold = self._tools.hold(pool)
        if hold or look.dry_run:
            return self._would(look, pool, hold)
        if self._tools.known.names.ignore_label in object_at(pool, "metadata", "labels"):
            await self._tools.writer.let_go(RESOURCE_POOL, pool)
            return PoolWorld(key=key, decision=standing.LEFT_ALONE)
        if value_at(pool, "metadata", "deletionTimestamp"):
            return await self._end(key, pool)
        pool = await self._tools.writer.put(RESOURCE_POOL, pool, in_hand(self._tools.known.names, RESOURCE_POOL, pool))
        info = activity.info()
        token = f"{info.workflow_run_id}/{info.activity_id}/{attempt}"
        return await Filling(self._pool_tools, key, pool, token, look.memory).fill()

    async def _end(self, key: Key, pool: JsonObject) -> PoolWorld:
        """The free handles go with the pool; those that claims hold live on.

        What is not seen now stays for ever, also what another worker has made a moment ago: all are listed once.
        """
        found = (
            pool_handle(self._tools.known.names, handle, pool) for handle in await self._tools.known.fresh_handles()
        )
        refused = await gathered(self._pool_tools.delete_handle(handle.name) for handle in found if handle)
        if messages := [each for each in refused if each]:
            why = f"its free handles are being deleted; {messages[0]}"
            return PoolWorld(key=key, decision=standing.ending(why, messages, now() + SOON))
        await self._tools.writer.let_go(RESOURCE_POOL, pool)
        return PoolWorld(key=key, exists=False, decision=standing.GONE)

    def _would(self, look: PassPool, pool: JsonObject, hold: str) -> PoolWorld:
        view = self._pool_tools.view(look.key, pool)
        planned = plan(wants_of(pool), view.handles, view.scalings, now(), gave_up=look.memory.gave_up)
        lines = [f"delete ResourceHandle {name}" for name in planned.delete]
        if planned.create:
            lines.append(f"create {len(planned.create)} handles with their resources")
        decision = standing.filled(wants_of(pool), view.handles, None, begins_at=planned.begins_at)
        return PoolWorld(key=look.key, hold=hold, known=look.memory, decision=standing.held(decision, lines))
