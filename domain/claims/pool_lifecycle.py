"""Replenishment of a ResourcePool: create missing and delete unhealthy handles, carry out ResourcePoolScalings.

    finalizer --> unhealthy handles noted in their scalings' statuses --> unhealthy handles deleted
      --> handles created, with their resources --> statuses of scalings --> status of the pool
      --> lifecycles of the new handles started
    pool being deleted --> free handles deleted --> finalizer removed

A handle's name derives from its scaling and serial number or, without a scaling, from the pass and the handle's number
in that pass, so a second attempt finds the handles of the first attempt.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from typing import ClassVar

from domain.claims import RESOURCE_POOL, phases
from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Fault
from domain.claims.events import fault_events
from domain.claims.finalizers import in_hand
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import GivenObject, JsonObject, is_deleting, object_at
from domain.claims.passes import ObjectWorld, PoolMemory
from domain.claims.pool_replenishment import PoolHandle, PoolPlan, plan, pool_status, wants_of
from domain.claims.pool_scaling_progress import NewHandle, Scaling
from domain.claims.stalled_condition import with_stalled
from domain.claims.writes import ClaimsAction, ObjectsWorld, PutObject, PutStatus, let_go
from domain.decision import Action, Decision, World, earliest
from domain.identity import Key
from domain.model import Model

# A pass creates at most this many times `maxUnready` handles. It can exceed `maxUnready` itself, because handles that
# are ready at once do not count towards that limit.
MOST_TURNS = 50


class Opened(Model):
    key: Key
    world: ObjectWorld


class Pool(ObjectsWorld):
    known: PoolMemory = PoolMemory()
    names: DomainNames = DomainNames(domain="")
    pool: GivenObject = {}
    handles: tuple[PoolHandle, ...] = ()  # free handles that are not being deleted
    scalings: tuple[Scaling, ...] = ()  # with the progress in their statuses
    made: tuple[str, ...] = ()  # the slots of handles created in this pass
    opened: tuple[Opened, ...] = ()  # new handles whose lifecycles are not started yet
    fault: Fault | None = None  # why no handle can be created
    interval: timedelta = timedelta(0)  # the pause after a fault
    pace: timedelta = MANAGE_POOLS_INTERVAL  # how long newer handles are kept after unhealthy ones were deleted

    def recall(self, before: World) -> Pool:
        world = super().recall(before)  # type: ignore[arg-type]
        if not isinstance(before, Pool):
            return world
        return world.model_copy(update={"made": before.made, "opened": before.opened, "fault": before.fault})

    def stored(self, kind: str, obj: JsonObject) -> Pool:
        return self.model_copy(update={"pool": obj})


class OfPool(ClaimsAction):
    pool: GivenObject


class Made(Model):
    """The handle that this or an earlier attempt created, or `fault`: why no handle can be created."""

    handle: PoolHandle | None = None
    opened: Opened | None = None
    fault: Fault | None = None


class MakeHandle(OfPool):
    activity: ClassVar[str] = "claims.make_pool_handle"
    title: ClassVar[str] = "create a handle with its resources"
    result: ClassVar[type[Model] | None] = Made

    new: NewHandle
    number: int = 0

    @property
    def slot(self) -> str:
        return self.new.slot(self.number)

    def fold(self, world: Pool, made: Made) -> Pool:  # type: ignore[override]
        if made.fault is not None:
            return world.model_copy(update={"fault": made.fault})
        there = {handle.name for handle in world.handles}
        new = (made.handle,) if made.handle is not None and made.handle.name not in there else ()
        opened = (made.opened,) if made.opened is not None else ()
        changes = {"handles": world.handles + new, "opened": world.opened + opened, "made": (*world.made, self.slot)}
        return world.model_copy(update=changes)


class DeleteHandle(OfPool):
    """Deletes the handle with its resources, unless it was bound meanwhile. `at` is the time of the decision."""

    activity: ClassVar[str] = "claims.delete_pool_handle"

    name: str
    at: datetime

    @property
    def slot(self) -> str:
        return f"delete {self.name}"

    @property
    def summary(self) -> str:
        return f"delete ResourceHandle {self.name}"

    def fold(self, world: Pool, result: Model | None) -> Pool:  # type: ignore[override]
        remaining = tuple(handle for handle in world.handles if handle.name != self.name)
        return world.model_copy(update={"handles": remaining, "known": PoolMemory(gave_up=self.at)})


class WriteScalings(OfPool):
    activity: ClassVar[str] = "claims.write_scalings"
    last: ClassVar[bool] = True

    scalings: tuple[Scaling, ...]

    @property
    def summary(self) -> str:
        return f"write the status of ResourcePoolScaling {', '.join(scaling.name for scaling in self.scalings)}"

    def fold(self, world: Pool, result: Model | None) -> Pool:  # type: ignore[override]
        written = {scaling.name: scaling for scaling in self.scalings}
        return world.model_copy(update={"scalings": tuple(written.get(each.name, each) for each in world.scalings)})


class OpenHandles(OfPool):
    activity: ClassVar[str] = "claims.open_pool_handles"
    title: ClassVar[str] = "open the lifecycles of the new handles"
    last: ClassVar[bool] = True

    opened: tuple[Opened, ...]

    def fold(self, world: Pool, result: Model | None) -> Pool:  # type: ignore[override]
        return world.model_copy(update={"opened": ()})


def decide(world: Pool, now: datetime) -> Decision:
    if not world.exists:
        return phases.GONE
    if is_left_alone(world.names, world.pool):
        return phases.LEFT_ALONE.doing(*let_go(world.names, RESOURCE_POOL, world.pool))
    if is_deleting(world.pool):
        return _leaving(world, now)
    wants, gave_up = wants_of(world.pool), world.known.gave_up
    planned = plan(wants, world.handles, world.scalings, now, gave_up=gave_up, pace=world.pace, made=world.made)
    decision = phases.filled(
        wants,
        world.handles,
        world.fault,
        begins_at=planned.begins_at,
        look_at=earliest([now + world.interval if world.fault or _has_no_turn(world) else None, planned.gives_up_at]),
    )
    notices = tuple(fault_events(None, world.pool, (world.fault,) if world.fault else ()))
    return decision.doing(*_actions(world, planned, now)).model_copy(update={"notices": notices})


def _leaving(world: Pool, now: datetime) -> Decision:
    if not world.handles:
        letting_go = let_go(world.names, RESOURCE_POOL, world.pool)
        return phases.ending("it is being deleted").doing(*letting_go) if letting_go else phases.GONE
    deletions = tuple(DeleteHandle(pool=world.pool, name=handle.name, at=now) for handle in world.handles)
    refusals = [refusal for each in deletions if (refusal := world.refusals.get(each.slot))]
    messages = [refusal.message for refusal in refusals]
    why = "; ".join(["its free handles are being deleted", *messages[:1]])
    decision = phases.ending(why, messages, earliest([refusal.retry_at for refusal in refusals]))
    return decision.doing(*deletions)


def _actions(world: Pool, planned: PoolPlan, now: datetime) -> Iterator[Action]:
    pool, taken = world.pool, in_hand(world.names, RESOURCE_POOL, world.pool)
    if first := world.to_write(PutObject(kind=RESOURCE_POOL, before=pool, after=taken, what="finalizers")):
        yield from first
        return
    if planned.giving_back:
        yield WriteScalings(pool=pool, scalings=planned.giving_back)
        return
    deletions = [DeleteHandle(pool=pool, name=name, at=now) for name in planned.delete]
    yield from deletions
    if any(each.slot not in world.refusals for each in deletions):
        return
    if world.fault is None:
        creations = [] if _has_no_turn(world) else _creations(world, planned)
        yield from creations
        if planned.scalings and not creations:
            yield WriteScalings(pool=pool, scalings=planned.scalings)
    status = with_stalled({**object_at(pool, "status"), **pool_status(world.handles)}, world.fault, now)
    yield from world.to_write(PutStatus(kind=RESOURCE_POOL, before=pool, after={**pool, "status": status}))
    if world.opened:
        yield OpenHandles(pool=pool, opened=world.opened)


def _creations(world: Pool, planned: PoolPlan) -> list[MakeHandle]:
    made = {*world.made}
    numbers = (number for number in count() if NewHandle().slot(number) not in made)
    return [
        MakeHandle(pool=world.pool, new=new, number=next(numbers) if new.serial is None else new.serial)
        for new in planned.create
    ]


def _has_no_turn(world: Pool) -> bool:
    most = wants_of(world.pool).max_unready
    return most is not None and len(world.made) >= MOST_TURNS * max(most, 1)
