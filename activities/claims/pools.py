"""The pass over a ResourcePool: count, give up, make handles with their resources at once, write the statuses.

Safe to repeat at any point: a handle of a scaling is named after the scaling and its serial number, any other after the
pass that makes it and its number there, so a second attempt finds what the first has made. A scaling's slot is given
back in its status before the unhealthy handle is deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from temporalio import activity

from activities.claims.bundle import Bundle, Settled
from activities.claims.evaluation import Beyond, Evaluation
from activities.claims.tools import MOST_CONFLICTS, SOON, Tools, conflict_without_end
from activities.claims.writing import in_hand, with_metadata
from domain.claims import RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, standing
from domain.claims.conditions import with_stalled
from domain.claims.constants import FINALIZER, HANDLE_NAME_PREFIX, IGNORE_LABEL, POOL_SCALING_NAME_LABEL
from domain.claims.durations import whole_seconds
from domain.claims.moments import born
from domain.claims.names import pool_handle_name
from domain.claims.objects import JsonObject, object_at, objects_at, text_at, value_at
from domain.claims.passes import ObjectKnown, ObjectWorld, PassPool, PoolWorld
from domain.claims.plans import Fault, HandleBody, PoolQuestion
from domain.claims.pools import (
    NewHandle,
    PoolHandle,
    PoolPlan,
    Scaling,
    plan,
    pool_handle,
    pool_status,
    scaling_of,
    scaling_status,
    wants_of,
)
from domain.decision import Decision, Outcome, earliest
from domain.identity import Key
from domain.resource import parse_timestamp, timestamp
from engine.clock import now
from engine.errors import ApiError, Conflict

# As many as the API server answers without the wait for each growing.
AT_ONCE = 16
# Handles that are ready at once make room for further ones under `maxUnready`.
MOST_ROUNDS = 100
MOST_SALTS = 8

Open = Callable[[Key, ObjectWorld], Awaitable[None]]

log = logging.getLogger(__name__)


class Faulty(Exception):  # noqa: N818 - a fault of the pool that ends the making of handles
    """No handle can be made."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class PoolActivities:
    """The ResourcePool's activity."""

    def __init__(self, tools: Tools, evaluation: Evaluation, open_handle: Open) -> None:
        self._tools = tools
        self._known = tools.known
        self._writer = tools.writer
        self._evaluation = evaluation
        self._open_handle = open_handle

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_pool,)

    @activity.defn(name=PassPool.activity)
    async def pass_pool(self, look: PassPool) -> PoolWorld:
        """One pass; another one at once where somebody has written what was read."""
        await self._known.settled()
        for attempt in range(MOST_CONFLICTS):
            try:
                return await self._pass(look, attempt)
            except Conflict as conflict:
                log.info("%s: %s", look.key, conflict.message)
        raise conflict_without_end(look.key)

    async def _pass(self, look: PassPool, attempt: int) -> PoolWorld:
        key = look.key
        pool = await self._known.fresh(RESOURCE_POOL, key.namespace, key.name)
        if pool is None or text_at(pool, "metadata", "uid") != key.uid:
            return PoolWorld(key=key, exists=False, decision=standing.GONE)
        hold = self._tools.hold(pool)
        if hold or look.dry_run:
            return self._would(key, pool, hold)
        if IGNORE_LABEL in object_at(pool, "metadata", "labels"):
            await self._writer.let_go(RESOURCE_POOL, pool)
            return PoolWorld(key=key, decision=standing.LEFT_ALONE)
        if value_at(pool, "metadata", "deletionTimestamp"):
            return await self._end(key, pool)
        pool = await self._writer.put(RESOURCE_POOL, pool, in_hand(RESOURCE_POOL, pool))
        return await _Filling(self, key, pool, attempt).fill()

    def view(self, key: Key, pool: JsonObject) -> tuple[list[PoolHandle], list[Scaling]]:
        """The pool's free handles and its scalings, as they are known."""
        name = text_at(pool, "metadata", "name")
        self._known.read(key, f"pool/{name}")
        handles = (pool_handle(handle, pool) for handle in self._known.handles_of_pool(name))
        scalings = (scaling_of(scaling, pool) for scaling in self._known.scalings_of_pool(name))
        return [handle for handle in handles if handle], [scaling for scaling in scalings if scaling]

    async def _end(self, key: Key, pool: JsonObject) -> PoolWorld:
        """The free handles go with the pool; those that claims hold live on."""
        handles, _ = self.view(key, pool)
        refused = await gathered(self._delete_handle(handle.name) for handle in handles)
        if messages := [str(each) for each in refused if each]:
            why = f"its free handles are being deleted; {messages[0]}"
            return PoolWorld(key=key, decision=standing.ending(why, messages, now() + SOON))
        await self._writer.let_go(RESOURCE_POOL, pool)
        return PoolWorld(key=key, exists=False, decision=standing.GONE)

    async def _delete_handle(self, name: str) -> str:
        """Delete a free handle with its resources; what hindered it. One that was bound meanwhile stays."""
        handle = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)
        if handle is None or object_at(handle, "spec", "resourceClaim"):
            return ""
        try:
            refused = (await self._tools.releasing.end(handle, as_seen=True)).refused
        except Conflict as error:
            return error.message
        return refused[0].message if refused else ""

    def _would(self, key: Key, pool: JsonObject, hold: str) -> PoolWorld:
        handles, scalings = self.view(key, pool)
        planned = plan(wants_of(pool), handles, scalings, now())
        lines = [f"delete ResourceHandle {name}" for name in planned.delete]
        if planned.create:
            lines.append(f"make {len(planned.create)} handles with their resources")
        return PoolWorld(key=key, hold=hold, decision=standing.held(_decision(pool, handles, planned, None), lines))


