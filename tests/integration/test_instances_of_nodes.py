"""A cluster without Cluster API: Nodes on the emulator's EC2, by real SQS and EventBridge, under the roles in deploy/.

Worker, watcher and event consumer are processes. The API server knows none of Cluster API's kinds, unless another test
of the same deployment has made them.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from product import perdure, process
from service_accounts import KINDS, apply, documents, kubeconfig_of
from waiting import eventually
from webhook import serving

from activities.instances.webhook_notifications import KEPT_IN
from domain.identity import Kind
from domain.instances import INTERRUPTION_POLICY, NODE
from domain.instances.constants import CORDONED_ANNOTATION, INTERRUPTION_LABEL, STATE_LABEL
from domain.instances.served_queues import place_of
from domain.instances.workflow_ids import InstanceKey
from domain.why import Why
from engine.errors import Absent
from engine.kube import EVENT, POD, SECRET, KubeApi
from engine.kube.json import JsonObject, mapping, sequence, text
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.aws.control import Emulator
from localcloud.demo.fleet import Fleet
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

REGION = "us-east-1"
PLACE = f"{PAYER_ACCOUNT_ID}/{REGION}"
RIGHTS = ("worker", "watch", "events", "pauses", "instances")
SERVICE_ACCOUNT = Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area="")


class Cluster:
    """A cluster whose Nodes are instances of the emulator's EC2."""

    def __init__(self, kube: KubeApi, fleet: Fleet, emulator: Emulator, namespace: str) -> None:
        self.kube = kube
        self.fleet = fleet
        self.emulator = emulator
        self.namespace = namespace

    async def join(self, instance: str, *, is_ready: bool = True) -> str:
        """The instance's Node, as its kubelet makes it, and a Pod on it."""
        name = f"node-{uuid4().hex[:8]}"
        ready = {"type": "Ready", "status": str(is_ready), "reason": "KubeletReady"}
        spec = {"providerID": f"aws:///{self.fleet.zone}/{instance}"}
        meta = {"name": name, "labels": {"of": self.namespace}}
        await self.kube.create(NODE, {"metadata": meta, "spec": spec, "status": {"conditions": [ready]}})
        containers = [{"name": "c", "image": "none"}]
        pod = {"nodeName": name, "terminationGracePeriodSeconds": 0, "containers": containers}
        await self.kube.create(POD, {"metadata": {"name": name}, "spec": pod}, self.namespace)
        return name

    async def becomes_ready(self, node: str) -> None:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status: JsonObject = {"status": {"conditions": [ready]}}
        await self.kube.patch(NODE, "", node, status, subresource="status", field_manager="kubelet")

    async def policy(self, *, spec: JsonObject | None = None, **reactions: str) -> None:
        """A policy for this cluster's Nodes. `spec` has its fields beside the reactions."""
        spec = {"selector": {"labels": {"of": self.namespace}}, "reactions": reactions, **(spec or {})}
        await self.kube.create(INTERRUPTION_POLICY, {"metadata": {"name": self.namespace}, "spec": spec})

    async def labelled(self, node: str, label: str, value: str) -> None:
        async def true() -> bool:
            found = await self.kube.get(NODE, "", node)
            return text(found, "metadata", "labels", label) == value

        await eventually(true, f"{node} has {label}={value}")

    async def emptied(self, node: str) -> None:
        """Wait until the Node is cordoned by Perdure and its Pod evicted."""

        async def so() -> bool:
            try:
                await self.kube.get(POD, self.namespace, node)
            except Absent:
                return True
            return False

        await eventually(so, f"{node} is empty")
        found = await self.kube.get(NODE, "", node)
        assert mapping(found, "spec")["unschedulable"] is True
        assert CORDONED_ANNOTATION in mapping(found, "metadata", "annotations")

    def completions(self, group: str) -> list[int]:
        """The answers to the calls that complete a lifecycle action of the group."""
        calls = self.emulator.ledger(recent=True).recent
        return [each.status for each in calls if each.action == "CompleteLifecycleAction" and group in each.named]

    async def event_reasons(self, node: str) -> set[str]:
        """The reasons of the Events about the Node."""
        found = (await self.kube.list(EVENT, "default")).items
        return {text(each, "reason") for each in found if text(each, "involvedObject", "name") == node}


