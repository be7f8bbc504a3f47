"""What a drain makes of evictions that a workload cluster refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from instance_scenes import KEY
from temporalio.testing import ActivityEnvironment

from activities.instances import nodes
from activities.instances.nodes import NodeActivities
from domain.identity import Kind
from domain.instances.actions import EmptyNode
from engine.errors import ApiError, Denied, Invalid, Throttled, Unavailable
from engine.kube import KubeApi
from engine.kube.api import Listing
from engine.kube.json import JsonObject
from engine.settings import Settings

NODE = EmptyNode(key=KEY.lifecycle, namespace="c", cluster="c1", node="node", cause="c")


class Workload(NodeActivities):
    """A workload cluster of some Pods, whose evictions are refused by turns."""

    def __init__(self, **refusals: list[ApiError]) -> None:
        super().__init__(cast("KubeApi", self), Settings())
        self.refusals = refusals
        self.pods = list(refusals)
        self.asked: list[str] = []
        self.list_fails = False

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        yield cast("KubeApi", self)

    async def list(self, kind: Kind, **how: Any) -> Listing:
        if self.list_fails:
            raise Unavailable("no answer")
        found: Any = [{"metadata": {"name": name, "namespace": "n"}} for name in self.pods]
        return Listing(items=found, resource_version="1")

    async def create_under(self, kind: Kind, namespace: str, name: str, what: str, body: JsonObject) -> JsonObject:
        self.asked.append(name)
        if self.refusals[name]:
            raise self.refusals[name].pop(0)
        self.pods.remove(name)
        return {}


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "EVICT_AGAIN", 0.0)


async def test_a_pod_that_may_not_be_evicted_keeps_no_other_from_it_and_is_asked_for_again() -> None:
    many = Workload(a=[Denied("a webhook says no"), Invalid("two budgets")], b=[Throttled("a budget")], c=[])
    await ActivityEnvironment().run(many.drain, NODE)
    assert many.asked == ["a", "b", "c", "a", "b", "a"]


async def test_a_drain_ends_where_the_pods_cannot_be_listed() -> None:
    many = Workload(a=[Denied("a webhook says no")])
    many.list_fails = True
    with pytest.raises(Unavailable):
        await ActivityEnvironment().run(many.drain, NODE)
