"""Finds, taints, cordons, drains and uncordons Nodes of workload clusters and of Perdure's own cluster.

A Node is changed only while its providerID names the instance: with private DNS names another instance can get the
Node's name, and an edited annotation may name any Node.

A drain (`domain/instances/drained_pods.py`) ends as soon as the last Pod has gone. An eviction that a budget refuses
(429) does not stop the others, and is retried every five seconds until the drain's time is over. Pods that remain at
this time are left alone without `Force`, since AWS reclaims the instance anyway. If a new reason delays the drain, the
activity ends and returns this reason. The workflow records the reason in an Event, and starts the activity again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from itertools import chain

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.disruption_budget import Disruptions, is_ready
from activities.instances.metrics import Outcome
from activities.instances.node_pods import NodePods, delete, evict, instance_of
from domain.built_in_kinds import NODE
from domain.instances import AWS_MACHINE_POOL, MACHINE
from domain.instances.actions import CordonNode, Emptied, EmptyNode, FindNode, ReleaseNode, Taking
from domain.instances.disruption_budget import Turn, member_of
from domain.instances.drained_pods import Pod, end_of_drain
from domain.instances.interruption_policy import Budgets, Reaction
from domain.instances.node_cordon import MarkedNode, cordon_patch, mark_of, uncordon_patch
from domain.instances.notices import on_each
from domain.instances.observed import Emptying, KnownNode
from domain.instances.resources import AWSMachinePool, Machine, Node
from domain.notices import Notice, normal, warning
from domain.refusal import without_request
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import Absent, Conflict, unless_absent
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, mapping, text
from engine.kube.shared_reads import SharedReading
from engine.kube.workload_clusters import workload

EVICT_AGAIN = 5.0
_ATTEMPTS = 5
# Further delays are only logged, since each reported delay ends the activity once.
_MOST_REPORTED = 20


class NodeActivities(Activities):
    def __init__(self, kube: KubeApi, disruptions: Disruptions) -> None:
        self._kube = kube
        self._disruptions = disruptions
        # By namespace and cluster. Searches share a list: an event may concern all Nodes of a large cluster.
        self._lists: dict[tuple[str, str], SharedReading[dict[str, KnownNode]]] = {}

    @activity.defn(name=FindNode.activity)
    async def find(self, search: FindNode) -> KnownNode:
        """The instance's Node. `name` is empty if there is no such Node, or if the cluster has no kubeconfig yet."""
        at = now()
        try:
            found = await self._named(search) if search.node else None
            if found is None:
                found = (await self._nodes(search.namespace, search.cluster)).get(search.key.name)
        except Absent:
            found = None
        return found.model_copy(update={"at": at}) if found else KnownNode(at=at)

    async def _named(self, search: FindNode) -> KnownNode | None:
        async with self._workload(search.namespace, search.cluster) as api:
            found = await _node_of_instance(api, search)
        return _known(found) if found else None

    async def _nodes(self, namespace: str, cluster: str) -> dict[str, KnownNode]:
        where = (namespace, cluster)
        nodes = self._lists.setdefault(where, SharedReading(partial(self._list, *where)))
        return await nodes.read()

    async def _list(self, namespace: str, cluster: str) -> dict[str, KnownNode]:
        found: dict[str, KnownNode] = {}
        async with self._workload(namespace, cluster) as api:
            async for page in api.pages(NODE):
                for node in page.items:
                    found.setdefault(instance_of(node), _known(node))
        found.pop("", None)
        return found

    @activity.defn(name=CordonNode.activity)
    async def cordon(self, node: CordonNode) -> Taking:
        machine: Machine | Node | None = await self._machine(node) if node.namespace else await self._own(node)
        pool = await self._pool(node) if node.disrupts and machine is None else None
        if pool is not None:
            machine = member_of(pool, node.key.name, node.node, ready=True)
        turn = Turn(at=now())
        if machine and node.disrupts:
            listing = partial(self._pooled, node, pool) if pool else None
            turn = await self._disruptions.begin(
                machine, node.key.name, taken=node.taken, most=node.most, policy=node.policy, members=listing
            )
        did = "taint" if node.reaction is Reaction.TAINT else "cordon"
        if turn.why:
            metrics.reacted(did, node.because, Outcome.WAITS)
            return Taking(turn=turn)
        async with self._workload(node.namespace, node.cluster) as api:
            changed = await _changed(api, node, lambda found: cordon_patch(found, node))
            if changed:
                metrics.reacted(did, node.because)
            ours = changed or (attempt.repeated() and await _marked(api, node))
        reason, done = ("NodeTainted", "tainted") if node.reaction is Reaction.TAINT else ("NodeCordoned", "cordoned")
        message = f"{node.node} is {done} because of {node.cause} of instance {node.key.name}"
        return Taking(turn=turn, notices=_on_each(node, normal, reason, message) if ours else ())

    @activity.defn(name=EmptyNode.activity)
    async def drain(self, node: EmptyNode) -> Emptied:
        """Evict Pods until none is left, the time is over, or a new delay has to be reported."""
        begun = node.begun or Emptying(node=node.node, cause=node.cause, since=_since(node))
        logged, evicted = set(begun.reported), False
        async with self._workload(node.namespace, node.cluster) as api, Store(api) as store:
            pods = NodePods(store, node)
            while left := await pods.left():
                if pods.used_again:
                    # Pods scheduled on the Node would be evicted again and again.
                    return _given_up(node, f"{node.node} was uncordoned by another client, with Pods left on it", left)
                until = end_of_drain(node.how, begun.since, node.until, left)
                if until is not None and until <= now():
                    if not (evicted or begun.reported or begun.forced):
                        # The event came late. The Pods are evicted once, because AWS may act later than announced.
                        for pod in left:
                            await _evicted(api, pod, node)
                    return await self._end(api, node, begun, pods, left)
                activity.heartbeat(len(left))
                evicted, refusals = True, dict[str, None]()
                for pod in left:
                    refusals |= dict.fromkeys(filter(None, [await _evicted(api, pod, node)]))
                new = tuple(each for each in refusals if each not in logged)
                for each in new:
                    activity.logger.warning("node %s: %s", node.node, each)
                logged |= refusals.keys()
                if node.about and new and len(begun.reported) < _MOST_REPORTED:
                    return _delayed(node, begun, new)
                rest = (until - now()).total_seconds() if until is not None else EVICT_AGAIN
                await pods.emptied(min(EVICT_AGAIN, rest))
        if begun.forced:
            return Emptied(at=now())
        if evicted or not attempt.repeated():
            # Otherwise an earlier attempt has emptied the Node, and counted the drain.
            metrics.reacted("drain", node.because, Outcome.DONE)
        message = f"{node.node} has been drained because of {node.cause}"
        return Emptied(at=now(), notices=_on_each(node, normal, "NodeDrained", message) if left == [] else ())

    async def _end(
        self, api: KubeApi, node: EmptyNode, begun: Emptying, pods: NodePods, left: Sequence[Pod]
    ) -> Emptied:
        if begun.forced:
            await self._force(api, node, pods, left)
            return Emptied(at=now())
        if node.how.budgets is not Budgets.FORCE:
            return _given_up(node, f"the drain's time is over, with Pods left on {node.node}", left)
        activity.logger.warning("node %s: the drain's time is over, %d Pods are deleted", node.node, len(left))
        metrics.reacted("drain", node.because, Outcome.FORCED)
        names = _names(left)
        message = f"the drain's time is over, and these Pods of {node.node} are deleted: {names}"
        after = begun.model_copy(update={"forced": True})
        return Emptied(at=now(), delayed=after, notices=_on_each(node, warning, "DrainForced", message))

    async def _force(self, api: KubeApi, node: EmptyNode, pods: NodePods, left: Sequence[Pod]) -> None:
        """Delete the Pods, and wait for their end: after a hook's completion they would have no time to end."""
        uids = {pod.metadata.uid for pod in left if not await delete(api, pod, node.how)}
        while any(pod.metadata.uid in uids and not pod.overdue(now()) for pod in await pods.left() or ()):
            rest = (node.until - now()).total_seconds() if node.until is not None else EVICT_AGAIN
            if rest <= 0:
                return
            activity.heartbeat(len(uids))
            await pods.emptied(min(EVICT_AGAIN, rest))

    @activity.defn(name=ReleaseNode.activity)
    async def uncordon(self, node: ReleaseNode) -> None:
        """Uncordon the Node and remove its taint, if Perdure set them. Remove the disruption from the ledger."""
        if node.unused:
            await self._disruptions.end(node.key.name)
        if node.node:
            async with self._workload(node.namespace, node.cluster) as api:
                if await _changed(api, node, uncordon_patch):
                    metrics.reacted("uncordon", None)
        if not node.unused:
            await self._disruptions.end(node.key.name)

    async def _machine(self, node: CordonNode) -> Machine | None:
        if not node.machine:
            return None
        found = await unless_absent(self._kube.get(MACHINE, node.namespace, node.machine))
        return Machine.model_validate(found) if found else None

    async def _pool(self, node: CordonNode) -> AWSMachinePool | None:
        if not node.pool:
            return None
        found = await unless_absent(self._kube.get(AWS_MACHINE_POOL, node.namespace, node.pool))
        return AWSMachinePool.model_validate(found) if found else None

    async def _pooled(self, node: CordonNode, pool: AWSMachinePool) -> list[Node]:
        nodes = await self._nodes(node.namespace, node.cluster)
        absent = KnownNode(at=now())
        known = ((each, nodes.get(each, absent)) for each in pool.instance_ids)
        return [member_of(pool, instance, found.name, ready=found.ready) for instance, found in known]

    async def _own(self, node: CordonNode) -> Node | None:
        found = await _node_of_instance(self._kube, node)
        return Node.model_validate(found) if found else None

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        async with workload(self._kube, namespace, cluster) as api:
            yield api


