"""How many handles a pool creates, and which it deletes.

A pool keeps `minAvailable` unclaimed handles; `maxUnready` limits unready ones. Every new handle is unready at first.
Pools never scale down. Unhealthy replacements are deleted at most as often as Poolboy polled, which limits creations.

A ResourcePoolScaling adds `count` handles once, at its time, after the minimum is met:

    waiting --at--> scaling --count reached--> done        (deleting an unhealthy handle reopens it for one more)

Its status counts created handles, because these may be claimed and deleted. To survive crashes, each handle's
name derives from a serial number (`status.serials` is how many were used), and a handle is listed in `status.givenBack`
before it is deleted, so that its deletion counts once. Writes come in this order: statuses that give slots back,
deletions, creations, other statuses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import count

from pydantic import JsonValue

from domain.claims.constants import MANAGE_POOLS_INTERVAL
from domain.claims.domain_names import DomainNames
from domain.claims.durations import UnreadableMoment, parse_moment, whole_seconds
from domain.claims.json_objects import JsonObject, flag_at, object_at, paused, present, text_at, value_at
from domain.claims.marks import is_deleting
from domain.claims.resources.shared import ScalingState
from domain.claims.timestamps import born
from domain.decision import earliest
from domain.model import Model

# From this many free handles on, passes are paced: a status of two hundred has 15 KB, which all watchers receive.
MANY = 100
REST_PER_HANDLE = timedelta(milliseconds=5)
LONGEST_REST = timedelta(seconds=2)


class PoolHandle(Model):
    """A free handle of a pool. Health and readiness are None if unknown. `scaling` names the scaling that created the
    handle. A `paused` handle counts, but is not deleted.
    """

    name: str
    created: datetime
    healthy: bool | None = None
    ready: bool | None = None
    scaling: str = ""
    paused: bool = False


class Scaling(Model):
    name: str
    uid: str = ""
    count: int = 0
    at: datetime
    made: int = 0
    serials: int = 0
    given_back: tuple[str, ...] = ()
    state: str = ""


class Wants(Model):
    min_available: int = 0
    max_unready: int | None = None
    delete_unhealthy: bool = False


class NewHandle(Model):
    scaling: str = ""
    scaling_uid: str = ""
    serial: int | None = None

    def slot(self, number: int) -> str:
        return f"create handle {number}" if self.serial is None else f"create handle {self.serial} of {self.scaling}"


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
    """What to create and to delete. `handles` are the pool's free handles that are not being deleted.

    `gave_up` is when unhealthy handles were last deleted: newer handles are spared until `pace` has passed. `made` are
    the slots of new handles that no status counts yet.
    """
    unhealthy = _unhealthy(wants, handles)
    at_once = gave_up is None or now >= gave_up + pace
    given_up = tuple(handle for handle in unhealthy if at_once or _older(handle, gave_up))
    names = {handle.name for handle in given_up}
    remaining = tuple(handle for handle in handles if handle.name not in names)
    made = frozenset(made)
    in_order = sorted((_given_back(_advanced(each, made), handles, given_up) for each in scalings), key=_turn)
    create = _creations(wants, remaining, in_order, now, made)
    before = {scaling.name: scaling for scaling in scalings}
    after = (_shown(scaling, create, now) for scaling in in_order)
    return PoolPlan(
        delete=tuple(handle.name for handle in given_up),
        create=create,
        giving_back=tuple(s for s in in_order if s.given_back != before[s.name].given_back),
        scalings=tuple(scaling for scaling in after if scaling != before[scaling.name]),
        begins_at=earliest([scaling.at for scaling in scalings if scaling.at > now and scaling.made < scaling.count]),
        gives_up_at=gave_up + pace if gave_up is not None and given_up != unhealthy else None,
    )


def pool_status(remaining: Iterable[PoolHandle], made: Iterable[str]) -> JsonObject:
    shown = sorted(remaining, key=lambda handle: (handle.created, handle.name))
    entries: list[JsonValue] = [
        present(healthy=handle.healthy, name=handle.name, ready=handle.ready) for handle in shown
    ]
    new: list[JsonValue] = [{"name": name} for name in made]
    ready = sum(handle.ready is True for handle in shown)
    return {
        "resourceHandles": entries + new,
        "resourceHandleCount": {"available": len(entries) + len(new), "ready": ready},
    }


def rest(handles: int) -> timedelta:
    """The least time between passes over a pool with this many free handles.

    Each change of a handle requests a pass, which writes all handles into the status. A single change is not delayed.
    """
    return min(LONGEST_REST, handles * REST_PER_HANDLE) if handles >= MANY else timedelta(0)


def wants_of(pool: JsonObject) -> Wants:
    spec = object_at(pool, "spec")
    return Wants(
        min_available=_number(spec.get("minAvailable")) or 0,
        max_unready=_number(spec.get("maxUnready")),
        delete_unhealthy=spec.get("deleteUnhealthyResourceHandles") is True,
    )


def pool_handle(names: DomainNames, handle: JsonObject, pool: JsonObject) -> PoolHandle | None:
    """The handle as the pool counts it; None if it is of another pool, bound, being deleted or ignored."""
    owner = object_at(handle, "spec", "resourcePool")
    ours = all(text_at(owner, field) == text_at(pool, "metadata", field) for field in ("name", "namespace"))
    labels = object_at(handle, "metadata", "labels")
    taken = value_at(handle, "spec", "resourceClaim")
    if not owner or not ours or taken or is_deleting(handle) or names.ignore_label in labels:
        return None
    return PoolHandle(
        name=text_at(handle, "metadata", "name"),
        created=born(handle),
        healthy=flag_at(handle, "status", "healthy"),
        ready=flag_at(handle, "status", "ready"),
        scaling=text_at(labels, names.pool_scaling_name_label),
        paused=paused(handle),
    )


def scaling_of(scaling: JsonObject, pool: JsonObject) -> Scaling | None:
    name = text_at(scaling, "spec", "resourcePool", "name")
    here = text_at(scaling, "metadata", "namespace") == text_at(pool, "metadata", "namespace")
    if name != text_at(pool, "metadata", "name") or not here or is_deleting(scaling):
        return None
    requested = text_at(scaling, "spec", "at")
    try:
        at = parse_moment(requested) if requested else born(scaling)
    except UnreadableMoment:
        return None
    given_back = value_at(scaling, "status", "givenBack")
    made = _number(value_at(scaling, "status", "count")) or 0
    return Scaling(
        name=text_at(scaling, "metadata", "name"),
        uid=text_at(scaling, "metadata", "uid"),
        count=_number(value_at(scaling, "spec", "count")) or 0,
        at=at,
        made=made,
        serials=max(_number(value_at(scaling, "status", "serials")) or 0, made),
        given_back=tuple(str(one) for one in given_back) if isinstance(given_back, list) else (),
        state=text_at(scaling, "status", "state"),
    )


def scaling_status(scaling: Scaling) -> JsonObject:
    given_back: list[JsonValue] = [*scaling.given_back]
    return {
        "count": scaling.made,
        "state": scaling.state,
        "serials": scaling.serials,
        **({"givenBack": given_back} if given_back else {}),
    }


def _unhealthy(wants: Wants, handles: Iterable[PoolHandle]) -> tuple[PoolHandle, ...]:
    return tuple(h for h in handles if wants.delete_unhealthy and h.healthy is False and not h.paused)


def _older(handle: PoolHandle, moment: datetime | None) -> bool:
    return moment is not None and handle.created < whole_seconds(moment)


def _given_back(scaling: Scaling, handles: Iterable[PoolHandle], given_up: Iterable[PoolHandle]) -> Scaling:
    new = tuple(h.name for h in given_up if h.scaling == scaling.name and h.name not in scaling.given_back)
    if not new:
        return scaling
    there = {handle.name for handle in handles}
    before = tuple(name for name in scaling.given_back if name in there)
    made = max(scaling.made - len(new), 0)
    return scaling.model_copy(update={"made": made, "given_back": before + new, "state": ScalingState.SCALING})


def _creations(
    wants: Wants, remaining: Sequence[PoolHandle], scalings: Iterable[Scaling], now: datetime, made: Collection[str]
) -> tuple[NewHandle, ...]:
    wanted = [NewHandle()] * max(wants.min_available - len(remaining), 0)
    for scaling in scalings:
        if scaling.at <= now:
            wanted.extend(new for new in _still_lacking(scaling) if new.slot(0) not in made)
    if wants.max_unready is None:
        return tuple(wanted)
    unready = sum(handle.ready is not True for handle in remaining)
    return tuple(wanted[: max(wants.max_unready - unready, 0)])


def _still_lacking(scaling: Scaling) -> Iterable[NewHandle]:
    for serial in range(scaling.serials, scaling.serials + scaling.count - scaling.made):
        yield _numbered(scaling, serial)


def _advanced(scaling: Scaling, made: Collection[str]) -> Scaling:
    new = next(each for each in count() if _numbered(scaling, scaling.serials + each).slot(0) not in made)
    return scaling.model_copy(update={"made": scaling.made + new, "serials": scaling.serials + new}) if new else scaling


def _numbered(scaling: Scaling, serial: int) -> NewHandle:
    return NewHandle(scaling=scaling.name, scaling_uid=scaling.uid, serial=serial)


def _shown(scaling: Scaling, create: Iterable[NewHandle], now: datetime) -> Scaling:
    new = sum(handle.scaling == scaling.name for handle in create)
    made = scaling.made + new
    waits = ScalingState.WAITING if scaling.at > now else ScalingState.SCALING
    state = ScalingState.DONE if made >= scaling.count else waits
    return scaling.model_copy(update={"made": made, "serials": scaling.serials + new, "state": state})


def _turn(scaling: Scaling) -> tuple[datetime, str]:
    return (scaling.at, scaling.name)


def _number(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
