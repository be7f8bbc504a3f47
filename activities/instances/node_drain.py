"""Nodes of workload clusters: found, cordoned, drained, and uncordoned.

A Node is changed only while its providerID names the instance: with private DNS names a Node's name comes back for
another instance, and a Machine's annotation may name any Node.

Draining evicts the same Pods as kubectl's drain. A refused eviction (429: a disruption budget delays it) is retried
every five seconds until the time is over, and does not stop others. Then the remaining Pods stay, since AWS reclaims
the instance anyway, unless an InterruptionPolicy has them deleted. The activity ends with what delays a drain, so that
an Event reports it, and begins again once it is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import chain

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.disruption_budget import Disruptions, is_ready
from activities.instances.metrics import Outcome
from domain.built_in_kinds import NODE, POD
from domain.decision import earliest
from domain.instances import MACHINE
from domain.instances.actions import CordonNode, Emptied, EmptyNode, FindNode, ReleaseNode, Taking
from domain.instances.constants import CORDONED_ANNOTATION, DO_NOT_DISRUPT, TAINTED_ANNOTATION
from domain.instances.disruption_budget import Turn
from domain.instances.interruption_policy import Budgets, Draining, Reaction
from domain.instances.names import instance_of_node
from domain.instances.notices import on_each
from domain.instances.observed import Emptying, KnownNode
from domain.instances.resources import Machine, Node
from domain.notices import Notice, normal, warning
from domain.refusal import without_request
from domain.resource import parse_timestamp, timestamp
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict
from engine.kube import KubeApi
from engine.kube.json import JsonObject, at, mapping, sequence, text
from engine.kube.shared_reads import SharedReading
from engine.kube.workload_clusters import workload

EVICT_AGAIN = 5.0
_ATTEMPTS = 5
# Kubernetes' default for Pods that do not set one.
_POD_GRACE = timedelta(seconds=30)
# A Pod that is this much late will hardly end by itself: a finalizer keeps it, or its kubelet is away.
_OVERDUE = timedelta(seconds=30)
_MIRROR_POD = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")
# Further causes of a delay are logged: each that is reported ends the activity once.
_MOST_REPORTED = 20


class NodeActivities(Activities):
    def __init__(self, kube: KubeApi, disruptions: Disruptions) -> None:
        self._kube = kube
        self._disruptions = disruptions
        # By namespace and cluster. Searches share a list: an event may concern all Nodes of a large cluster.
        self._lists: dict[tuple[str, str], SharedReading[dict[str, KnownNode]]] = {}

    @activity.defn(name=FindNode.activity)
    async def find(self, search: FindNode) -> KnownNode:
        """None if the cluster has no kubeconfig yet."""
        at = now()
        try:
            found = await self._named(search) if search.node else None
            if found is None:
                where = (search.namespace, search.cluster)
                nodes = self._lists.setdefault(where, SharedReading(partial(self._list, *where)))
                found = (await nodes.read()).get(search.key.name)
        except Absent:
            found = None
        return found.model_copy(update={"at": at}) if found else KnownNode(at=at)

    async def _named(self, search: FindNode) -> KnownNode | None:
        async with self._workload(search.namespace, search.cluster) as api:
            found = await _node_of_instance(api, search)
        return _known(found) if found else None

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
        machine = await self._machine(node) if node.namespace else await self._own(node)
        turn = Turn(at=now())
        if machine and node.disrupts:
            turn = await self._disruptions.begin(machine, taken=node.taken, most=node.most, policy=node.policy)
        did = "taint" if node.reaction is Reaction.TAINT else "cordon"
        if turn.why:
            metrics.reacted(did, node.because, Outcome.WAITS)
            return Taking(turn=turn)
        async with self._workload(node.namespace, node.cluster) as api:
            changed = await _changed(api, node, lambda found: _marking(found, node))
            if changed:
                metrics.reacted(did, node.because)
            ours = changed or (attempt.repeated() and await _marked(api, node))
        reason, done = ("NodeTainted", "tainted") if node.reaction is Reaction.TAINT else ("NodeCordoned", "cordoned")
        said = f"{node.node} is {done} because of {node.cause} of instance {node.key.name}"
        return Taking(turn=turn, notices=_on_each(node, normal, reason, said) if ours else ())

    @activity.defn(name=EmptyNode.activity)
    async def drain(self, node: EmptyNode) -> Emptied:
        """Evict until no Pod is left, the time is over, or something delays it that is not reported yet."""
        begun = node.begun or Emptying(node=node.node, cause=node.cause, since=_since(node))
        logged, evicted = set(begun.reported), False
        async with self._workload(node.namespace, node.cluster) as api:
            while left := await _evictable(api, node):
                until = _end_of(node, begun.since, left)
                if until is not None and until <= now():
                    return await self._end(api, node, begun, left)
                activity.heartbeat(len(left))
                evicted, refusals = True, dict[str, None]()
                for pod in left:
                    wish = _wish(pod) if node.how.spares else ""
                    delay = wish or _overdue(pod) or without_request(await _evict(api, pod, node.how))
                    refusals |= dict.fromkeys(filter(None, [delay]))
                new = tuple(each for each in refusals if each not in logged)
                for each in new:
                    activity.logger.warning("node %s: %s", node.node, each)
                logged |= refusals.keys()
                if node.about and new and len(begun.reported) < _MOST_REPORTED:
                    return _delayed(node, begun, new)
                await asyncio.sleep(EVICT_AGAIN)
        if begun.forced:
            return Emptied(at=now())
        if evicted or not attempt.repeated():
            # An earlier attempt that emptied it has counted it.
            metrics.reacted("drain", node.because, Outcome.DONE)
        said = f"{node.node} is drained because of {node.cause}"
        return Emptied(at=now(), notices=_on_each(node, normal, "NodeDrained", said) if left == [] else ())

    async def _end(self, api: KubeApi, node: EmptyNode, begun: Emptying, left: Sequence[JsonObject]) -> Emptied:
        """When the time is over, leave the remaining Pods or, if a policy says so, report that and delete them."""
        if begun.forced:
            for pod in left:
                await _delete(api, pod, node.how)
            return Emptied(at=now())
        activity.logger.warning("node %s: time is over, %d pods are left on it", node.node, len(left))
        names = ", ".join(sorted(_name(pod) for pod in left))
        forced = node.how.budgets is Budgets.FORCE
        metrics.reacted("drain", node.because, Outcome.FORCED if forced else Outcome.INCOMPLETE)
        if not forced:
            said = f"time is over, and on {node.node} are left: {names}"
            return Emptied(at=now(), notices=_on_each(node, warning, "DrainIncomplete", said))
        said = f"time is over, and these Pods of {node.node} are deleted: {names}"
        after = begun.model_copy(update={"forced": True})
        return Emptied(at=now(), delayed=after, notices=_on_each(node, warning, "DrainForced", said))

    @activity.defn(name=ReleaseNode.activity)
    async def uncordon(self, node: ReleaseNode) -> None:
        """Uncordon it and remove our taint, unless another user set them."""
        if node.unused:
            await self._disruptions.end(node.key.name)
        if node.node:
            async with self._workload(node.namespace, node.cluster) as api:
                if await _changed(api, node, _release):
                    metrics.reacted("uncordon", None)
        if not node.unused:
            await self._disruptions.end(node.key.name)

    async def _machine(self, node: CordonNode) -> Machine | None:
        if not node.machine:
            return None
        try:
            return Machine.model_validate(await self._kube.get(MACHINE, node.namespace, node.machine))
        except Absent:
            return None

    async def _own(self, node: CordonNode) -> Node | None:
        found = await _node_of_instance(self._kube, node)
        return Node.model_validate(found) if found else None

    @asynccontextmanager
    async def _workload(self, namespace: str, cluster: str) -> AsyncIterator[KubeApi]:
        async with workload(self._kube, namespace, cluster) as api:
            yield api


def instance_of(node: JsonObject) -> str:
    """Empty if the Node's providerID names no instance."""
    return instance_of_node(text(node, "spec", "providerID"))


