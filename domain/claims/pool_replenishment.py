"""How many handles a pool creates, and which it deletes.

A pool keeps `minAvailable` unclaimed handles; `maxUnready` limits unready ones. Every new handle is unready at first.
If a replacement of an unhealthy handle is unhealthy, too, it is deleted only when the interval `pace` has passed since
the last such deletion; this limits creations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import JsonValue

from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.domain_names import DomainNames
from domain.claims.durations import whole_seconds
from domain.claims.ignore_label import is_left_alone
from domain.claims.json_objects import JsonObject, flag_at, is_deleting, number_at, object_at, paused, present, text_at
from domain.claims.pool_scaling_progress import NewHandle, Scaling, advanced, given_back, still_lacking, with_created
from domain.claims.references import holder_of
from domain.claims.timestamps import born
from domain.decision import earliest
from domain.model import Model

# From this many free handles on, passes are paced: the status of two hundred handles has 15 KB, which all watchers
# receive.
MANY = 100
REST_PER_HANDLE = timedelta(milliseconds=5)
LONGEST_REST = timedelta(seconds=2)


class PoolHandle(Model):
    """A free handle. Health and readiness are None if unknown. `scaling` names the scaling that created it. A `paused`
    handle counts, but is not deleted.
    """

    name: str
    created: datetime
    healthy: bool | None = None
    ready: bool | None = None
    scaling: str = ""
    paused: bool = False


class Wants(Model):
    min_available: int = 0
    max_unready: int | None = None
    delete_unhealthy: bool = False


class PoolPlan(Model):
    delete: tuple[str, ...] = ()
    create: tuple[NewHandle, ...] = ()
    giving_back: tuple[Scaling, ...] = ()  # statuses to write before deleting the handles in `delete`
    scalings: tuple[Scaling, ...] = ()  # statuses to write after the handles in `create`
    begins_at: datetime | None = None  # when the next scaling begins
    gives_up_at: datetime | None = None  # when the unhealthy handles spared now are deleted


def plan(
    wants: Wants,
    handles: Sequence[PoolHandle],
    scalings: Sequence[Scaling],
    now: datetime,
    *,
    gave_up: datetime | None = None,
    pace: timedelta = MANAGE_POOLS_INTERVAL,
    made: Collection[str] = (),
) -> PoolPlan:
    """`handles` are the pool's free handles that are not being deleted.

    `gave_up` is when unhealthy handles were last deleted: newer handles are spared until `pace` has passed. `made` has
    the slots (`NewHandle.slot`) of the handles that this pass has created.
    """
    unhealthy = _unhealthy(wants, handles)
    at_once = gave_up is None or now >= gave_up + pace
    given_up = tuple(handle for handle in unhealthy if at_once or _older(handle, gave_up))
    names = {handle.name: handle.scaling for handle in given_up}
    remaining = tuple(handle for handle in handles if handle.name not in names)
    made = frozenset(made)
    there = {handle.name for handle in handles}
    in_order = sorted(
        (given_back(advanced(each, made), there, names) for each in scalings), key=lambda s: (s.at, s.name)
    )
    create = _creations(wants, remaining, in_order, now, made)
    before = {scaling.name: scaling for scaling in scalings}
    after = (with_created(scaling, create, now) for scaling in in_order)
    return PoolPlan(
        delete=tuple(handle.name for handle in given_up),
        create=create,
        giving_back=tuple(s for s in in_order if s.given_back != before[s.name].given_back),
        scalings=tuple(scaling for scaling in after if scaling != before[scaling.name]),
        begins_at=earliest([scaling.at for scaling in scalings if scaling.at > now and scaling.made < scaling.count]),
        gives_up_at=gave_up + pace if gave_up is not None and given_up != unhealthy else None,
    )


def pool_status(handles: Iterable[PoolHandle]) -> JsonObject:
    shown = sorted(handles, key=lambda handle: (handle.created, handle.name))
    entries: list[JsonValue] = [
        present(healthy=handle.healthy, name=handle.name, ready=handle.ready) for handle in shown
    ]
    ready = sum(handle.ready is True for handle in shown)
    return {"resourceHandles": entries, "resourceHandleCount": {"available": len(entries), "ready": ready}}


def rest(handles: int) -> timedelta:
    """The least time between passes over a pool with this many free handles.

    Each change of a handle requests a pass, which writes all handles into the status. A single change is not delayed.
    """
    return min(LONGEST_REST, handles * REST_PER_HANDLE) if handles >= MANY else timedelta(0)


def wants_of(pool: JsonObject) -> Wants:
    spec = object_at(pool, "spec")
    return Wants(
        min_available=number_at(spec, "minAvailable") or 0,
        max_unready=number_at(spec, "maxUnready"),
        delete_unhealthy=spec.get("deleteUnhealthyResourceHandles") is True,
    )


def pool_handle(names: DomainNames, handle: JsonObject, pool: JsonObject) -> PoolHandle | None:
    """The handle as the pool counts it; None if it is another pool's, bound, being deleted or ignored."""
    if not _is_of(pool, handle) or holder_of(handle) or is_deleting(handle) or is_left_alone(names, handle):
        return None
    return PoolHandle(
        name=text_at(handle, "metadata", "name"),
        created=born(handle),
        healthy=flag_at(handle, "status", "healthy"),
        ready=flag_at(handle, "status", "ready"),
        scaling=_scaling_of(names, handle),
        paused=paused(handle),
    )


def made_before(names: DomainNames, handle: JsonObject, pool: JsonObject, scaling: str) -> bool:
    """Whether an earlier attempt made this handle for the pool.

    `scaling` names the ResourcePoolScaling that requests the handle, if any.
    """
    # A scaling counts its handles even if they are bound meanwhile. Any other handle counts only if it is free.
    of_scaling = bool(scaling) and _is_of(pool, handle) and _scaling_of(names, handle) == scaling
    return of_scaling or pool_handle(names, handle, pool) is not None


def _is_of(pool: JsonObject, handle: JsonObject) -> bool:
    owner = object_at(handle, "spec", "resourcePool")
    return all(text_at(owner, field) == text_at(pool, "metadata", field) for field in ("name", "namespace"))


def _scaling_of(names: DomainNames, handle: JsonObject) -> str:
    return text_at(handle, "metadata", "labels", names.pool_scaling_name_label)


def _unhealthy(wants: Wants, handles: Iterable[PoolHandle]) -> tuple[PoolHandle, ...]:
    return tuple(h for h in handles if wants.delete_unhealthy and h.healthy is False and not h.paused)


def _older(handle: PoolHandle, moment: datetime | None) -> bool:
    return moment is not None and handle.created < whole_seconds(moment)


def _creations(
    wants: Wants, remaining: Sequence[PoolHandle], scalings: Iterable[Scaling], now: datetime, made: Collection[str]
) -> tuple[NewHandle, ...]:
    wanted = [NewHandle()] * max(wants.min_available - len(remaining), 0)
    for scaling in scalings:
        if scaling.at <= now:
            wanted.extend(new for new in still_lacking(scaling) if new.slot(0) not in made)
    if wants.max_unready is None:
        return tuple(wanted)
    unready = sum(handle.ready is not True for handle in remaining)
    return tuple(wanted[: max(wants.max_unready - unready, 0)])