class _Filling:
    """One pass over a pool that lives."""

    def __init__(self, activities: PoolActivities, key: Key, pool: JsonObject, attempt: int) -> None:
        self._activities = activities
        self._tools = activities._tools
        self._known = activities._known
        self._writer = activities._writer
        self._key = key
        self._pool = pool
        info = activity.info()
        self._token = f"{info.workflow_run_id}/{info.activity_id}/{attempt}"
        self._made = 0
        self._places = asyncio.Semaphore(AT_ONCE)
        self._opened: list[tuple[Key, ObjectWorld]] = []

    async def fill(self) -> PoolWorld:
        fault: Fault | None = None
        for _ in range(MOST_ROUNDS):
            handles, scalings = self._activities.view(self._key, self._pool)
            planned = plan(wants_of(self._pool), handles, scalings, now())
            for scaling in planned.giving_back:
                await self._write_scaling(scaling)
            await gathered(self._activities._delete_handle(name) for name in planned.delete)
            try:
                short = await self._make_all(planned.create)
            except Faulty as faulty:
                fault, short = faulty.fault, 0
            if fault is None:
                await gathered(self._write_scaling(scaling) for scaling in planned.scalings)
            if fault or short or not (planned.create or planned.delete):
                break
        handles, scalings = self._activities.view(self._key, self._pool)
        await self._write_status(handles, fault)
        for key, world in self._opened:
            await self._activities._open_handle(key, world)
        return PoolWorld(
            key=self._key, decision=_decision(self._pool, handles, planned, fault, short=bool(short), at=now())
        )

    async def _write_status(self, handles: Sequence[PoolHandle], fault: Fault | None) -> None:
        status = {**object_at(self._pool, "status"), **pool_status(handles, ())}
        newest = (
            await self._known.fresh(RESOURCE_POOL, self._key.namespace, self._key.name) if self._made else self._pool
        )
        if newest is not None:
            await self._writer.put_status(RESOURCE_POOL, newest, with_stalled(status, fault, now()))

    async def _write_scaling(self, scaling: Scaling) -> None:
        there = self._known.get(RESOURCE_POOL_SCALING, self._known.namespace, scaling.name)
        if there is None:
            return
        owner: JsonObject = {
            "apiVersion": text_at(self._pool, "apiVersion"),
            "kind": text_at(self._pool, "kind"),
            "name": text_at(self._pool, "metadata", "name"),
            "uid": text_at(self._pool, "metadata", "uid"),
        }
        owners = objects_at(there, "metadata", "ownerReferences")
        if not any(each.get("uid") == owner["uid"] for each in owners):
            there = await self._writer.put(
                RESOURCE_POOL_SCALING, there, with_metadata(there, ownerReferences=[*owners, owner])
            )
        await self._writer.put_status(
            RESOURCE_POOL_SCALING, there, {**object_at(there, "status"), **scaling_status(scaling)}
        )

    # --- handles ---

    async def _make_all(self, wanted: Sequence[NewHandle]) -> int:
        """Make handles; how many there are fewer than asked for."""
        numbered = [(new, self._made + number) for number, new in enumerate(wanted)]
        self._made += len(wanted)
        outcomes = await gathered(self._make(new, number) for new, number in numbered)
        return sum(not outcome for outcome in outcomes)

    async def _make(self, new: NewHandle, number: int) -> bool:
        async with self._places:
            handle = await self._handle(new, number)
            if handle is None:
                return False
            key = self._key_of(handle)
            states = tuple(None for _ in objects_at(handle, "spec", "resources"))
            try:
                settled = await self._tools.bundles.settle(Bundle(key, handle), now(), states)
            except ApiError as error:
                log.info("%s: %s; its own lifecycle goes on with it", key, error.message)
                return True
            self._opened.append((key, self._world(key, settled)))
            return True

    async def _handle(self, new: NewHandle, number: int) -> JsonObject | None:
        """The handle on the API server; None if an earlier attempt has made it."""
        moment = now()
        pool = self._pool
        providers = await self._known.providers_for(self._key, pool)
        for salt in range(MOST_SALTS):
            name = self._name(new, number, salt)
            question = PoolQuestion(now=moment, pool=pool, providers=providers, handle_name=name)
            body = await self._body(question)
            labels = {**body.labels, **({POOL_SCALING_NAME_LABEL: new.scaling} if new.scaling else {})}
            sent: JsonObject = {
                "metadata": {
                    "name": name,
                    "generateName": HANDLE_NAME_PREFIX,
                    "namespace": self._known.namespace,
                    "labels": {**labels},
                    "finalizers": [FINALIZER],
                },
                "spec": body.spec,
            }
            sent = {**sent, "spec": await self._with_references(sent, moment)}
            try:
                made = await self._writer.create(RESOURCE_HANDLE, sent, self._known.namespace)
            except Conflict:
                there = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)
                if there is not None and pool_handle(there, pool) is not None:
                    return None
                continue
            return _corrected(made, moment)
        return None

    async def _body(self, question: PoolQuestion) -> HandleBody:
        try:
            body = await self._activities._evaluation.pool_handle(question)
        except Beyond as beyond:
            raise Faulty(beyond.fault) from beyond
        if body.fault is not None:
            raise Faulty(body.fault)
        return body

    def _name(self, new: NewHandle, number: int, salt: int) -> str:
        if new.serial is not None:
            return pool_handle_name(new.scaling_uid, new.serial, salt)
        serial = int.from_bytes(hashlib.sha256(f"{self._token}/{number}".encode()).digest()[:8])
        return pool_handle_name(text_at(self._pool, "metadata", "uid"), serial, salt)

    async def _with_references(self, sent: JsonObject, moment: datetime) -> JsonObject:
        states = tuple(None for _ in objects_at(sent, "spec", "resources"))
        try:
            planned = await self._tools.bundles.plan(Bundle(self._key, sent), moment, states)
        except Beyond as beyond:
            raise Faulty(beyond.fault) from beyond
        return planned.spec or object_at(sent, "spec")

    def _key_of(self, handle: JsonObject) -> Key:
        meta = object_at(handle, "metadata")
        return Key(
            kind=RESOURCE_HANDLE.name,
            namespace=text_at(meta, "namespace"),
            name=text_at(meta, "name"),
            uid=text_at(meta, "uid"),
            cluster=self._key.cluster,
        )

    def _world(self, key: Key, settled: Settled) -> ObjectWorld:
        decision = standing.settled(
            settled.handle, settled.plan, settled.faults, claimed=False, look_at=self._tools.next_look(settled, now())
        )
        return ObjectWorld(key=key, decision=decision, known=ObjectKnown(honoured=settled.plan.wish))


