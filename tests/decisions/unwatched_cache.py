"""A worker's cache of the claims area without a watch: it holds the objects that a test puts into it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from activities.claims.binder_queue import BinderQueue
from activities.claims.cache import ClaimCache
from domain.identity import Key
from engine.kube import KubeApi
from engine.kube.informer_cache import Mirror, Store
from engine.kube.reflector import Followed
from engine.settings import Settings

# Short, for the pauses of the process before it wakes a lifecycle.
MOMENT = 0.05


class Mirrors:
    """Mirrors that hold only the objects that a test puts into them."""

    def follow(self, followed: Followed, indexes: Any = None) -> Mirror:
        mirror = Mirror(cast(KubeApi, None), followed)
        for name, function in (indexes or {}).items():
            mirror.add_index(name, function)
        return mirror


def unwatched_cache(woken: list[Key], api: object = None) -> ClaimCache:
    """A worker's cache, of an API server if one is given; keys of woken lifecycles are added to the list."""

    async def wake(key: Key) -> None:
        woken.append(key)

    return ClaimCache(cast(KubeApi, api), cast(Store, Mirrors()), Settings(), wake)


def unwatched_queue(woken: list[Key], api: object = None) -> BinderQueue:
    """The binder's work over such a cache."""
    return BinderQueue(unwatched_cache(woken, api))


async def a_moment() -> None:
    """Long enough for what waits a moment."""
    await asyncio.sleep(3 * MOMENT)
