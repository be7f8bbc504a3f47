"""Calls to Temporal: hand events over to instances' workflows; send results of launches and terminations to groups'
workflows, and wake these workflows.
"""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client

from domain.instances.event_handover import ENDED, HAND_OVER, HandOver, Taken, update_id
from domain.instances.events import InstanceEvent
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.temporal import ask, signal_with_start, wake
from starters.events.dispatcher import HandOverCall, WakeGroup


def hand_over(client: Client, cluster: str) -> HandOverCall:
    """A function that hands events over, and starts missing workflows on this cluster's workers."""

    async def to_instance(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        about = HandOver(events=tuple(events))
        id_ = update_id(events, receives)
        return await ask(client, key.lifecycle_in(cluster), HAND_OVER, about, id_=id_, answer=Taken)

    return to_instance


def wake_group(client: Client, cluster: str) -> WakeGroup:
    async def wake_one(group: GroupKey, ended: GroupRecord) -> None:
        lifecycle = group.lifecycle_in(cluster)
        if ended.results:
            await signal_with_start(client, lifecycle, ENDED, ended)
        await wake(client, lifecycle)

    return wake_one
