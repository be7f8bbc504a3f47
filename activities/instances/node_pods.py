"""The Pods of a Node that is drained: watches them, and evicts or deletes them one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from datetime import timedelta

from activities.instances.disruption_budget import readiness
from domain.built_in_kinds import NODE, POD
from domain.instances.actions import EmptyNode
from domain.instances.constants import CORDONED_ANNOTATION
from domain.instances.drained_pods import Pod
from domain.instances.interruption_policy import Budgets, Draining
from domain.instances.provider_ids import instance_of_node
from engine.clock import now
from engine.errors import Absent, ApiError, Conflict
from engine.kube import KubeApi
from engine.kube.informer_cache import Store
from engine.kube.json import JsonObject, mapping, text
from engine.kube.reflector import Followed


class NodePods:
    def __init__(self, store: Store, node: EmptyNode) -> None:
        self._node = node
        nodes = Followed(NODE, field_selector=f"metadata.name={node.node}", called="a Node that is drained")
        pods = Followed(POD, field_selector=f"spec.nodeName={node.node}", called="the Pods of a Node that is drained")
        self._nodes, self._pods = store.follow(nodes), store.follow(pods)
        self._changed = asyncio.Event()
        for mirror in (self._nodes, self._pods):
            mirror.listen(lambda *_: self._changed.set())

    async def left(self) -> list[Pod] | None:
        """The Pods to evict; None if the Node is gone or belongs to another instance now. Raises ApiError."""
        await self._nodes.served()
        await self._pods.served()
        left = self._left
        return None if left is None else list(left)

    @property
    def used_again(self) -> bool:
        """Whether another client has uncordoned the Node, although Perdure's annotation says it was cordoned."""
        found = self._nodes.get("", self._node.node) or {}
        marked = CORDONED_ANNOTATION in mapping(found, "metadata", "annotations")
        return marked and not mapping(found, "spec").get("unschedulable")

    async def emptied(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(self._left or ()):
                    self._changed.clear()
                    await self._changed.wait()

    @property
    def _left(self) -> Iterator[Pod] | None:
        found = self._nodes.get("", self._node.node)
        if found is None or instance_of(found) != self._node.key.name:
            return None
        away = readiness(found) == "Unknown"
        pods = map(Pod.model_validate, self._pods.all())
        return (pod for pod in pods if pod.evictable and not (away and pod.given_up(now())))


def instance_of(node: JsonObject) -> str:
    return instance_of_node(text(node, "spec", "providerID"))


async def evict(api: KubeApi, pod: Pod, how: Draining) -> str:
    """Returns the reason of a refusal; empty if there was none."""
    if pod.metadata.deleting:
        return ""
    if how.budgets is Budgets.IGNORE:
        return await delete(api, pod, how)
    meta = pod.metadata.model_dump(include={"name", "namespace"})
    # A Pod of the same name may run on another Node by now.
    options: JsonObject = {"preconditions": {"uid": pod.metadata.uid}}
    if how.pod_grace is not None:
        options["gracePeriodSeconds"] = _seconds(how.pod_grace)
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta, "deleteOptions": options}
    return await _refusal(api.create_under(POD, meta["namespace"], meta["name"], "eviction", eviction))


async def delete(api: KubeApi, pod: Pod, how: Draining) -> str:
    """Returns the reason of a refusal; empty if there was none."""
    meta, grace = pod.metadata, _seconds(how.pod_grace)
    return await _refusal(api.delete(POD, meta.namespace, meta.name, uid=meta.uid, grace_period=grace))


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
