"""The pass over a ResourcePool. `domain/claims/pool_lifecycle.py` decides."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from temporalio import activity

from activities.activity_class import Activities
from activities.claims.evaluation import Evaluation
from activities.claims.handle_reconciliation import known_after
from activities.claims.tools import Tools
from activities.gather import gathered
from activities.inline_driver import Inline, effects_of
from domain.claims import RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, phases
from domain.claims.claim_binding import MOST_SALTS
from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.evaluator_interface import PoolQuestion
from domain.claims.faults import Faulty, fault_of, handle_refused
from domain.claims.handle_creation import new_handle, with_end_from_creation
from domain.claims.handle_names import pool_handle_name
from domain.claims.handle_reconciliation import HandleWorld
from domain.claims.json_objects import JsonObject, is_deleting, key_of, object_at, objects_at, text_at
from domain.claims.passes import ObjectMemory, ObjectWorld, PassPool, PoolWorld
from domain.claims.pool_lifecycle import (
    DeleteHandle,
    Made,
    MakeHandle,
    Opened,
    OpenHandles,
    Pool,
    WriteScalings,
    decide,
)
from domain.claims.pool_replenishment import made_before, pool_handle, rest
from domain.claims.pool_scaling_progress import Scaling, owned_scaling, scaling_of, scaling_status
from domain.identity import Key
from engine.clock import now
from engine.errors import ApiError, Conflict, Denied, Invalid

Open = Callable[[Key, ObjectWorld], Awaitable[None]]

log = logging.getLogger(__name__)


class PoolActivities(Activities):
    def __init__(self, tools: Tools, evaluation: Evaluation, open_handle: Open) -> None:
        self._tools = tools
        self._cache = tools.cache
        self._writer = tools.writer
        self._evaluation = evaluation
        self._open_handle = open_handle
        tools.reconciliation.effects |= effects_of(*self.all())

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        cache, effects = self._cache, self._tools.reconciliation.effects
        cached = await cache.reached(look.versions)
        passed = await Inline(decide, effects, partial(self._observe, look.key), cached=cached).carry_out(
            look, look.memory
        )
        # The next pass may run on another worker, which must not create the same handles again.
        known = passed.world.known.having_written(cache.newest(RESOURCE_HANDLE))
        return passed.as_world(PoolWorld, known=known, rest=rest(len(passed.world.handles)))

    async def _observe(self, key: Key, fresh: bool) -> Pool:
        """A deleted pool's handles are read from the API server: a handle missing in the cache would otherwise stay."""
        cache, settings = self._cache, self._tools.settings
        pool = await cache.own(RESOURCE_POOL, key, fresh=fresh)
        if pool is None:
            return Pool(key=key, exists=False)
        name = text_at(pool, "metadata", "name")
        handles = await cache.fresh_handles() if fresh or is_deleting(pool) else cache.handles_of_pool(name)
        free = (pool_handle(cache.names, handle, pool) for handle in handles)
        scalings = (scaling_of(scaling, pool) for scaling in cache.scalings_of_pool(name))
        return Pool(
            key=key,
            hold=self._tools.hold(pool),
            names=cache.names,
            pool=pool,
            handles=tuple(handle for handle in free if handle),
            scalings=tuple(scaling for scaling in scalings if scaling),
            interval=settings.claims_interval,
            pace=min(settings.claims_pools_interval, MANAGE_POOLS_INTERVAL),
        )

    # --- effects ---

    @activity.defn(name=DeleteHandle.activity)
    async def delete_pool_handle(self, action: DeleteHandle) -> None:
        """Raises Conflict if the handle was written meanwhile, Denied if a hold applies to it."""
        cache = self._cache
        handle = await cache.fresh(RESOURCE_HANDLE, cache.namespace, action.name)
        if handle is None or object_at(handle, "spec", "resourceClaim"):
            return
        if hold := self._tools.hold(handle):
            raise Denied(f"ResourceHandle {action.name} is {hold}", code="Held", delay=phases.SOON)
        ended = await self._tools.releasing.end(handle, as_seen=True)
        for error in ended.refused:
            raise type(error)(error.message, code=error.code, delay=error.delay or phases.SOON)

    @activity.defn(name=WriteScalings.activity)
    async def write_scalings(self, action: WriteScalings) -> None:
        await gathered(self._write_scaling(action.pool, scaling) for scaling in action.scalings)

    async def _write_scaling(self, pool: JsonObject, scaling: Scaling) -> None:
        there = self._cache.get(RESOURCE_POOL_SCALING, self._cache.namespace, scaling.name)
        if there is None:
            return
        # Write the count before the owner reference: if the API server refuses the owner reference, the next pass must
        # still know how many handles were created.
        status = {**object_at(there, "status"), **scaling_status(scaling)}
        there = await self._writer.put_status(RESOURCE_POOL_SCALING, there, status)
        await self._writer.put(RESOURCE_POOL_SCALING, there, owned_scaling(there, pool))

    @activity.defn(name=OpenHandles.activity)
    async def open_pool_handles(self, action: OpenHandles) -> None:
        for each in action.opened:
            await self._open_handle(each.key, each.world)

    @activity.defn(name=MakeHandle.activity)
    async def make_pool_handle(self, action: MakeHandle) -> Made:
        """Create a handle with its resources, or find the handle that an earlier attempt created. Raises Conflict if
        all names for it are taken.
        """
        edits = self._cache.edits
        try:
            handle, is_new = await self._made(action)
        except Faulty as error:
            return Made(fault=fault_of(error))
        except (Denied, Invalid) as error:
            return Made(fault=handle_refused(error.message))
        names, pool = self._cache.names, action.pool
        if not is_new:
            return Made(handle=pool_handle(names, handle, pool))
        key = key_of(RESOURCE_HANDLE, handle, self._tools.settings.cluster)
        self._cache.check_later(key, edits)
        states = tuple(None for _ in objects_at(handle, "spec", "resources"))
        new = HandleWorld.of(key, now=now(), names=names, handle=handle, states=states, states_known=True)
        try:
            settled = await self._tools.reconciliation.settle(new)
        except ApiError as error:
            log.info("%s: %s; the handle's own lifecycle does the rest", key, error.message)
            return Made(handle=pool_handle(names, handle, pool))
        return Made(
            handle=pool_handle(names, settled.handle, pool), opened=Opened(key=key, world=self._world(key, settled))
        )

    async def _made(self, action: MakeHandle) -> tuple[JsonObject, bool]:
        moment, names, pool = now(), self._cache.names, action.pool
        key = key_of(RESOURCE_POOL, pool, self._tools.settings.cluster)
        providers = await self._cache.providers_for(pool)
        for salt in range(MOST_SALTS):
            name = _name(action, salt)
            question = PoolQuestion(now=moment, names=names, pool=pool, providers=providers, handle_name=name)
            body = await self._evaluation.pool_handle(question)
            if body.fault is not None:
                raise Faulty(body.fault.reason, body.fault.message)
            scaling = {names.pool_scaling_name_label: action.new.scaling} if action.new.scaling else {}
            sent = new_handle(names, self._cache.namespace, name, {**body.labels, **scaling}, body.spec)
            plan = await self._tools.reconciliation.planned(key, sent, moment)
            sent = {**sent, "spec": plan.spec or sent["spec"]}
            try:
                made = await self._writer.create(RESOURCE_HANDLE, sent, self._cache.namespace)
            except Conflict:
                there = await self._cache.fresh(RESOURCE_HANDLE, self._cache.namespace, name)
                if there is not None and made_before(names, there, pool, action.new.scaling):
                    return there, False
                continue
            return await self._writer.put(RESOURCE_HANDLE, made, with_end_from_creation(made, moment)), True
        raise Conflict(f"{key.path}: all {MOST_SALTS} names for a new ResourceHandle are taken", code="NameTaken")

    def _world(self, key: Key, settled: HandleWorld) -> ObjectWorld:
        plan, faults = settled.plan, settled.faults
        look_at = self._tools.cadence.next(now(), by_clock=plan.by_clock, faulty=bool(faults))
        decision = phases.settled(settled.handle, plan, faults, claimed=False, look_at=look_at)
        return ObjectWorld(key=key, decision=decision, known=known_after(settled, ObjectMemory(honoured=plan.wish)))


def _name(action: MakeHandle, salt: int) -> str:
    """The new handle's name for this salt. All attempts of an activity use the same name: no part of it is random."""
    if action.new.serial is not None:
        return pool_handle_name(action.new.scaling_uid, action.new.serial, salt)
    info = activity.info()
    token = f"{info.workflow_run_id}/{info.activity_id}/{action.number}"
    serial = int.from_bytes(hashlib.sha256(token.encode()).digest()[:8])
    return pool_handle_name(text_at(action.pool, "metadata", "uid"), serial, salt)
