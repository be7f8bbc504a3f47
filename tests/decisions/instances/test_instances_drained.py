"""What a drain makes of evictions that a workload cluster refuses, and whose cordons it takes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest
from instance_scenes import KEY
from memory_kube import MemoryKube
from prometheus_client import REGISTRY
from temporalio.testing import ActivityEnvironment
from workload_cluster import WorkloadCluster

from activities import attempt
from activities.instances import node_drain
from activities.instances.disruption_budget import Disruptions
from activities.instances.node_drain import NodeActivities
from domain.built_in_kinds import NODE as NODES
from domain.built_in_kinds import POD
from domain.identity import Key, Kind
from domain.instances import AWS_MACHINE_POOL
from domain.instances.actions import CordonNode, Emptied, EmptyNode, FindNode, ReleaseNode, Taking
from domain.instances.constants import CORDONED_ANNOTATION
from domain.instances.observed import KnownNode
from domain.resource import timestamp
from engine import clock
from engine.errors import ApiError, Denied, Invalid, Throttled, Unavailable
from engine.kube import KubeApi
from engine.kube.api import Listing, WatchEvent
from engine.kube.json import JsonObject, mapping

WHICH: Any = {"key": KEY.lifecycle, "namespace": "c", "cluster": "c1", "node": "node", "cause": "c"}
NODE = EmptyNode(**WHICH)
BEGAN = ActivityEnvironment().info.started_time
ABOUT = Key(kind="Node", namespace="", name="node", uid="node")
RUNS_ON = {"providerID": f"aws:///eu-central-1a/{KEY.lifecycle.name}"}


class Workload(WorkloadCluster):
    """A Node with some Pods, whose evictions are refused by turns; lists and watches may be refused, too."""

    def __init__(self, **refusals: list[ApiError]) -> None:
        super().__init__(**refusals)
        self.list_refused: list[ApiError] = []
        self.watch_refused: list[ApiError] = []

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        await self.kube.create(NODES, {"metadata": {"name": "node"}, "spec": RUNS_ON})
        for name in self.refusals:
            await self.kube.create(POD, {"metadata": {"name": name}}, "n")
        async with super()._workload(namespace, cluster) as api:
            yield api

    async def pages(self, kind: Kind, namespace: str = "", **how: Any) -> AsyncIterator[Listing]:
        if self.list_refused:
            raise self.list_refused.pop(0)
        async for page in self.kube.pages(kind, namespace, **how):
            yield page

    async def watch(self, kind: Kind, namespace: str = "", **how: Any) -> AsyncIterator[WatchEvent]:
        if self.watch_refused:
            raise self.watch_refused[0]
        async for event in self.kube.watch(kind, namespace, **how):
            yield event


@pytest.fixture(autouse=True)
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_drain, "EVICT_AGAIN", 0.02)


async def test_a_pod_that_may_not_be_evicted_keeps_no_other_from_it_and_is_asked_for_again() -> None:
    many = Workload(a=[Denied("a webhook says no"), Invalid("two budgets")], b=[Throttled("a budget")], c=[])
    await ActivityEnvironment().run(many.drain, NODE)
    assert many.asked == ["a", "b", "c", "a", "b", "a"]


@pytest.mark.parametrize("refusal", [Unavailable("no answer"), Denied("Pods may not be listed")])
async def test_a_drain_fails_where_the_pods_cannot_be_listed(refusal: ApiError) -> None:
    many = Workload(a=[])
    many.list_refused = [refusal, refusal]
    with pytest.raises(type(refusal)):
        await ActivityEnvironment().run(many.drain, NODE)
    assert many.asked == []


async def test_a_drain_fails_where_the_pods_may_not_be_watched() -> None:
    """Its end would not be noticed."""
    many = Workload(a=[Throttled("a budget")])
    many.watch_refused = [Denied("Pods may not be watched")]
    with pytest.raises(Denied, match="may not be watched"):
        await ActivityEnvironment().run(many.drain, NODE)


async def test_a_drain_ends_as_soon_as_the_last_pod_has_gone_or_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_drain, "EVICT_AGAIN", 3600.0)
    many = Workload(a=[], b=[])
    done = await asyncio.wait_for(ActivityEnvironment().run(many.drain, NODE), 5)
    assert (many.asked, done.delayed) == (["a", "b"], None)

    stuck = Workload(a=[Throttled("a budget")])
    draining = asyncio.create_task(ActivityEnvironment().run(stuck.drain, NODE))
    await asyncio.wait_for(stuck.refused.wait(), 5)
    await stuck.kube.delete(NODES, "", "node")
    await asyncio.wait_for(draining, 5)
    assert await stuck.kube.get(POD, "n", "a"), "it is no Pod of this instance any more"


async def test_a_drain_whose_time_is_over_ends_to_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_drain, "EVICT_AGAIN", 3600.0)
    stuck = Workload(a=[Throttled("a budget")])
    soon = ActivityEnvironment().info.started_time + timedelta(seconds=0.1)

    async def drained() -> None:
        clock.begin()
        await stuck.drain(NODE.model_copy(update={"until": soon}))

    await asyncio.wait_for(ActivityEnvironment().run(drained), 5)
    assert stuck.asked == ["a"]
    assert await stuck.kube.get(POD, "n", "a")


@pytest.mark.parametrize(
    ("ready", "late", "waits"),
    [("Unknown", 301, False), ("Unknown", 200, True), ("False", 301, True), ("True", 301, True)],
)
async def test_a_pod_that_cannot_end_on_an_unreachable_node_is_waited_for_five_minutes(
    ready: str, late: int, waits: bool
) -> None:
    class Unreachable(Workload):
        @asynccontextmanager
        async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
            status = {"conditions": [{"type": "Ready", "status": ready}]}
            await self.kube.create(NODES, {"metadata": {"name": "node"}, "spec": RUNS_ON, "status": status})
            ends = timestamp(BEGAN - timedelta(seconds=late))
            await self.kube.create(
                POD, {"metadata": {"name": "a", "deletionTimestamp": ends, "finalizers": ["x"]}}, "n"
            )
            yield cast("KubeApi", self)

    drain = NODE.model_copy(update={"until": BEGAN + timedelta(seconds=20)})
    done: Emptied = await ActivityEnvironment().run(Unreachable().drain, drain.model_copy(update={"about": (ABOUT,)}))
    assert (done.delayed is not None) == waits


async def test_a_drain_ends_if_a_person_uncordons_the_node() -> None:
    """Its Pods would be evicted again and again, as they may be scheduled on it."""
    many = Workload(a=[Throttled("a budget")] * 100)
    draining = asyncio.create_task(ActivityEnvironment().run(many.drain, NODE.model_copy(update={"about": ()})))
    await many.refused.wait()
    marks: JsonObject = {"metadata": {"annotations": {CORDONED_ANNOTATION: "c"}}, "spec": {"unschedulable": True}}
    await many.kube.patch(NODES, "", "node", marks)
    await asyncio.sleep(0.1)
    assert not draining.done()
    await many.kube.patch(NODES, "", "node", {"spec": {"unschedulable": None}})
    done: Emptied = await asyncio.wait_for(draining, 10)
    assert (done.delayed, len((await many.kube.list(POD)).items)) == (None, 1)


class Nodes(NodeActivities):
    """A workload cluster of one Node."""

    def __init__(self) -> None:
        self.kube = MemoryKube()
        kube = cast("KubeApi", self.kube)
        self.disruptions = Disruptions(kube, "perdure", 1)
        super().__init__(kube, self.disruptions)

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        yield cast("KubeApi", self.kube)

    async def cordoned(self) -> bool:
        return bool(mapping(await self.kube.get(NODES, "", "node"), "spec").get("unschedulable"))


def counted(reaction: str) -> float:
    labels = {"reaction": reaction, "cause": "", "outcome": "done"}
    return REGISTRY.get_sample_value("perdure_instances_reactions_total", labels) or 0


@pytest.mark.parametrize("taken", [False, True])
async def test_of_a_pool_without_machines_one_node_is_cordoned_at_a_time(*, taken: bool) -> None:
    """Scheduled events may name all its instances; those that AWS takes right now do not wait."""
    nodes, names = Nodes(), ("i-a", "i-b", "i-c")
    spec = {"providerIDList": [f"aws:///eu-central-1a/{each}" for each in names]}
    await nodes.kube.create(AWS_MACHINE_POOL, {"metadata": {"name": "mp"}, "spec": spec}, "c")
    for each in names:
        status = {"conditions": [{"type": "Ready", "status": "True"}]}
        found = {"metadata": {"name": each}, "spec": {"providerID": f"aws:///eu-central-1a/{each}"}, "status": status}
        await nodes.kube.create(NODES, found, "")

    async def waits(name: str) -> str:
        key = KEY.lifecycle.model_copy(update={"name": name})
        which = WHICH | {"key": key, "node": name, "pool": "mp", "taken": taken}
        done: Taking = await ActivityEnvironment().run(nodes.cordon, CordonNode(**which))
        return done.turn.why.partition(";")[0]

    assert [await waits(each) for each in names] == [
        "",
        *[("pool c/mp: Node i-a is cordoned or drained", "")[taken]] * 2,
    ]
    if not taken:
        await ActivityEnvironment().run(
            nodes.uncordon,
            ReleaseNode(**WHICH | {"key": KEY.lifecycle.model_copy(update={"name": "i-a"}), "node": "i-a"}),
        )
        assert [await waits(each) for each in names[1:]] == ["", "pool c/mp: Node i-b is cordoned or drained"]


async def test_a_reaction_whose_answer_was_lost_is_counted_once() -> None:
    nodes = Nodes()
    await nodes.kube.create(NODES, {"metadata": {"name": "node"}, "spec": RUNS_ON}, "")
    before = {each: counted(each) for each in ("cordon", "uncordon")}
    for _ in range(2):
        await ActivityEnvironment().run(nodes.cordon, CordonNode(**WHICH))
    for _ in range(2):
        await ActivityEnvironment().run(nodes.uncordon, ReleaseNode(**WHICH))
    assert {each: counted(each) - before[each] for each in before} == {"cordon": 1, "uncordon": 1}


@pytest.mark.parametrize("left", [True, False])
async def test_a_drain_that_is_made_again_is_counted_by_the_attempt_that_empties_the_node(*, left: bool) -> None:
    many, before = Workload(**({"a": []} if left else {})), counted("drain")
    again = ActivityEnvironment()
    again.info = replace(again.info, attempt=2)

    async def begun() -> Any:
        attempt.begin(NODE)
        return await many.drain(NODE)

    await again.run(begun)
    assert counted("drain") - before == left


@pytest.mark.parametrize("by_a_person", [True, False])
async def test_only_what_was_cordoned_here_is_uncordoned(by_a_person: bool) -> None:
    nodes = Nodes()
    spec = {**RUNS_ON, **({"unschedulable": True} if by_a_person else {})}
    await nodes.kube.create(NODES, {"metadata": {"name": "node"}, "spec": spec}, "")
    for _ in range(2):  # an attempt whose answer was lost is made again
        await ActivityEnvironment().run(nodes.cordon, CordonNode(**WHICH))
    assert await nodes.cordoned()
    for _ in range(2):
        await ActivityEnvironment().run(nodes.uncordon, ReleaseNode(**WHICH))
    assert await nodes.cordoned() == by_a_person
    assert not mapping(await nodes.kube.get(NODES, "", "node"), "metadata", "annotations")


async def test_the_node_of_another_instance_is_neither_cordoned_nor_uncordoned() -> None:
    """The Node's name may come from an annotation that anybody who edits the AWSMachine can write."""
    nodes = Nodes()
    spec = {"providerID": "aws:///eu-central-1a/i-00000000000000001"}
    marks = {CORDONED_ANNOTATION: "another cause"}
    await nodes.kube.create(NODES, {"metadata": {"name": "node", "annotations": marks}, "spec": spec}, "")
    await ActivityEnvironment().run(nodes.cordon, CordonNode(**WHICH))
    assert not await nodes.cordoned()
    await nodes.kube.patch(NODES, "", "node", {"spec": {"unschedulable": True}})
    await ActivityEnvironment().run(nodes.uncordon, ReleaseNode(**WHICH))
    assert await nodes.cordoned()


