"""A workload cluster in memory, whose Nodes are cordoned and drained, and which may refuse evictions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from memory_kube import MemoryKube

from activities.instances.disruption_budget import Disruptions
from activities.instances.node_drain import NodeActivities
from domain.identity import Kind
from engine.errors import ApiError
from engine.kube import KubeApi
from engine.kube.json import JsonObject


class WorkloadCluster(NodeActivities):
    """The management cluster as well."""

    def __init__(self, **refusals: list[ApiError]) -> None:
        self.kube = MemoryKube()
        kube = cast("KubeApi", self)
        super().__init__(kube, Disruptions(kube, "perdure", 1))
        self.refusals = refusals  # of evictions, by the Pod's name; each is used once
        self.refused = asyncio.Event()
        self.asked: list[str] = []  # Pods whose eviction was requested
        self.evicted: list[JsonObject] = []  # the bodies of the evictions that were not refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kube, name)

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        yield cast("KubeApi", self)

    async def create_under(self, kind: Kind, namespace: str, name: str, what: str, body: JsonObject) -> JsonObject:
        self.asked.append(name)
        if self.refusals.get(name):
            self.refused.set()
            raise self.refusals[name].pop(0)
        self.evicted.append(body)
        return await self.kube.delete(kind, namespace, name)
