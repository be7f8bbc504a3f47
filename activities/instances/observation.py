"""The pass over an instance: reads its objects from the cache, and corrects its labels.

The labelled object is the AWSMachine; or a Node of Perdure's own cluster, if no AWSMachine and no machine pool has the
instance. While one AWSMachine replaces another, both may name the instance. Both are labelled; reactions use the oldest
one that is not being deleted.

The pass normally reads neither cloud nor API server, so an event costs one activity and, if a label changes, one
request. A label is written before any other action for the instance, even for paused machines.
"""

from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.cache import InstanceCache
from activities.instances.state_verification import Checks
from domain.instances import EC2_INSTANCE
from domain.instances.actions import CountRefuted, LookAtInstance
from domain.instances.constants import STATE_LABEL
from domain.instances.instance_lifecycle import patch_for
from domain.instances.interruption_policy import ReactionPolicy
from domain.instances.machine_labels import recalled
from domain.instances.observed import InstanceMemory, InstanceWorld
from domain.instances.policy_selection import selected
from domain.instances.resources import AWSMachine, AWSMachinePool, Node
from domain.instances.workflow_ids import GroupKey, InstanceKey
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import Absent
from engine.kube import KubeApi
from engine.kube.json import mapping
from engine.pauses import paused_area


class LookActivities(Activities):
    def __init__(
        self,
        kube: KubeApi,
        cache: InstanceCache,
        checks: Checks,
        policy: ReactionPolicy,
        *,
        observing: bool,
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._checks = checks
        self._policy = policy
        self._observing = observing

    @activity.defn(name=LookAtInstance.activity)
    async def look(self, look: LookAtInstance) -> InstanceWorld:
        await self._cache.ready()
        key = InstanceKey.of(look.key)
        machine, pool = await self._cache.machine(key, look.version), self._cache.pool(key)
        node = await self._cache.node(key, look.version) if machine is None and pool is None else None
        if machine is None and node is None:
            pool = pool or self._pool_by_hook(look)
        seen = self._seen(look, machine, pool, node)
        labelled = seen.labelled
        if labelled is None or look.dry_run:
            return seen
        record = recalled(look.record, labelled.metadata) if look.recall else look.record
        memory = InstanceMemory(record=record, tags=look.tags)
        known = seen.model_copy(update={"known": memory}).with_launch_result()
        for each in self._cache.siblings(key, machine) if machine else ():
            if patch := patch_for(known.model_copy(update={"machine": each}), look.at):
                await self._patched(each, patch)
        patch = patch_for(known, look.at)
        if not patch:
            return seen
        if record.only_to_check and record.state is not None and STATE_LABEL in mapping(patch, "metadata", "labels"):
            self._checks.expect(record.key, record.state, now())
        return seen.model_copy(update={"machine" if machine else "own_node": await self._patched(labelled, patch)})

    @activity.defn(name=CountRefuted.activity)
    async def count_refuted(self, claim: CountRefuted) -> None:
        metrics.REFUTED.inc()

    def _seen(
        self, look: LookAtInstance, machine: AWSMachine | None, pool: AWSMachinePool | None, node: Node | None
    ) -> InstanceWorld:
        owner = self._cache.owner(machine) if machine else None
        paused = paused_area(EC2_INSTANCE.area)
        choice = self._cache.choice(selected(machine, owner, pool, look.tags, node), self._policy)
        return InstanceWorld(
            key=look.key,
            hold=paused,
            machine=machine,
            pool=pool,
            owner=owner,
            own_node=node,
            replacement=self._cache.replacement(InstanceKey.of(look.key)),
            policy=choice.policy,
            tag_keys=choice.tag_keys,
            chosen_by=look.tags,
            observing=self._observing or bool(paused),
            may_appear=self._cache.may_appear,
            account_known=machine is not None and bool(self._cache.account_of(machine)),
        )

    def _pool_by_hook(self, look: LookAtInstance) -> AWSMachinePool | None:
        """The pool of a group that an open hook names. Events can be forged, so this is less trustworthy than an object
        that lists the instance.
        """
        key = InstanceKey.of(look.key)
        groups = (GroupKey(account=key.account, region=key.region, group=hook.group) for hook in look.record.open_hooks)
        return next((pool for group in groups for pool in self._cache.pools_of(group)), None)

    async def _patched(self, labelled: AWSMachine | Node, patch: JsonPatch) -> AWSMachine | Node | None:
        kind, meta = labelled.kind_of, labelled.metadata
        try:
            answer = await self._kube.patch(kind, meta.namespace, meta.name, patch)
        except Absent:
            return None
        self._cache.learn(kind, answer)
        labels = mapping(patch, "metadata", "labels")
        for label in labels:
            metrics.LABELS.labels(label).inc()
        return type(labelled).model_validate(answer)
