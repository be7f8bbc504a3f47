"""Nodes of workload clusters: found, cordoned, emptied, and used again.

The workload cluster is entered with the kubeconfig that Cluster API keeps in the Secret `<cluster>-kubeconfig` of the
cluster's namespace (key `value`). It is read for each action, as it is rotated, and is never told to anybody; what in
it would run a program or read a file of this machine is refused, since whoever may write that Secret could otherwise do
so here.

Draining evicts what a drain of kubectl evicts: all Pods of the Node but those of DaemonSets, static ones, and those
that have ended. An eviction that a disruption budget holds up (429), or that is refused for another reason, which is
logged, keeps no other Pod from being evicted, and is tried again every five seconds until the time is over; then the
rest is left where it is, since AWS takes the instance all the same.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import yaml
from temporalio import activity

from activities.instances import metrics
from activities.instances.disruptions import Disruptions
from domain.built_in_kinds import NODE, POD
from domain.instances import MACHINE
from domain.instances.actions import CordonNode, Done, EmptyNode, FindNode, ReleaseNode
from domain.instances.constants import CORDONED_ANNOTATION
from domain.instances.disruptions import Turn
from domain.instances.lifecycle import KnownNode
from domain.instances.names import instance_of_provider_id
from domain.instances.resources import Machine
from engine.clock import now
from engine.errors import Absent, ApiError, Invalid, Throttled
from engine.kube import SECRET, KubeApi
from engine.kube.connection import Connection
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.settings import Settings

EVICT_AGAIN = 5.0
_MIRROR_POD = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")
# What a kubeconfig may name: certificates and tokens, as they stand in it.
_FOREIGN = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key")


class NodeActivities:
    """What is done to Nodes."""

    def __init__(self, kube: KubeApi, settings: Settings, disruptions: Disruptions) -> None:
        self._kube = kube
        self._disruptions = disruptions
        self._settings = settings

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.find, self.cordon, self.drain, self.uncordon)

    @activity.defn(name=FindNode.activity)
    async def find(self, search: FindNode) -> KnownNode:
        """The instance's Node; none where the cluster has no kubeconfig yet."""
        at = now()
        try:
            async with self._workload(search.namespace, search.cluster) as api:
                listed = await api.list(NODE)
        except Absent:
            return KnownNode(at=at)
        nodes = (node for node in listed.items if instance_of(node) == search.key.name)
        found = next(nodes, None)
        return KnownNode(at=at, name=text(found, "metadata", "name"), ready=ready(found)) if found else KnownNode(at=at)

    @activity.defn(name=CordonNode.activity)
    async def cordon(self, node: CordonNode) -> Turn:
        """Have nothing new placed on it once it is its turn; one that is gone, or cordoned already, needs nothing."""
        machine = await self._machine(node)
        turn = await self._disruptions.begin(machine, taken=node.taken) if machine else Turn(at=now())
        if turn.why:
            return turn
        async with self._workload(node.namespace, node.cluster) as api:
            found = await _found(api, node.node)
            if found and not mapping(found, "spec").get("unschedulable"):
                await _patched(api, node.node, unschedulable=True, mark=node.cause)
        metrics.REACTIONS.labels("cordon").inc()
        return turn

    @activity.defn(name=EmptyNode.activity)
    async def drain(self, node: EmptyNode) -> Done:
        """Evict until nothing is left to evict, or the time is over."""
        told = set[str]()
        async with self._workload(node.namespace, node.cluster) as api:
            while left := await _evictable(api, node.node):
                if node.until is not None and node.until <= now():
                    activity.logger.warning("node %s: time is over, %d pods are left on it", node.node, len(left))
                    break
                activity.heartbeat(len(left))
                for pod in left:
                    refused = await _evict(api, pod)
                    if refused and refused not in told:
                        told.add(refused)
                        activity.logger.warning("node %s: %s", node.node, refused)
                await asyncio.sleep(EVICT_AGAIN)
        metrics.REACTIONS.labels("drain").inc()
        return Done(at=now())

    @activity.defn(name=ReleaseNode.activity)
    async def uncordon(self, node: ReleaseNode) -> None:
        """Uncordon it, unless another user cordoned it.

        A Node of another instance is left alone: its name may come from an annotation that another user wrote.
        """
        async with self._workload(node.namespace, node.cluster) as api:
            found = await _found(api, node.node)
            ours = found and CORDONED_ANNOTATION in mapping(found, "metadata", "annotations")
            if found and ours and instance_of(found) == node.key.name:
                await _patched(api, node.node, unschedulable=None, mark=None)
        await self._disruptions.end(node.key.name)
        metrics.REACTIONS.labels("uncordon").inc()

    async def _machine(self, node: CordonNode) -> Machine | None:
        """The Machine of a Node; an instance of a group may have none, and Auto Scaling looks after its group."""
        if not node.machine:
            return None
        try:
            return Machine.model_validate(await self._kube.get(MACHINE, node.namespace, node.machine))
        except Absent:
            return None

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        name = f"{cluster}-kubeconfig"
        secret = await self._kube.get(SECRET, namespace, name)
        connection = Connection(content=kubeconfig(secret, f"Secret {namespace}/{name}"))
        await connection.load()
        settings = self._settings
        async with KubeApi(
            connection,
            process="worker",
            operator_domain=settings.claims_domain,
            connections=4,
            observing=settings.observing,
        ) as api:
            yield api