@pytest.fixture(scope="module")
async def fleet(
    deployment: Deployment, kube: KubeApi, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Fleet]:
    """The product's processes under the roles of deploy/, and the instances that they serve."""
    env, directory = deployment.env(), tmp_path_factory.mktemp("kubeconfigs")
    of_nodes = documents("rbac/instances-nodes.yaml")  # which no other test's processes may have
    for obj in (*documents("namespaces.yaml", *(f"rbac/{name}.yaml" for name in RIGHTS)), *of_nodes):
        await apply(kube, obj)
    settings = {"PERDURE_AREAS": "instances", "PERDURE_INSTANCES_QUEUES": PLACE, "PERDURE_INSTANCES_NODES": "true"}
    async with AsyncExitStack() as stack:
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patched.setenv(name, env[name])
        for command in ("worker", "watch", "events"):
            path = directory / command
            kubeconfig = await kubeconfig_of(kube, Path(env["KUBECONFIG"]), "perdure", f"perdure-{command}", path)
            await stack.enter_async_context(process(deployment, command, KUBECONFIG=str(kubeconfig), **settings))
        found = Fleet(place_of(PLACE), stack.enter_context(Emulator(env["AWS_ENDPOINT_URL"])))
        await eventually(lambda: asyncio.to_thread(found.has_rules), "the place has its queue and rules")
        yield found
    for obj in of_nodes:
        await kube.delete(KINDS[obj["kind"]], "", obj["metadata"]["name"])


@pytest.fixture
async def cluster(deployment: Deployment, kube: KubeApi, fleet: Fleet, namespace: str) -> AsyncIterator[Cluster]:
    await kube.create(SERVICE_ACCOUNT, {"metadata": {"name": "default"}}, namespace)
    with Emulator(deployment.env()["AWS_ENDPOINT_URL"]) as emulator:
        yield Cluster(kube, fleet, emulator, namespace)
    for kind in (INTERRUPTION_POLICY, NODE):
        for each in (await kube.list(kind)).items:
            if namespace in (text(each, "metadata", "name"), text(each, "metadata", "labels", "of")):
                await kube.delete(kind, "", text(each, "metadata", "name"))


async def test_a_node_that_spot_takes_is_labelled_and_drained_and_another_one_is_not(
    cluster: Cluster, deployment: Deployment
) -> None:
    await cluster.policy(spot="drain")
    taken = await asyncio.to_thread(cluster.fleet.launch, spot=True)
    other = await asyncio.to_thread(cluster.fleet.launch, spot=False)
    node, beside = await cluster.join(taken), await cluster.join(other)
    for each in (node, beside):
        # By EC2's answer about a Node that has just joined.
        await cluster.labelled(each, STATE_LABEL, "running")
    await asyncio.to_thread(cluster.fleet.announce, "spot", taken)
    await cluster.labelled(node, INTERRUPTION_LABEL, "spot-terminate")
    await cluster.emptied(node)
    await eventually(lambda: _among(cluster, node, "NodeDrained"), "the drain is told")
    assert {"InstanceInterruption", "NodeCordoned", "NodeDrained"} <= await cluster.event_reasons(node)

    command = await asyncio.to_thread(perdure, deployment, "why", "node", node, "-o", "json")
    output = Why.model_validate_json(command.stdout)
    key = InstanceKey(account=PAYER_ACCOUNT_ID, region=REGION, instance_id=taken).lifecycle
    assert (output.object, output.phase) == (key.path, "Interrupting"), command.stderr
    assert f"InterruptionPolicy {cluster.namespace} applies" in output.why

    assert "unschedulable" not in mapping(await cluster.kube.get(NODE, "", beside), "spec")
    await cluster.kube.get(POD, cluster.namespace, beside)
    # An end that nobody reacts to is labelled.
    await asyncio.to_thread(cluster.fleet.terminate, other)
    await cluster.labelled(beside, STATE_LABEL, "terminated")


async def _among(cluster: Cluster, node: str, reason: str) -> bool:
    return reason in await cluster.event_reasons(node)


async def test_the_hook_of_a_node_is_completed_once_it_is_drained(cluster: Cluster) -> None:
    await cluster.policy(terminatingHook="drain")
    group = f"g-{uuid4().hex[:8]}"
    instance = await asyncio.to_thread(cluster.fleet.launch_group, group)
    node = await cluster.join(instance)
    await cluster.labelled(node, STATE_LABEL, "running")
    await asyncio.to_thread(cluster.fleet.shrink, group)
    await cluster.emptied(node)

    async def ended() -> bool:
        return await asyncio.to_thread(cluster.fleet.is_terminated, instance)

    await eventually(ended, "the hook is completed and the instance terminated")
    await cluster.labelled(node, STATE_LABEL, "terminated")


async def test_the_hook_of_a_launch_is_completed_once_when_the_node_is_ready(cluster: Cluster) -> None:
    await cluster.policy(spec={"launchingHook": True})
    group = f"g-{uuid4().hex[:8]}"
    instance = await asyncio.to_thread(cluster.fleet.launch_into_group, group)
    node = await cluster.join(instance, is_ready=False)
    await cluster.labelled(node, STATE_LABEL, "running")
    await asyncio.sleep(3)
    assert await asyncio.to_thread(cluster.fleet.lifecycle_state, instance) == "Pending:Wait"
    assert cluster.completions(group) == []
    await cluster.becomes_ready(node)

    async def in_service() -> bool:
        return await asyncio.to_thread(cluster.fleet.lifecycle_state, instance) == "InService"

    await eventually(in_service, "the hook is completed")
    assert cluster.completions(group) == [200]
    assert "unschedulable" not in mapping(await cluster.kube.get(NODE, "", node), "spec")