def _known(node: JsonObject) -> KnownNode:
    return KnownNode(at=now(), name=text(node, "metadata", "name"), ready=is_ready(node))


async def _node_of_instance(api: KubeApi, node: CordonNode | EmptyNode | FindNode | ReleaseNode) -> JsonObject | None:
    found = await unless_absent(api.get(NODE, "", node.node))
    return found if found and instance_of(found) == node.key.name else None


async def _changed(api: KubeApi, node: CordonNode | ReleaseNode, change: Callable[[MarkedNode], JsonPatch]) -> bool:
    for left in reversed(range(_ATTEMPTS)):
        found = await _node_of_instance(api, node)
        patch = change(MarkedNode.model_validate(found)) if found else {}
        if not (found and patch):
            return False
        # A merge patch replaces the list of taints as a whole, so it must be based on the current list.
        version = text(found, "metadata", "resourceVersion") if "taints" in mapping(patch, "spec") else ""
        try:
            await api.patch(NODE, "", node.node, patch, resource_version=version)
        except Absent:
            return False
        except Conflict:
            if not left:
                raise
            continue
        return True
    return False


async def _marked(api: KubeApi, node: CordonNode) -> bool:
    marks = mapping(await _node_of_instance(api, node) or {}, "metadata", "annotations")
    return mark_of(node.reaction) in marks


