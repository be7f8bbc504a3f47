"""The Kubernetes client for threads, such as boto3's pool.

The requests run on the event loop of the process while the thread waits. Calling it on that loop would deadlock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TypeVar

from domain.identity import Kind
from engine.kube.api import FIELD_MANAGER, KubeApi, Listing
from engine.kube.json import JsonObject

T = TypeVar("T")


class BlockingKube:
    """The methods of `KubeApi` that threads need; each blocks until its answer."""

    def __init__(self, api: KubeApi, loop: asyncio.AbstractEventLoop) -> None:
        self._api = api
        self._loop = loop

    def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        return self._wait(self._api.get(kind, namespace, name))

    def list(
        self, kind: Kind, namespace: str = "", *, label_selector: str = "", field_selector: str = "", limit: int = 500
    ) -> Listing:
        return self._wait(
            self._api.list(kind, namespace, label_selector=label_selector, field_selector=field_selector, limit=limit)
        )

    def create(self, kind: Kind, obj: Mapping[str, object], namespace: str = "") -> JsonObject:
        return self._wait(self._api.create(kind, obj, namespace))

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Mapping[str, object],
        *,
        subresource: str = "",
        resource_version: str = "",
        field_manager: str = FIELD_MANAGER,
    ) -> JsonObject:
        return self._wait(
            self._api.patch(
                kind,
                namespace,
                name,
                patch,
                subresource=subresource,
                resource_version=resource_version,
                field_manager=field_manager,
            )
        )

    def replace(
        self, kind: Kind, namespace: str, name: str, obj: Mapping[str, object], *, subresource: str = ""
    ) -> JsonObject:
        return self._wait(self._api.replace(kind, namespace, name, obj, subresource=subresource))

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str = "", resource_version: str = "") -> None:
        self._wait(self._api.delete(kind, namespace, name, uid=uid, resource_version=resource_version))

    def _wait(self, request: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(request, self._loop).result()
