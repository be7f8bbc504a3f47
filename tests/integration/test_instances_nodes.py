"""Nodes on a real API server, entered as a workload cluster is: by the kubeconfig in a Secret of Cluster API.

And InterruptionPolicies: what the API server refuses, and what a policy does to Nodes and Pods.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from temporalio.testing import ActivityEnvironment
from waiting import eventually

from activities.instances import node_drain
from activities.instances.disruption_budget import Disruptions
from activities.instances.node_drain import NodeActivities
from domain.identity import Key, Kind
from domain.instances import INTERRUPTION_POLICY
from domain.instances.actions import CordonNode, EmptyNode, FindNode, ReleaseNode
from domain.instances.interruption_policy import Budgets, Draining, Reaction, Taint, TaintEffect
from domain.instances.notices import about_node, on_each
from domain.instances.resources import InterruptionPolicy
from domain.instances.workflow_ids import InstanceKey
from domain.notices import normal
from domain.writes import RecordEvents
from engine.errors import Absent, Invalid
from engine.kube import EVENT, NODE, POD, SECRET, KubeApi
from engine.kube.events import record_events
from engine.kube.json import JsonObject, at, sequence, text
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")
DAEMON_SET = Kind(name="DaemonSet", group="apps", version="v1", plural="daemonsets", area="")

PDB = Kind(name="PodDisruptionBudget", group="policy", version="v1", plural="poddisruptionbudgets", area="")
WHOLE: dict[str, Any] = {
    "selector": {
        "clusters": ["prod"],
        "namespaces": ["fleet"],
        "pools": ["md-0"],
        "labels": {"team": "web"},
        "tags": {"env": "prod"},
    },
    "reactions": {"spot": "delete-machine", "stopped": "cordon", "reboot": "drain", "terminatingHook": "drain"},
    "taint": {"key": "acme.io/leaves", "value": "soon", "effect": "NoExecute"},
    "drain": {"podGracePeriodSeconds": 10, "nodeGracePeriodSeconds": 600, "disruptionBudgets": "Force"},
    "launchingHook": True,
    "maintenanceLeadSeconds": 3600,
    "maxUnavailable": 2,
    "replaceFirstSeconds": {"spot": 60},
}

T = TypeVar("T")
A = TypeVar("A")


class Workload:
    """A workload cluster with one Node, which is Perdure's own cluster entered by a Secret."""

    def __init__(self, kube: KubeApi, namespace: str) -> None:
        self.kube = kube
        self.namespace = namespace
        self.node = f"node-{uuid4().hex[:8]}"
        instance = InstanceKey(account="123456789012", region="us-east-1", instance_id=f"i-{uuid4().hex[:17]}")
        self.key: Key = instance.lifecycle
        self.activities = NodeActivities(kube, Disruptions(kube, "default", 1))
        self.where = {"key": self.key, "namespace": namespace, "cluster": "c1", "node": self.node}

    async def begin(self, kubeconfig: bytes) -> None:
        content = {"value": base64.b64encode(kubeconfig).decode()}
        await self.kube.create(SECRET, {"metadata": {"name": "c1-kubeconfig"}, "data": content}, self.namespace)
        await self.kube.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, self.namespace)
        spec = {"providerID": f"aws:///us-east-1a/{self.key.name}"}
        await self.kube.create(NODE, {"metadata": {"name": self.node}, "spec": spec})

    async def pod(self, name: str, **metadata: object) -> None:
        spec: JsonObject = {
            "nodeName": self.node,
            "terminationGracePeriodSeconds": 0,  # nobody runs it, so nobody would say that it has ended
            "containers": [{"name": "c", "image": "none"}],
        }
        await self.kube.create(POD, {"metadata": {"name": name, **metadata}, "spec": spec}, self.namespace)

    async def daemon_set(self) -> JsonObject:
        """As an owner reference; nobody makes Pods of it here."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "none"}]}}
        spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
        made = await self.kube.create(DAEMON_SET, {"metadata": {"name": "logs"}, "spec": spec}, self.namespace)
        return {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": text(made, "metadata", "uid")}

    async def exists(self, name: str) -> bool:
        try:
            await self.kube.get(POD, self.namespace, name)
        except Absent:
            return False
        return True

    async def unschedulable(self) -> object:
        return at(await self.kube.get(NODE, "", self.node), "spec", "unschedulable")

    async def run(self, activity: Callable[[A], Awaitable[T]], action: A) -> T:
        return await ActivityEnvironment().run(activity, action)


@pytest.fixture
async def workload(deployment: Deployment, kube: KubeApi, namespace: str) -> Workload:
    found = Workload(kube, namespace)
    await found.begin(Path(deployment.env()["KUBECONFIG"]).read_bytes())
    return found


async def test_a_node_is_found_by_its_instance_cordoned_emptied_and_used_again(workload: Workload) -> None:
    await workload.pod("web")
    await workload.pod("logs", ownerReferences=[await workload.daemon_set()])
    activities = workload.activities
    node = await workload.run(activities.find, FindNode(**workload.where))
    assert (node.name, node.ready) == (workload.node, False)
    await workload.run(activities.cordon, CordonNode(cause="c", **workload.where))
    assert await workload.unschedulable() is True
    await workload.run(activities.drain, EmptyNode(cause="c", **workload.where))
    assert (await workload.exists("web"), await workload.exists("logs")) == (False, True)
    await workload.run(activities.uncordon, ReleaseNode(**workload.where))
    assert await workload.unschedulable() is None
    await workload.kube.delete(NODE, "", workload.node)
    await workload.run(activities.cordon, CordonNode(cause="c", **workload.where))


async def test_a_drain_ends_when_the_last_pod_has_gone(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_drain, "EVICT_AGAIN", 3600.0)
    await workload.pod("web", finalizers=["example.com/backup"])
    draining = asyncio.create_task(
        workload.run(workload.activities.drain, EmptyNode(cause="c", **workload.where)), name="drain"
    )

    async def ending() -> bool:
        found = await workload.kube.get(POD, workload.namespace, "web")
        return bool(text(found, "metadata", "deletionTimestamp"))

    await eventually(ending, "the Pod is evicted")
    assert not draining.done()
    await workload.kube.patch(POD, workload.namespace, "web", {"metadata": {"finalizers": None}})
    await asyncio.wait_for(draining, 60)


async def test_a_node_of_the_same_name_but_of_another_instance_stays_untouched(workload: Workload) -> None:
    """With private DNS names an address, and so a Node's name, comes back for another instance."""
    await workload.pod("web")
    activities = workload.activities
    before = InstanceKey(account="123456789012", region="us-east-1", instance_id="i-0000000000000dead").lifecycle
    where = {**workload.where, "key": before}
    await workload.run(activities.cordon, CordonNode(cause="c", **where))
    assert await workload.unschedulable() is None
    await workload.run(activities.drain, EmptyNode(cause="c", **where))
    assert await workload.exists("web")