async def _evicted(api: KubeApi, pod: Pod, node: EmptyNode) -> str:
    """Evict the Pod, unless it asks not to be disrupted. Returns what delays its end."""
    refused = pod.request_not_to_disrupt if node.how.spares else ""
    return refused or pod.overdue(now()) or without_request(await evict(api, pod, node.how))


def _given_up(node: EmptyNode, why: str, left: Sequence[Pod]) -> Emptied:
    activity.logger.warning("%s: %d pods", why, len(left))
    metrics.reacted("drain", node.because, Outcome.INCOMPLETE)
    return Emptied(at=now(), notices=_on_each(node, warning, "DrainIncomplete", f"{why}: {_names(left)}"))


def _names(pods: Sequence[Pod]) -> str:
    return ", ".join(sorted(pod.name for pod in pods))


def _delayed(node: EmptyNode, begun: Emptying, why: Sequence[str]) -> Emptied:
    events = (_on_each(node, warning, "DrainHeldUp", f"{node.node} is not empty yet: {each}") for each in why)
    after = begun.model_copy(update={"reported": (*begun.reported, *why)})
    return Emptied(at=now(), delayed=after, notices=tuple(chain.from_iterable(events)))


def _on_each(
    node: CordonNode | EmptyNode, make: Callable[..., Notice], reason: str, message: str
) -> tuple[Notice, ...]:
    return on_each(node.about, make, reason, message, cluster=node.of_cluster)


def _since(node: EmptyNode) -> datetime:
    return node.earlier.since if node.earlier else activity.info().scheduled_time
