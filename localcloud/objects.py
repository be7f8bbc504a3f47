"""Kubernetes objects, kept up to date by list and watch.

A watch delivers every version of an object, so no short-lived state is missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import aclosing, asynccontextmanager

from domain.identity import Kind
from engine.errors import ApiError
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject, key_of, text

WATCH_AGAIN_SECONDS = 1.0


class Objects:
    def __init__(self, kube: KubeApi, on_change: Callable[[], None] | None = None) -> None:
        self._kube = kube
        self._on_change = on_change
        self._known: dict[str, JsonObject] = {}
        self._listed: set[str] = set()
        self._changed = asyncio.Condition()

    @property
    def by_workflow(self) -> dict[str, JsonObject]:
        return dict(sorted(self._known.items()))

    def of(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        return [
            obj
            for id_, obj in sorted(self._known.items())
            if id_.startswith(f"{kind.name}/") and namespace in ("", text(obj, "metadata", "namespace"))
        ]

    def one(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        prefix = f"{kind.name}/{namespace or '-'}/{name}/"
        return next((obj for id_, obj in self._known.items() if id_.startswith(prefix)), None)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition is true; limit the wait with `asyncio.timeout`."""
        async with self._changed:
            await self._changed.wait_for(condition)

    @asynccontextmanager
    async def followed(self, *kinds: Kind, beside: Iterable[Awaitable[None]] = ()) -> AsyncIterator[None]:
        tasks = [asyncio.ensure_future(work) for work in (*map(self._follow, kinds), *beside)]
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: self._listed.issuperset(kind.name for kind in kinds))
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, kind: Kind) -> None:
        while True:
            try:
                listing = await self._kube.list(kind)
                await self._replace(kind, listing.items)
                async with aclosing(self._kube.watch(kind, resource_version=listing.resource_version)) as events:
                    async for event in events:
                        await self._learn(kind, event.type, event.object)
            except ApiError:  # a starting API server refuses in several ways
                await asyncio.sleep(WATCH_AGAIN_SECONDS)

    async def _replace(self, kind: Kind, items: Iterable[JsonObject]) -> None:
        async with self._changed:
            others = {id_: obj for id_, obj in self._known.items() if not id_.startswith(f"{kind.name}/")}
            self._known = others | {_id(kind, obj): obj for obj in items}
            self._listed.add(kind.name)
            self._announce()

    async def _learn(self, kind: Kind, event: str, obj: JsonObject) -> None:
        if event == "BOOKMARK":
            return
        async with self._changed:
            if event == "DELETED":
                self._known.pop(_id(kind, obj), None)
            else:
                self._known[_id(kind, obj)] = obj
            self._announce()

    def _announce(self) -> None:
        if self._on_change is not None:
            self._on_change()
        self._changed.notify_all()


def _id(kind: Kind, obj: JsonObject) -> str:
    return key_of(kind.name, obj).workflow_id