async def gathered(each: object) -> list[object]:
    """All of them, however one ends; the first failure is raised when all have ended."""
    outcomes = await asyncio.gather(*each, return_exceptions=True)  # type: ignore[misc]
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return list(outcomes)


def _corrected(handle: JsonObject, asked: datetime) -> JsonObject:
    """The handle with its unclaimed end counted from its creation, which may be a second after the asking."""
    end = parse_timestamp(text_at(handle, "spec", "lifespan", "end"))
    late: timedelta = born(handle) - whole_seconds(asked)
    if end is None or not late:
        return handle
    lifespan = {**object_at(handle, "spec", "lifespan"), "end": timestamp(end + late)}
    return {**handle, "spec": {**object_at(handle, "spec"), "lifespan": lifespan}}


def _decision(
    pool: JsonObject,
    handles: Sequence[PoolHandle],
    planned: PoolPlan,
    fault: Fault | None,
    *,
    short: bool = False,
    at: datetime | None = None,
) -> Decision:
    wanted = wants_of(pool).min_available
    ready = sum(handle.ready is True for handle in handles)
    why = f"{len(handles)} of {wanted} handles are available, {ready} of them ready"
    if fault is not None:
        return Decision(
            phase="Stalled",
            outcome=Outcome.WAITING,
            why=f"{why}; {fault.reason}: {fault.message}",
            waits_for=("an edit of the pool or its provider",),
        )
    look_again = at + timedelta(seconds=1) if short and at else None
    deadline = earliest([planned.begins_at, look_again])
    filled = len(handles) >= wanted
    return Decision(
        phase="Ready" if filled and ready == len(handles) else "Filling",
        outcome=Outcome.SETTLED if filled else Outcome.WAITING,
        why=why,
        waits_for=() if filled else ("readiness of its handles",),
        deadline=deadline,
        at_deadline="begin a scaling" if deadline and deadline == planned.begins_at else "count again",
    )
