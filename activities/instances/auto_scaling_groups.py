"""The pass over an Auto Scaling group: the worst state of its instances becomes its AWSMachinePool's label.

The annotation beside it lists each instance that is not in service.
"""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.activity_class import Activities
from activities.aws.instances import describe_group
from activities.instances import metrics
from activities.instances.aws_queries import ServedPlaces
from activities.instances.cache import InstanceCache
from domain.control_annotations import paused
from domain.decision import Decision, Outcome
from domain.instances import AUTO_SCALING_GROUP, AWS_MACHINE_POOL
from domain.instances.constants import GROUP_STATE_LABEL
from domain.instances.machine_pool_labels import GroupRecord, GroupState, group_state, group_story, merged, pool_patch
from domain.instances.passes import GroupWorld, LookAtGroup
from domain.instances.resources import AWSMachinePool
from domain.instances.workflow_ids import GroupKey
from domain.writes import JsonPatch
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.json import mapping
from engine.pauses import paused_area

_SETTLED = (GroupState.IN_SERVICE, GroupState.WARM)


class GroupActivities(Activities):
    def __init__(self, kube: KubeApi, cache: InstanceCache, served: ServedPlaces, *, observing: bool) -> None:
        self._kube = kube
        self._cache = cache
        self._served = served
        self._observing = observing

    @activity.defn(name=LookAtGroup.activity)
    async def look_at_group(self, look: LookAtGroup) -> GroupWorld:
        await self._cache.ready()
        key = GroupKey.of(look.key)
        pools = self._cache.pools_of(key)
        if not pools:
            return _unmanaged(look, "no AWSMachinePool names this group")
        if not self._served.serves(key.account, key.region):
            return _unmanaged(look, f"PERDURE_INSTANCES_QUEUES does not name {key.account}/{key.region}")
        caller = self._served.caller(key.account, key.region)
        found = await asyncio.to_thread(describe_group, caller, key.region, key.group)
        # A group that does not exist shows no earlier results.
        record = merged(look.memory, found.record) if found else GroupRecord()
        instances = found.instances if found else {}
        state = group_state(instances.values(), record)
        for pool in pools:
            if not (look.dry_run or self._observing or paused(pool.metadata) or paused_area(AUTO_SCALING_GROUP.area)):
                await self._label(pool, pool_patch(pool, state, group_story(instances, record)))
        return GroupWorld(key=look.key, decision=_decision(pools[0], state))

    async def _label(self, pool: AWSMachinePool, patch: JsonPatch) -> None:
        if not patch:
            return
        try:
            answer = await self._kube.patch(AWS_MACHINE_POOL, pool.metadata.namespace, pool.metadata.name, patch)
        except Absent:
            return
        self._cache.learn(AWS_MACHINE_POOL, answer)
        if GROUP_STATE_LABEL in mapping(patch, "metadata", "labels"):
            metrics.LABELS.labels(GROUP_STATE_LABEL).inc()


def _unmanaged(look: LookAtGroup, why: str) -> GroupWorld:
    gone = Decision(phase="Unmanaged", outcome=Outcome.GONE, why=why)
    return GroupWorld(key=look.key, exists=False, decision=gone)


def _decision(pool: AWSMachinePool, state: GroupState | None) -> Decision:
    settled = state in _SETTLED or state is None
    word = state.value if state else "empty"
    return Decision(
        phase=word,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why="its label is up to date",
        waits_for=() if settled else ("its instances",),
        owner=pool.key.path,
    )
