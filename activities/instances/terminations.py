"""Terminates instances of drained Nodes.

Before a termination, this module reads the Node from the API server again (its uid, and the instance and region in its
provider id), and the instance from EC2. Decisions order a termination only if AWS has confirmed the cause within the
last minute.
"""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.aws.instances import terminate
from activities.instances import metrics
from activities.instances.aws_queries import ServedPlaces
from domain.control_annotations import paused
from domain.instances import NODE
from domain.instances.actions import Done, TerminateInstance
from domain.instances.notices import on_each
from domain.instances.provider_ids import region_of_provider_id
from domain.instances.resources import Node
from domain.instances.workflow_ids import InstanceKey
from domain.notices import warning
from engine.clock import now
from engine.errors import Denied, Invalid
from engine.kube import KubeApi


class TerminationActivities(Activities):
    def __init__(self, kube: KubeApi, served: ServedPlaces) -> None:
        self._kube = kube
        self._served = served

    @activity.defn(name=TerminateInstance.activity)
    async def terminate(self, termination: TerminateInstance) -> Done:
        """Terminate an instance, unless it has ended or is ending.

        Raises:
            Absent: the Node is gone.
            Denied: the role may not terminate the instance.
            Invalid: the Node was replaced, has another instance, or is uncordoned, paused or being deleted; or the
                instance is in another account or region.
        """
        try:
            return await self._terminated(termination)
        except (Denied, Invalid):
            metrics.reacted("terminate-instance", termination.because, metrics.Outcome.REFUSED)
            raise

    async def _terminated(self, termination: TerminateInstance) -> Done:
        key = InstanceKey.of(termination.key)
        node = Node.model_validate(await self._kube.get(NODE, "", termination.node))
        if why := _unlike(node, key, termination.uid):
            raise Invalid(f"Node {termination.node} {why}: {key.instance_id} is not terminated", code="NotTheInstance")
        caller = self._served.caller(key.account, key.region)
        if await asyncio.to_thread(terminate, caller, key.region, key.account, key.instance_id):
            metrics.reacted("terminate-instance", termination.because)
        elif not attempt.repeated():
            return Done(at=now())
        message = f"instance {key.instance_id} is terminated because of {termination.cause}"
        return Done(at=now(), notices=on_each(termination.about, warning, "InstanceTerminated", message))


def _unlike(node: Node, key: InstanceKey, uid: str) -> str:
    if node.metadata.uid != uid or node.instance_id != key.instance_id:
        return "was replaced by another Node of this name, or belongs to another instance"
    if region_of_provider_id(node.spec.provider_id) not in ("", key.region):
        return "is in another region"
    if node.metadata.deleting:
        return "is being deleted"
    if not node.spec.unschedulable:
        return "has been uncordoned"
    return "is paused" if paused(node.metadata) else ""
