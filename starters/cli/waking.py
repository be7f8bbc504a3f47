"""Wakes by hand: of one lifecycle, or of every one of a kind (after a restore, or to let lifecycles take over)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from domain.custom_resources import custom_resources
from domain.identity import Key, Kind, standing
from domain.loadbalancers.services.objects import LOAD_BALANCER_TYPE
from engine import temporal
from engine.errors import Absent
from engine.kube.json import JsonObject, sequence, text
from starters.cli.session import Session
from workers.roster import areas

# Signal-with-start saturates a small server at about ten at once.
_AT_ONCE = 10


def kinds_with_objects() -> tuple[Kind, ...]:
    """Every kind of custom resources that have lifecycles."""
    return tuple(model.kind_of for model in custom_resources() if model.kind_of.lifecycle)


async def wake_one(session: Session, key: Key) -> None:
    """Wake one lifecycle."""
    await temporal.wake(session.temporal, key)


async def wake_all(session: Session, kinds: Sequence[Kind]) -> int:
    """Wake every lifecycle of the kinds; returns how many. A kind that the cluster does not know has none."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def wake(key: Key) -> None:
        async with free:
            await temporal.wake(session.temporal, key)

    executed = areas()  # a lifecycle that no worker can execute would only hang
    keys = [key for kind in kinds if kind.lifecycle and kind.area in executed for key in await keys_of(session, kind)]
    await asyncio.gather(*(wake(key) for key in keys))
    return len(keys)


async def keys_of(session: Session, kind: Kind) -> list[Key]:
    """The keys of all objects of a kind, or of its lifecycles that stand behind no object."""
    if not kind.plural:
        return list(standing(kind.name, session.settings.cluster))
    try:
        listing = await session.cluster_of(kind).list(kind)
    except Absent:
        return []
    return [
        Key(
            kind=kind.name,
            namespace=text(item, "metadata", "namespace"),
            name=text(item, "metadata", "name"),
            uid=text(item, "metadata", "uid"),
            cluster=session.settings.cluster,
        )
        for item in listing.items
        if concerns(kind, item)
    ]


def concerns(kind: Kind, obj: JsonObject) -> bool:
    """Whether an object may have a lifecycle: most Services of a cluster have none, and want none."""
    if not kind.served:
        return True
    held = kind.finalizer in sequence(obj, "metadata", "finalizers")
    return held or text(obj, "spec", "type") == LOAD_BALANCER_TYPE