def _known(node: JsonObject) -> KnownNode:
    return KnownNode(at=now(), name=text(node, "metadata", "name"), ready=is_ready(node))


async def _node_of_instance(api: KubeApi, node: CordonNode | EmptyNode | FindNode | ReleaseNode) -> JsonObject | None:
    try:
        found = await api.get(NODE, "", node.node)
    except Absent:
        return None
    return found if instance_of(found) == node.key.name else None


async def _changed(api: KubeApi, node: CordonNode | ReleaseNode, change: Callable[[JsonObject], JsonObject]) -> bool:
    for left in reversed(range(_ATTEMPTS)):
        found = await _node_of_instance(api, node)
        patch = change(found) if found else {}
        if not (found and patch):
            return False
        # A merge patch replaces a list as a whole.
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
    return (TAINTED_ANNOTATION if node.reaction is Reaction.TAINT else CORDONED_ANNOTATION) in marks


def _delayed(node: EmptyNode, begun: Emptying, why: Sequence[str]) -> Emptied:
    told = (_on_each(node, warning, "DrainHeldUp", f"{node.node} is not empty yet: {each}") for each in why)
    after = begun.model_copy(update={"reported": (*begun.reported, *why)})
    return Emptied(at=now(), delayed=after, notices=tuple(chain.from_iterable(told)))


