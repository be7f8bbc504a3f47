"""`perdure wake`: wakes one lifecycle, or many (after a restore, or at the start of a migration)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from temporalio.service import RPCError

from domain.custom_resources import custom_resources
from domain.identity import Key, Kind, objectless
from domain.loadbalancers.services.objects import LOAD_BALANCER_TYPE
from domain.model import Model
from engine import temporal
from engine.errors import Absent, ApiError, Denied
from engine.kube.json import JsonObject, key_of, sequence, text
from engine.settings import Settings
from starters.cli import lifecycle
from starters.cli.object_reference import Target
from starters.cli.output import CommandError, warn
from starters.cli.session import Session, perform, refusal
from workers.registry import areas

# Signal-with-start saturates a small server at about ten concurrent calls.
_AT_ONCE = 10


def kinds_with_objects() -> tuple[Kind, ...]:
    return tuple(model.kind_of for model in custom_resources() if model.kind_of.lifecycle)


def wake_lifecycle(reference: Target, obj: JsonObject) -> None:
    """Wake the object's lifecycle. If this fails, only warn, because the watcher wakes the lifecycle later."""

    async def wake_it(session: Session) -> None:
        await wake_one(session, await lifecycle.key_of_object(session, reference, obj))

    try:
        perform(wake_it)
    except CommandError as error:
        warn(f"warning: {reference}: the change is written, but its lifecycle could not be woken: {error.message}")


async def wake_one(session: Session, key: Key) -> None:
    await temporal.wake(session.temporal, key)


class Woken(Model):
    woken: int
    """Number of woken lifecycles."""
    failed: int
    """Number of failed wakes, and of kinds that could not be listed; each is reported in a warning."""


async def wake_all(session: Session, kinds: Sequence[Kind]) -> Woken:
    """Wake all lifecycles of these kinds. A failed wake does not stop the other wakes.

    If several kinds are given, kinds of areas that are not served are left out, and kinds that the user may not list
    are no failure: a user of one area may lack rights in other areas.
    """
    free = asyncio.Semaphore(_AT_ONCE)

    async def woken(key: Key) -> bool:
        async with free:
            try:
                await temporal.wake(session.temporal, key)
            except (ApiError, RPCError) as error:
                warn(f"warning: {key.path} is not woken: {refusal(error)}")
                return False
        return True

    # A woken lifecycle for which no worker runs would only hang.
    executed = areas() if len(kinds) == 1 else _served(session.settings)
    keys: list[Key] = []
    unlisted = 0
    for kind in kinds:
        if not kind.lifecycle or kind.area not in executed:
            continue
        try:
            keys += await keys_of(session, kind)
        except ApiError as error:
            warn(f"warning: {kind.plural} are not woken: {error.message}")
            unlisted += not isinstance(error, Denied) or len(kinds) == 1
    done = await asyncio.gather(*(woken(key) for key in keys))
    return Woken(woken=sum(done), failed=len(done) - sum(done) + unlisted)


def _served(settings: Settings) -> Sequence[str]:
    from workers.main import served_areas

    try:
        return served_areas(settings)
    except ValueError as error:
        raise CommandError(str(error)) from error


async def keys_of(session: Session, kind: Kind) -> list[Key]:
    if not kind.plural:
        return list(objectless(kind.name, session.settings.cluster, session.settings.claims_domain))
    try:
        listing = await session.cluster_of(kind).list(kind)
    except Absent:
        return []
    return [key_of(kind.name, item, session.settings.cluster) for item in listing.items if concerns(kind, item)]


def concerns(kind: Kind, obj: JsonObject) -> bool:
    """Whether the object has a lifecycle. Most Services have none."""
    if not kind.served:
        return True
    held = kind.finalizer in sequence(obj, "metadata", "finalizers")
    return held or text(obj, "spec", "type") == LOAD_BALANCER_TYPE