def kubeconfig(secret: JsonObject, where: str) -> JsonObject:
    """The kubeconfig of a Secret of Cluster API.

    Raises:
        Invalid: it is none, or names programs or files of whoever uses it.
    """
    try:
        content = yaml.safe_load(base64.b64decode(text(secret, "data", "value"), validate=True))
    except (binascii.Error, yaml.YAMLError, UnicodeDecodeError) as error:
        raise Invalid(f"{where} has no kubeconfig under `value`", code="Kubeconfig") from error
    if not isinstance(content, dict):
        raise Invalid(f"{where} has no kubeconfig under `value`", code="Kubeconfig")
    users = [mapping(each, "user") for each in sequence(content, "users")]
    clusters = [mapping(each, "cluster") for each in sequence(content, "clusters")]
    foreign = {name for user in users for name in _FOREIGN if name in user}
    foreign |= {name for cluster in clusters for name in ("certificate-authority",) if name in cluster}
    if foreign:
        raise Invalid(f"{where} names what is not in it: {', '.join(sorted(foreign))}", code="Kubeconfig")
    return content


def instance_of(node: JsonObject) -> str:
    """The instance that a Node runs on."""
    return instance_of_provider_id(text(node, "spec", "providerID"))


def ready(node: JsonObject) -> bool:
    """Whether a Node says that it is ready."""
    conditions = sequence(node, "status", "conditions")
    return any(text(each, "type") == "Ready" and text(each, "status") == "True" for each in conditions)


async def _found(api: KubeApi, node: str) -> JsonObject | None:
    try:
        return await api.get(NODE, "", node)
    except Absent:
        return None


async def _patched(api: KubeApi, node: str, *, unschedulable: bool | None, mark: str | None) -> None:
    marked = {"annotations": {CORDONED_ANNOTATION: mark}}
    try:
        await api.patch(NODE, "", node, {"metadata": marked, "spec": {"unschedulable": unschedulable}})
    except Absent:
        return


async def _evictable(api: KubeApi, node: str) -> list[JsonObject]:
    listed = await api.list(POD, field_selector=f"spec.nodeName={node}")
    return [pod for pod in listed.items if evictable(pod)]


def evictable(pod: Mapping[str, object]) -> bool:
    """True for what a drain evicts."""
    owners = [text(owner, "kind") for owner in sequence(pod, "metadata", "ownerReferences")]
    stays = "DaemonSet" in owners or _MIRROR_POD in mapping(pod, "metadata", "annotations")
    return not stays and text(pod, "status", "phase") not in _ENDED


async def _evict(api: KubeApi, pod: JsonObject) -> str:
    """Ask for it once, and say why it is refused; what is going already, or held up by a budget, is looked at again."""
    if text(pod, "metadata", "deletionTimestamp"):
        return ""
    meta = {"name": text(pod, "metadata", "name"), "namespace": text(pod, "metadata", "namespace")}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
    try:
        await api.create_under(POD, meta["namespace"], meta["name"], "eviction", eviction)
    except (Absent, Throttled):
        return ""
    except ApiError as error:
        return error.message
    return ""