async def test_an_unused_turn_is_released_although_the_workload_cluster_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes, ended = Nodes(), list[str]()

    async def end(instance: str) -> None:
        ended.append(instance)

    async def get(kind: Kind, namespace: str, name: str) -> JsonObject:
        raise Unavailable("no answer")

    monkeypatch.setattr(nodes.disruptions, "end", end)
    monkeypatch.setattr(nodes.kube, "get", get)
    for unused in (False, True):
        with pytest.raises(Unavailable):
            await ActivityEnvironment().run(nodes.uncordon, ReleaseNode(**WHICH, unused=unused))
        assert ended == [KEY.lifecycle.name] * unused, "a cordoned Node counts until it is used again"
    nowhere = ReleaseNode(**{**WHICH, "node": ""}, unused=True)
    await ActivityEnvironment().run(nodes.uncordon, nowhere)


async def test_a_node_that_is_gone_needs_neither() -> None:
    nodes = Nodes()
    await ActivityEnvironment().run(nodes.cordon, CordonNode(**WHICH))
    await ActivityEnvironment().run(nodes.uncordon, ReleaseNode(**WHICH))


# --- how a Node is found ---


class Fleet(Nodes):
    """A workload cluster of two Nodes, which counts how often it lists them."""

    def __init__(self) -> None:
        super().__init__()
        self.lists = 0
        self.fails = False

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        yield cast("KubeApi", self)

    async def get(self, kind: Kind, namespace: str, name: str) -> JsonObject:
        return await self.kube.get(kind, namespace, name)

    async def pages(self, kind: Kind) -> AsyncIterator[Listing]:
        self.lists += 1
        listed = await self.kube.list(kind)
        await asyncio.sleep(0.01)
        if self.fails:
            raise Unavailable("no answer")
        yield listed

    async def made(self) -> None:
        for name in "ab":
            spec = {"providerID": f"aws:///eu-central-1a/i-{name}"}
            await self.kube.create(NODES, {"metadata": {"name": name}, "spec": spec}, "")

    async def found(self, instance: str, node: str = "") -> str:
        key = KEY.model_copy(update={"instance_id": instance}).lifecycle
        search = FindNode(key=key, namespace="c", cluster="c1", node=node)
        result: KnownNode = await ActivityEnvironment().run(self.find, search)
        return result.name