# --- policies ---


def named(spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": f"p-{uuid4().hex[:8]}"}, "spec": spec}


async def test_a_whole_policy_is_stored_as_it_was_written(kube: KubeApi) -> None:
    made = await kube.create(INTERRUPTION_POLICY, named(WHOLE))
    try:
        assert made["spec"] == WHOLE
        assert InterruptionPolicy.model_validate(made).spec.drain.disruption_budgets is Budgets.FORCE
    finally:
        await kube.delete(INTERRUPTION_POLICY, "", made["metadata"]["name"])


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"reactions": {"spot": "explode"}}, "spec.reactions.spot"),
        ({"reactions": {"terminatingHook": "Drain"}}, "spec.reactions.terminatingHook"),
        ({"reactions": {"rebalance": "drain"}}, "spec.reactions.rebalance"),
        ({"reactions": {"capacityReservation": "cordon"}}, "spec.reactions.capacityReservation"),
        ({"selector": {"clusters": "prod"}}, "spec.selector.clusters"),
        ({"taint": {"effect": "Never"}}, "spec.taint.effect"),
        ({"taint": {"key": "not a key"}}, "spec.taint.key"),
        ({"taint": {"key": "a" * 64}}, "spec.taint.key"),
        ({"taint": {"key": "acme..io/leaves"}}, "spec.taint.key"),
        ({"taint": {"key": "a/b", "nodeTerminationHandlerNames": True}}, "spec.taint"),
        ({"drain": {"podGracePeriodSeconds": -1}}, "spec.drain.podGracePeriodSeconds"),
        ({"drain": {"disruptionBudgets": "Maybe"}}, "spec.drain.disruptionBudgets"),
        ({"maxUnavailable": 0}, "spec.maxUnavailable"),
        ({"reactions": {"spot": "drain"}, "replaceFirstSeconds": {"spot": 60}}, "replaceFirstSeconds.spot"),
        ({"replaceFirstSeconds": {"reboot": 60}}, "replaceFirstSeconds.reboot"),
        (
            {"reactions": {"ending": "delete-machine"}, "replaceFirstSeconds": {"ending": 3601}},
            "spec.replaceFirstSeconds.ending",
        ),
        ({"launchTimeoutSeconds": "15m"}, "spec.launchTimeoutSeconds"),
        ({"launchTimeoutSeconds": 9}, "spec.launchTimeoutSeconds"),
        ({"hookMarginSeconds": 3601}, "spec.hookMarginSeconds"),
        ({"heartbeatSeconds": 9}, "spec.heartbeatSeconds"),
        ({"heartbeatSeconds": 3601}, "spec.heartbeatSeconds"),
        ({"heartbeatSeconds": "60s"}, "spec.heartbeatSeconds"),
        ({"hookLimitSeconds": 29}, "spec.hookLimitSeconds"),
        ({"hookLimitSeconds": 48 * 3600 + 1}, "spec.hookLimitSeconds"),
        ({"hookLimitSeconds": 600.5}, "spec.hookLimitSeconds"),
    ],
)
async def test_a_policy_that_nobody_can_mean_is_refused_with_the_field(
    kube: KubeApi, spec: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid, match=field):
        await kube.create(INTERRUPTION_POLICY, named(spec))