def _on_each(
    node: CordonNode | EmptyNode, make: Callable[..., Notice], reason: str, message: str
) -> tuple[Notice, ...]:
    return on_each(node.about, make, reason, message, cluster=node.of_cluster)


def _marking(found: JsonObject, node: CordonNode) -> JsonObject:
    """The patch that cordons and taints a Node; annotations record what is ours."""
    marks: JsonObject = {}
    spec: JsonObject = {}
    if node.reaction is not Reaction.TAINT and not mapping(found, "spec").get("unschedulable"):
        spec["unschedulable"] = True
        marks[CORDONED_ANNOTATION] = node.cause
    taints = sequence(found, "spec", "taints")
    if node.taint and not any(_same_taint(each, node.taint.key, node.taint.effect) for each in taints):
        spec["taints"] = [*taints, node.taint.model_dump(mode="json")]
        earlier = text(found, "metadata", "annotations", TAINTED_ANNOTATION)
        ours = dict.fromkeys((*filter(None, earlier.split(",")), f"{node.taint.key}:{node.taint.effect}"))
        marks[TAINTED_ANNOTATION] = ",".join(ours)
    return {"metadata": {"annotations": marks}, "spec": spec} if spec else {}


def _release(found: JsonObject) -> JsonObject:
    annotations = mapping(found, "metadata", "annotations")
    spec: JsonObject = {"unschedulable": None} if CORDONED_ANNOTATION in annotations else {}
    tainted = {each.rpartition(":")[::2] for each in text(annotations, TAINTED_ANNOTATION).split(",") if each}
    if tainted:
        taints = sequence(found, "spec", "taints")
        spec["taints"] = [each for each in taints if (text(each, "key"), text(each, "effect")) not in tainted]
    ours = (name for name in (CORDONED_ANNOTATION, TAINTED_ANNOTATION) if name in annotations)
    return {"metadata": {"annotations": dict.fromkeys(ours)}, "spec": spec} if spec else {}


def _same_taint(taint: object, key: str, effect: str) -> bool:
    return (text(taint, "key"), text(taint, "effect")) == (key, effect)


def _since(node: EmptyNode) -> datetime:
    return node.earlier.since if node.earlier else activity.info().scheduled_time


