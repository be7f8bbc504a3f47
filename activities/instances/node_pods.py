"""The Pods of a Node that is drained: watches them, and evicts or deletes them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from activities.instances.disruption_budget import readiness
from domain.built_in_kinds import NODE, POD
from domain.instances.actions import EmptyNode
from domain.instances.constants import CORDONED_ANNOTATION, DO_NOT_DISRUPT
from domain.instances.interruption_policy import Budgets, Draining
from domain.instances.names import instance_of_node
from domain.resource import parse_timestamp, timestamp
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, at, mapping, sequence, text
from engine.kube.reflector import Followed

# Kubernetes' default for Pods that do not set one.
_POD_GRACE = timedelta(seconds=30)
# A Pod that is this much late will hardly end by itself: a finalizer keeps it, or its kubelet is away.
_OVERDUE = timedelta(seconds=30)
# The longest wait for a Pod whose kubelet is away: else a lifecycle hook would be held for hours. Cluster API, too,
# waits five minutes.
_UNREACHABLE = timedelta(minutes=5)
_MIRROR_POD = "kubernetes.io/config.mirror"
_ENDED = ("Succeeded", "Failed")


class NodePods:
    def __init__(self, store: Store, node: EmptyNode) -> None:
        self._node = node
        nodes = Followed(NODE, field_selector=f"metadata.name={node.node}", called="a Node that is drained")
        pods = Followed(POD, field_selector=f"spec.nodeName={node.node}", called="the Pods of a Node that is drained")
        self._nodes, self._pods = store.follow(nodes), store.follow(pods)
        self._changed = asyncio.Event()
        for mirror in (self._nodes, self._pods):
            mirror.listen(lambda *_: self._changed.set())

    async def left(self) -> list[JsonObject] | None:
        """The Pods to evict; None if the Node is gone or belongs to another instance now. Raises ApiError."""
        await self._nodes.served()
        await self._pods.served()
        return self._left

    @property
    def used_again(self) -> bool:
        """Whether another client has uncordoned the Node, although Perdure's annotation says it was cordoned."""
        found = self._nodes.get("", self._node.node) or {}
        marked = CORDONED_ANNOTATION in mapping(found, "metadata", "annotations")
        return marked and not mapping(found, "spec").get("unschedulable")

    async def emptied(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._left:
                    self._changed.clear()
                    await self._changed.wait()

    @property
    def _left(self) -> list[JsonObject] | None:
        found = self._nodes.get("", self._node.node)
        if found is None or instance_of(found) != self._node.key.name:
            return None
        left = [pod for pod in self._pods.all() if evictable(pod)]
        if readiness(found) != "Unknown":
            return left
        return [pod for pod in left if (ends := _grace_ends(pod)) is None or now() - ends <= _UNREACHABLE]


def instance_of(node: JsonObject) -> str:
    return instance_of_node(text(node, "spec", "providerID"))


def evictable(pod: Mapping[str, object]) -> bool:
    owners = [text(owner, "kind") for owner in sequence(pod, "metadata", "ownerReferences")]
    stays = "DaemonSet" in owners or _MIRROR_POD in mapping(pod, "metadata", "annotations")
    return not stays and text(pod, "status", "phase") not in _ENDED


def grace_of(pod: JsonObject) -> timedelta:
    if text(pod, "metadata", "deletionTimestamp"):
        return timedelta()
    seconds = at(pod, "spec", "terminationGracePeriodSeconds")
    return timedelta(seconds=seconds) if isinstance(seconds, int) else _POD_GRACE


def request_not_to_disrupt(pod: Mapping[str, object]) -> str:
    """A message if an annotation of the Pod asks not to disrupt it; empty otherwise."""
    annotations = mapping(pod, "metadata", "annotations")
    asks = next((name for name in DO_NOT_DISRUPT if annotations.get(name) == "true"), "")
    return f"Pod {name_of(pod)} asks not to be disrupted ({asks})" if asks else ""


def overdue(pod: Mapping[str, object]) -> str:
    ends = _grace_ends(pod)
    if ends is None or now() - ends < _OVERDUE:
        return ""
    finalizers = ", ".join(str(each) for each in sequence(pod, "metadata", "finalizers"))
    waits = f", and has the finalizers {finalizers}" if finalizers else ""
    return f"Pod {name_of(pod)} should have ended at {timestamp(ends)}{waits}"


def _grace_ends(pod: Mapping[str, object]) -> datetime | None:
    return parse_timestamp(text(pod, "metadata", "deletionTimestamp"))


async def evict(api: KubeApi, pod: JsonObject, how: Draining) -> str:
    """Evict a Pod. Returns the reason of a refusal; empty if there was none."""
    if text(pod, "metadata", "deletionTimestamp"):
        return ""
    if how.budgets is Budgets.IGNORE:
        return await delete(api, pod, how)
    meta = {"name": text(pod, "metadata", "name"), "namespace": text(pod, "metadata", "namespace")}
    # A Pod of the same name may run on another Node by now.
    options: JsonObject = {"preconditions": {"uid": text(pod, "metadata", "uid")}}
    if how.pod_grace is not None:
        options["gracePeriodSeconds"] = _seconds(how.pod_grace)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    return await _refusal(api.create_under(POD, meta["namespace"], meta["name"], "eviction", eviction))


async def delete(api: KubeApi, pod: JsonObject, how: Draining) -> str:
    """Delete a Pod. Returns the reason of a refusal; empty if there was none."""
    meta = mapping(pod, "metadata")
    name, namespace, uid = (text(meta, field) for field in ("name", "namespace", "uid"))
    return await _refusal(api.delete(POD, namespace, name, uid=uid, grace_period=_seconds(how.pod_grace)))


async def _refusal(call: Awaitable[object]) -> str:
    try:
        await call
    except (Absent, Conflict):
        return ""
    except ApiError as error:
        return error.message
    return ""


def _seconds(grace: timedelta | None) -> int | None:
    return None if grace is None else int(grace.total_seconds())


def name_of(pod: Mapping[str, object]) -> str:
    return f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}"