@pytest.mark.parametrize(
    "spec",
    [
        {"heartbeatSeconds": 10, "hookLimitSeconds": 30},
        {"heartbeatSeconds": 3600, "hookLimitSeconds": 48 * 3600},
    ],
)
async def test_a_policy_may_have_the_least_and_the_most_times_of_hooks(kube: KubeApi, spec: dict[str, Any]) -> None:
    made = await kube.create(INTERRUPTION_POLICY, named(spec))
    try:
        assert made["spec"] == spec
    finally:
        await kube.delete(INTERRUPTION_POLICY, "", made["metadata"]["name"])


async def test_a_node_is_tainted_and_used_again(workload: Workload) -> None:
    foreign = {"key": "acme.io/gpu", "effect": "NoSchedule"}
    await workload.kube.patch(NODE, "", workload.node, {"spec": {"taints": [foreign]}})
    taint = Taint(key="perdure.dev/interruption", value="spot", effect=TaintEffect.PREFER_NO_SCHEDULE)
    marking = CordonNode(cause="c", reaction=Reaction.TAINT, taint=taint, **workload.where)

    async def taints() -> set[str]:
        found = sequence(await workload.kube.get(NODE, "", workload.node), "spec", "taints")
        return {str(at(each, "key")) for each in found}

    for _ in range(2):
        await workload.run(workload.activities.cordon, marking)
        assert {"acme.io/gpu", "perdure.dev/interruption"} <= await taints()
        assert await workload.unschedulable() is None
    await workload.run(workload.activities.uncordon, ReleaseNode(**workload.where))
    assert "perdure.dev/interruption" not in await taints()
    assert "acme.io/gpu" in await taints()


@pytest.mark.parametrize(
    ("budgets", "left"), [(Budgets.RESPECT, True), (Budgets.FORCE, False), (Budgets.IGNORE, False)]
)
async def test_a_disruption_budget_is_respected_forced_or_ignored(
    workload: Workload, budgets: Budgets, left: bool
) -> None:
    """Nobody computes the budget's status here, so the API server refuses each eviction."""
    await workload.pod("web", labels={"app": "web"})
    # A budget does not protect a Pod that is Pending.
    await workload.kube.patch(POD, workload.namespace, "web", {"status": {"phase": "Running"}}, subresource="status")
    budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
    await workload.kube.create(PDB, budget, workload.namespace)
    how = Draining(budgets=budgets, node_grace=timedelta(0) if budgets is not Budgets.IGNORE else None)
    emptying = EmptyNode(cause="c", how=how, **workload.where)
    while (done := await workload.run(workload.activities.drain, emptying)).delayed:
        emptying = emptying.model_copy(update={"begun": done.delayed})
    assert await workload.exists("web") is left


async def test_an_event_about_a_node_is_recorded_once_in_its_own_cluster(workload: Workload) -> None:
    notices = on_each(
        (about_node(workload.node),), normal, "NodeDrained", "it is empty", cluster=f"{workload.namespace}/c1"
    )
    unknown = on_each((about_node("elsewhere"),), normal, "NodeDrained", "it is empty", cluster="nowhere/c1")
    events = RecordEvents(key=workload.key, notices=(*unknown, *notices), at=datetime.now(UTC))
    for _ in range(2):
        await record_events(events, workload.kube)
    found = [each for each in (await workload.kube.list(EVENT, "default")).items if _names(each, workload.node)]
    assert [text(each, "reason") for each in found] == ["NodeDrained"]
    assert text(found[0], "source", "component") == "perdure"


def _names(event: JsonObject, node: str) -> bool:
    """As `kubectl describe node` finds them."""
    return text(event, "involvedObject", "uid") == node
