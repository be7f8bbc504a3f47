"""One pass over a ResourcePool that lives: count, give up, make handles with their resources at once, write statuses.

    plan --> slots of scalings given back --> unhealthy handles ended --> handles made, sixteen at once --> plan again
      '----> nothing left to do --> statuses --> the workflows of the new handles are opened

Safe to repeat at any point: a handle of a scaling is named after the scaling and its serial number, any other after the
pass that makes it and its number there, so a second attempt finds what the first has made. A scaling's slot is given
back in its status before the unhealthy handle is deleted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from activities.claims.bundle import Bundle, Settled
from activities.claims.evaluation import Beyond, Evaluation
from activities.claims.tools import Tools
from activities.claims.writing import with_metadata
from activities.conflicts import MOST_CONFLICTS
from domain.claims import RESOURCE_HANDLE, RESOURCE_POOL, RESOURCE_POOL_SCALING, standing
from domain.claims.conditions import with_stalled
from domain.claims.constants import HANDLE_NAME_PREFIX, MANAGE_POOLS_INTERVAL
from domain.claims.durations import whole_seconds
from domain.claims.moments import born
from domain.claims.names import pool_handle_name
from domain.claims.objects import JsonObject, object_at, objects_at, text_at
from domain.claims.passes import ObjectKnown, ObjectWorld, PoolKnown, PoolWorld
from domain.claims.plans import Fault, HandleBody, PoolQuestion
from domain.claims.pools import (
    NewHandle,
    PoolHandle,
    Scaling,
    plan,
    pool_handle,
    pool_status,
    rest,
    scaling_of,
    scaling_status,
    wants_of,
)
from domain.claims.references import key_of
from domain.decision import earliest
from domain.identity import Key
from domain.resource import parse_timestamp, timestamp
from engine.clock import now
from engine.errors import ApiError, Conflict

# As many as the API server answers without the wait for each growing.
AT_ONCE = 16
# Handles that are ready at once make room for further ones under `maxUnready`.
MOST_ROUNDS = 100
MOST_SALTS = 8
# Handles that an earlier attempt has made may not be known yet.
COUNT_AGAIN = timedelta(seconds=1)

T = TypeVar("T")
Open = Callable[[Key, ObjectWorld], Awaitable[None]]

log = logging.getLogger(__name__)


class Faulty(Exception):  # noqa: N818 - a fault of the pool that ends the making of handles
    """No handle can be made."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


@dataclass(frozen=True)
class PoolView:
    """What a pass sees of a pool: its free handles and its scalings, as they are known."""

    handles: Sequence[PoolHandle]
    scalings: Sequence[Scaling]


@dataclass(frozen=True)
class PoolTools:
    """What a pass over a pool works with, beside what all passes do."""

    tools: Tools
    evaluation: Evaluation
    open_handle: Open

    def view(self, key: Key, pool: JsonObject) -> PoolView:
        """The pool as it is known; a change that comes in right afterwards wakes it once more."""
        known, name = self.tools.known, text_at(pool, "metadata", "name")
        known.read(key, f"pool/{name}")
        handles = (pool_handle(known.names, handle, pool) for handle in known.handles_of_pool(name))
        scalings = (scaling_of(scaling, pool) for scaling in known.scalings_of_pool(name))
        return PoolView([each for each in handles if each], [each for each in scalings if each])

    async def delete_handle(self, name: str) -> str:
        """Delete a free handle with its resources; what hindered it. One that was bound meanwhile stays."""
        known, hindered = self.tools.known, ""
        for _ in range(MOST_CONFLICTS):
            handle = await known.fresh(RESOURCE_HANDLE, known.namespace, name)
            if handle is None or object_at(handle, "spec", "resourceClaim"):
                return ""
            if hold := self.tools.hold(handle):
                return f"{name} is {hold}"
            try:
                ended = await self.tools.releasing.end(handle, as_seen=True)
            except Conflict as error:
                hindered = error.message  # its own lifecycle writes as well
                continue
            return ended.refused[0].message if ended.refused else ""
        return hindered