async def test_a_launch_is_abandoned_if_the_node_is_not_ready_in_time(cluster: Cluster) -> None:
    await cluster.policy(spec={"launchingHook": True, "abandonFailedLaunch": True, "launchTimeoutSeconds": 15})
    group = f"g-{uuid4().hex[:8]}"
    instance = await asyncio.to_thread(cluster.fleet.launch_into_group, group)
    try:
        node = await cluster.join(instance, is_ready=False)
        await eventually(lambda: asyncio.to_thread(cluster.fleet.is_terminated, instance), "the launch is abandoned")
        await cluster.labelled(node, STATE_LABEL, "terminated")
        assert cluster.completions(group) == [200]
    finally:
        # Auto Scaling has launched another.
        await asyncio.to_thread(cluster.fleet.shrink, group)


async def test_an_instance_is_terminated_after_its_node_is_drained(
    cluster: Cluster,
) -> None:
    await cluster.policy(spot="terminate-instance")
    instance = await asyncio.to_thread(cluster.fleet.launch, spot=True)
    node = await cluster.join(instance)
    await cluster.labelled(node, STATE_LABEL, "running")
    await asyncio.to_thread(cluster.fleet.announce, "spot", instance)
    await cluster.emptied(node)
    await eventually(lambda: asyncio.to_thread(cluster.fleet.is_terminated, instance), "the instance is terminated")
    await cluster.labelled(node, STATE_LABEL, "terminated")
    for reason in ("NodeDrained", "InstanceTerminated"):
        await eventually(lambda reason=reason: _among(cluster, node, reason), f"{reason} is told")


async def test_a_node_that_joins_after_its_spot_notice_is_drained(cluster: Cluster) -> None:
    await cluster.policy(spot="drain")
    instance = await asyncio.to_thread(cluster.fleet.launch, spot=True)
    await asyncio.to_thread(cluster.fleet.announce, "spot", instance)
    await asyncio.sleep(3)  # The consumer receives the message, finds no Node, and keeps the message.
    node = await cluster.join(instance)
    await cluster.labelled(node, INTERRUPTION_LABEL, "spot-terminate")
    await cluster.emptied(node)


async def test_a_stopped_instance_has_the_out_of_service_taint_until_it_runs_again(cluster: Cluster) -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
    await cluster.policy(stopped="taint", spec={"taint": taint})
    instance = await asyncio.to_thread(cluster.fleet.launch, spot=False)
    node = await cluster.join(instance)
    await cluster.labelled(node, STATE_LABEL, "running")

    async def tainted() -> bool:
        found = sequence(await cluster.kube.get(NODE, "", node), "spec", "taints")
        return any({name: text(each, name) for name in taint} == taint for each in found)

    async def untainted() -> bool:
        return not await tainted()

    assert await untainted()
    await asyncio.to_thread(cluster.fleet.stop, instance)
    await eventually(tainted, "the Node is tainted")
    await cluster.labelled(node, STATE_LABEL, "stopped")
    assert "unschedulable" not in mapping(await cluster.kube.get(NODE, "", node), "spec")
    # Deleting the Pods of a Node that is out of service is the work of Kubernetes' Pod garbage collector.
    await cluster.kube.get(POD, cluster.namespace, node)
    await asyncio.to_thread(cluster.fleet.start, instance)
    await eventually(untainted, "the Node is used again")
    await cluster.labelled(node, STATE_LABEL, "running")


async def test_a_webhook_behind_a_proxy_is_notified_once_with_the_secret_header(cluster: Cluster) -> None:
    content = {"token": base64.b64encode(b"Bearer abc").decode()}
    await cluster.kube.create(SECRET, {"metadata": {"name": KEPT_IN}, "data": content}, "perdure")
    async with serving() as proxy:
        # No resolver knows the host: only the proxy can receive the request.
        channel = {
            "name": "chat",
            "url": "http://chat.invalid/hook",
            "proxy": f"http://127.0.0.1:{proxy.port}",
            "headers": [{"name": "Authorization", "secretKey": "token"}],
        }
        try:
            await cluster.policy(spot="drain", spec={"notify": [channel]})
            instance = await asyncio.to_thread(cluster.fleet.launch, spot=True)
            node = await cluster.join(instance)
            await cluster.labelled(node, STATE_LABEL, "running")
            await asyncio.to_thread(cluster.fleet.announce, "spot", instance)

            async def received() -> bool:
                return bool(proxy.bodies)

            await eventually(received, "the proxy has the notification")
            await cluster.emptied(node)
        finally:
            await cluster.kube.delete(SECRET, "perdure", KEPT_IN)
    assert proxy.urls == ["http://chat.invalid/hook"]
    assert proxy.headers[0]["Authorization"] == "Bearer abc"
    sent = json.loads(proxy.bodies[0])
    assert (sent["instance"], sent["node"], sent["cause"]) == (instance, node, "spot")