async def test_searches_of_a_cluster_share_a_list_that_begins_after_each_of_them() -> None:
    fleet = Fleet()
    await fleet.made()
    first = [asyncio.create_task(fleet.found(each)) for each in ("i-a", "i-b", "i-c")]
    await asyncio.sleep(0.005)
    spec = {"providerID": "aws:///eu-central-1a/i-c"}
    await fleet.kube.create(NODES, {"metadata": {"name": "c"}, "spec": spec}, "")
    second = [asyncio.create_task(fleet.found("i-c")) for _ in range(5)]
    assert await asyncio.gather(*first) == ["a", "b", ""]
    assert set(await asyncio.gather(*second)) == {"c"}
    assert fleet.lists == 2


@pytest.mark.parametrize("nonsense", ["gce:///zone/i-a", "aws://", "i-a", "", None, 7, ["aws:///z/i-a"], {}])
async def test_a_provider_id_of_another_cloud_or_without_meaning_hides_no_other_node(nonsense: Any) -> None:
    fleet = Fleet()
    await fleet.kube.create(NODES, {"metadata": {"name": "0"}, "spec": {"providerID": nonsense}}, "")
    await fleet.kube.create(NODES, {"metadata": {"name": "1"}}, "")
    assert await fleet.found("i-a") == ""
    await fleet.made()
    assert await fleet.found("i-a") == "a"


async def test_a_list_that_fails_fails_its_searches_and_no_later_one() -> None:
    fleet = Fleet()
    await fleet.made()
    fleet.fails = True
    results = await asyncio.gather(*(fleet.found("i-a") for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in results] == [Unavailable] * 3
    fleet.fails = False
    assert await fleet.found("i-a") == "a"


async def test_a_search_that_is_cancelled_ends_no_other() -> None:
    fleet = Fleet()
    await fleet.made()
    cancelled, other = (asyncio.create_task(fleet.found("i-a")) for _ in range(2))
    await asyncio.sleep(0.005)
    cancelled.cancel()
    assert await other == "a"


@pytest.mark.parametrize(("name", "lists"), [("a", 0), ("b", 1), ("gone", 1)])
async def test_a_node_whose_name_is_known_is_read_alone(name: str, lists: int) -> None:
    fleet = Fleet()
    await fleet.made()
    assert await fleet.found("i-a", name) == "a"
    assert fleet.lists == lists