class Filling:
    """One pass over a pool that lives."""

    def __init__(self, pool_tools: PoolTools, key: Key, pool: JsonObject, token: str, known: PoolKnown) -> None:
        """A pass; `token` names it, and with it the handles that it makes."""
        self._pool_tools = pool_tools
        self._tools = pool_tools.tools
        self._known = pool_tools.tools.known
        self._writer = pool_tools.tools.writer
        self._key = key
        self._pool = pool
        self._token = token
        self._gave_up = known.gave_up
        self._pace = min(self._tools.settings.claims_pools_interval, MANAGE_POOLS_INTERVAL)
        self._made = 0
        self._places = asyncio.Semaphore(AT_ONCE)
        self._opened: list[tuple[Key, ObjectWorld]] = []

    async def fill(self) -> PoolWorld:
        """Fill the pool."""
        fault: Fault | None = None
        for _ in range(MOST_ROUNDS):
            view, moment = self._pool_tools.view(self._key, self._pool), now()
            wants, before = wants_of(self._pool), self._gave_up
            planned = plan(wants, view.handles, view.scalings, moment, gave_up=before, pace=self._pace)
            self._gave_up = moment if planned.delete else before
            for scaling in planned.giving_back:
                await self._write_scaling(scaling)
            await gathered(self._pool_tools.delete_handle(name) for name in planned.delete)
            try:
                short = await self._make_all(planned.create)
            except Faulty as faulty:
                fault, short = faulty.fault, 0
            if fault is None:
                await gathered(self._write_scaling(scaling) for scaling in planned.scalings)
            if fault or short or not (planned.create or planned.delete):
                break
        handles = self._pool_tools.view(self._key, self._pool).handles
        await self._write_status(handles, fault)
        for key, world in self._opened:
            await self._pool_tools.open_handle(key, world)
        again = COUNT_AGAIN if short else self._tools.settings.claims_interval if fault else None
        decision = standing.filled(
            wants_of(self._pool),
            handles,
            fault,
            begins_at=planned.begins_at,
            look_at=earliest([now() + again if again else None, planned.gives_up_at]),
        )
        known = PoolKnown(gave_up=self._gave_up)
        return PoolWorld(key=self._key, decision=decision, known=known, rest=rest(len(handles)))

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
            key = key_of(RESOURCE_HANDLE, handle, self._key.cluster)
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
        moment, names = now(), self._known.names
        pool = self._pool
        providers = await self._known.providers_for(self._key, pool)
        for salt in range(MOST_SALTS):
            name = self._name(new, number, salt)
            question = PoolQuestion(now=moment, names=names, pool=pool, providers=providers, handle_name=name)
            body = await self._body(question)
            labels = {**body.labels, **({names.pool_scaling_name_label: new.scaling} if new.scaling else {})}
            sent: JsonObject = {
                "apiVersion": names.api_version,
                "kind": RESOURCE_HANDLE.name,
                "metadata": {
                    "name": name,
                    "generateName": HANDLE_NAME_PREFIX,
                    "namespace": self._known.namespace,
                    "labels": {**labels},
                    "finalizers": [names.finalizer],
                },
                "spec": body.spec,
            }
            sent = {**sent, "spec": await self._with_references(sent, moment)}
            try:
                made = await self._writer.create(RESOURCE_HANDLE, sent, self._known.namespace)
            except Conflict:
                there = await self._known.fresh(RESOURCE_HANDLE, self._known.namespace, name)
                if there is not None and pool_handle(names, there, pool) is not None:
                    return None
                continue
            return await self._writer.put(RESOURCE_HANDLE, made, _corrected(made, moment))
        return None

    async def _body(self, question: PoolQuestion) -> HandleBody:
        try:
            body = await self._pool_tools.evaluation.pool_handle(question)
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

    def _world(self, key: Key, settled: Settled) -> ObjectWorld:
        decision = standing.settled(
            settled.handle, settled.plan, settled.faults, claimed=False, look_at=self._tools.next_look(settled, now())
        )
        return ObjectWorld(key=key, decision=decision, known=ObjectKnown(honoured=settled.plan.wish))


async def gathered(each: Iterable[Awaitable[T]]) -> list[T]:
    """All of them, however one ends; the first failure is raised when all have ended."""
    outcomes = await asyncio.gather(*each, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


def _corrected(handle: JsonObject, asked: datetime) -> JsonObject:
    """The handle with its unclaimed end counted from its creation, which may be a second after the asking."""
    end = parse_timestamp(text_at(handle, "spec", "lifespan", "end"))
    late: timedelta = born(handle) - whole_seconds(asked)
    if end is None or not late:
        return handle
    lifespan = {**object_at(handle, "spec", "lifespan"), "end": timestamp(end + late)}
    return {**handle, "spec": {**object_at(handle, "spec"), "lifespan": lifespan}}
