"""A ResourcePoolScaling adds `count` handles to its pool once, at `spec.at`, after the pool's minimum is met.

    waiting --at--> scaling --count reached--> done --one of its unhealthy handles is deleted--> scaling

Its status counts creations, because handles may be claimed and deleted. For crash safety, each handle's name derives
from a serial number (`status.serials` is how many were used), and a handle is listed in `status.givenBack` before it is
deleted, so that its deletion counts once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from itertools import count

from pydantic import JsonValue

from domain.claims.durations import UnreadableMoment, parse_moment
from domain.claims.json_objects import JsonObject, is_deleting, number_at, objects_at, text_at, value_at, with_metadata
from domain.claims.resources.shared import ScalingState
from domain.claims.timestamps import born
from domain.model import Model


class Scaling(Model):
    name: str
    uid: str = ""
    count: int = 0
    at: datetime
    made: int = 0
    serials: int = 0
    given_back: tuple[str, ...] = ()
    state: str = ""


class NewHandle(Model):
    scaling: str = ""
    scaling_uid: str = ""
    serial: int | None = None

    def slot(self, number: int) -> str:
        return f"create handle {number}" if self.serial is None else f"create handle {self.serial} of {self.scaling}"


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
    made = number_at(scaling, "status", "count") or 0
    return Scaling(
        name=text_at(scaling, "metadata", "name"),
        uid=text_at(scaling, "metadata", "uid"),
        count=number_at(scaling, "spec", "count") or 0,
        at=at,
        made=made,
        serials=max(number_at(scaling, "status", "serials") or 0, made),
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


def given_back(scaling: Scaling, there: Collection[str], given_up: Mapping[str, str]) -> Scaling:
    """Lower the scaling's count of creations by the number of its handles in `given_up`, so that they are replaced.

    `given_up` maps the unhealthy handles to delete to their scalings. `there` has the names of the pool's handles.
    """
    new = tuple(name for name, of in given_up.items() if of == scaling.name and name not in scaling.given_back)
    if not new:
        return scaling
    before = tuple(name for name in scaling.given_back if name in there)
    made = max(scaling.made - len(new), 0)
    return scaling.model_copy(update={"made": made, "given_back": before + new, "state": ScalingState.SCALING})


def still_lacking(scaling: Scaling) -> Iterable[NewHandle]:
    serials = range(scaling.serials, scaling.serials + scaling.count - scaling.made)
    return (_numbered(scaling, serial) for serial in serials)


def advanced(scaling: Scaling, made: Collection[str]) -> Scaling:
    new = next(each for each in count() if _numbered(scaling, scaling.serials + each).slot(0) not in made)
    return scaling.model_copy(update={"made": scaling.made + new, "serials": scaling.serials + new}) if new else scaling


def _numbered(scaling: Scaling, serial: int) -> NewHandle:
    return NewHandle(scaling=scaling.name, scaling_uid=scaling.uid, serial=serial)


def with_created(scaling: Scaling, create: Iterable[NewHandle], now: datetime) -> Scaling:
    new = sum(handle.scaling == scaling.name for handle in create)
    made = scaling.made + new
    waits = ScalingState.WAITING if scaling.at > now else ScalingState.SCALING
    state = ScalingState.DONE if made >= scaling.count else waits
    return scaling.model_copy(update={"made": made, "serials": scaling.serials + new, "state": state})


def owned_scaling(scaling: JsonObject, pool: JsonObject) -> JsonObject:
    """Kubernetes deletes the scaling with its owner, the pool."""
    owners, uid = objects_at(scaling, "metadata", "ownerReferences"), text_at(pool, "metadata", "uid")
    if any(each.get("uid") == uid for each in owners):
        return scaling
    owner = {
        "apiVersion": pool["apiVersion"],
        "kind": pool["kind"],
        "name": text_at(pool, "metadata", "name"),
        "uid": uid,
    }
    return with_metadata(scaling, ownerReferences=[*owners, owner])