def _end_of(node: EmptyNode, since: datetime, left: Sequence[JsonObject]) -> datetime | None:
    """When the drain is over: Pods deleted at its end still have their grace period before AWS reclaims the instance.

    Budgets are respected for half of the time at least: a longer grace period could not end in time anyway.
    """
    how, until = node.how, node.until
    if until is not None and how.budgets is Budgets.FORCE:
        grace = max(_grace_of(pod) for pod in left) if how.pod_grace is None else how.pod_grace
        until -= min(grace, max(until - since, timedelta()) / 2)
    return earliest([until, since + how.node_grace if how.node_grace is not None else None])


def _grace_of(pod: JsonObject) -> timedelta:
    if text(pod, "metadata", "deletionTimestamp"):
        return timedelta()
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) else _POD_GRACE


async def _evictable(api: KubeApi, node: EmptyNode) -> list[JsonObject] | None:
    if not await _node_of_instance(api, node):
        return None
    listed = await api.list(POD, field_selector=f"spec.nodeName={node.node}")
    return [pod for pod in listed.items if evictable(pod)]


def evictable(pod: Mapping[str, object]) -> bool:
    owners = [text(owner, "kind") for owner in sequence(pod, "metadata", "ownerReferences")]
    stays = "DaemonSet" in owners or _MIRROR_POD in mapping(pod, "metadata", "annotations")
    return not stays and text(pod, "status", "phase") not in _ENDED


def _wish(pod: Mapping[str, object]) -> str:
    """Why a Pod must not be disrupted, from its annotation; empty if it may."""
    annotations = mapping(pod, "metadata", "annotations")
    asks = next((name for name in DO_NOT_DISRUPT if annotations.get(name) == "true"), "")
    return f"Pod {_name(pod)} asks not to be disrupted ({asks})" if asks else ""


def _overdue(pod: Mapping[str, object]) -> str:
    """Says that a Pod outlives its grace period; empty if it does not."""
    ends = parse_timestamp(text(pod, "metadata", "deletionTimestamp"))
    if ends is None or now() - ends < _OVERDUE:
        return ""
    finalizers = ", ".join(str(each) for each in sequence(pod, "metadata", "finalizers"))
    waits = f", and has the finalizers {finalizers}" if finalizers else ""
    return f"Pod {_name(pod)} should have ended at {timestamp(ends)}{waits}"


async def _evict(api: KubeApi, pod: JsonObject, how: Draining) -> str:
    """Evict a Pod; returns why that is refused."""
    if text(pod, "metadata", "deletionTimestamp"):
        return ""
    if how.budgets is Budgets.IGNORE:
        return await _delete(api, pod, how)
    meta = {"name": text(pod, "metadata", "name"), "namespace": text(pod, "metadata", "namespace")}
    # A Pod of the same name may run on another Node by now.
    options: JsonObject = {"preconditions": {"uid": text(pod, "metadata", "uid")}}
    if how.pod_grace is not None:
        options["gracePeriodSeconds"] = _seconds(how.pod_grace)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    try:
        await api.create_under(POD, meta["namespace"], meta["name"], "eviction", eviction)
    except (Absent, Conflict):
        return ""
    except ApiError as error:
        return error.message
    return ""


async def _delete(api: KubeApi, pod: JsonObject, how: Draining) -> str:
    """Delete a Pod; returns why that is refused."""
    meta = mapping(pod, "metadata")
    name, namespace, uid = (text(meta, field) for field in ("name", "namespace", "uid"))
    try:
        await api.delete(POD, namespace, name, uid=uid, grace_period=_seconds(how.pod_grace))
    except (Absent, Conflict):
        return ""
    except ApiError as error:
        return error.message
    return ""


def _seconds(grace: timedelta | None) -> int | None:
    return None if grace is None else int(grace.total_seconds())


def _name(pod: Mapping[str, object]) -> str:
    return f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
