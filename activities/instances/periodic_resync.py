"""The sweep: every instance and group is checked periodically, because events may be lost.

If EC2's answer differs from an instance's label, or from the date in its annotation, the answer is sent to the
instance's workflow, which then needs no query of its own. It is also sent if the annotation has an open lifecycle
action. If an AWSMachinePool shows another state than its group has, the group's workflow is woken and queries AWS. The
workflow of an instance whose Machine is being replaced is woken as well: if it was lost, a new workflow completes or
withdraws the replacement.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta

from temporalio import activity
from temporalio.client import Client

from activities.activity_class import Activities
from activities.instances import metrics
from activities.instances.aws_queries import ServedPlaces
from activities.instances.bulk_queries import ask_about_all, ask_about_groups
from activities.instances.cache import InstanceCache
from domain.control_annotations import paused
from domain.instances.actions import Answer
from domain.instances.event_handover import ANSWERED
from domain.instances.machine_pool_labels import group_differs
from domain.instances.passes import SweepInstances
from domain.instances.periodic_resync import differs
from domain.instances.resources import AWSMachinePool
from domain.instances.workflow_ids import GroupKey
from domain.passes import SweptWorld
from engine.clock import now
from engine.temporal import signal_with_start, wake


class SweepActivities(Activities):
    def __init__(self, client: Client, cache: InstanceCache, served: ServedPlaces, interval: timedelta) -> None:
        self._client = client
        self._cache = cache
        self._served = served
        self._interval = interval

    @activity.defn(name=SweepInstances.activity)
    async def sweep(self, look: SweepInstances) -> SweptWorld:
        moment, due = now(), look.memory.next_sweep
        if due is not None and moment < due:
            return look.swept("all instances have been compared", due)
        await self._cache.ready()
        machines, pools, replaced = self._cache.instances(), self._pools(), self._cache.replaced()
        if not look.dry_run:
            for key in replaced:
                await wake(self._client, key.lifecycle_in(look.key.cluster))
        # The sweep goes on while any object exists, even without an instance, because an object that gets its instance
        # later does not wake the sweep.
        if self._cache.empty and not replaced:
            return look.swept("there is no AWSMachine, AWSMachinePool or Node", None)
        bulk = await ask_about_all(self._served, machines, moment, activity.heartbeat, self._cache.account_of)
        differing = {key: facts for each, (key, facts) in bulk.facts.items() if differs(machines[each], facts)}
        if not look.dry_run:
            for key, facts in differing.items():
                await signal_with_start(self._client, key.lifecycle_in(look.key.cluster), ANSWERED, Answer(facts=facts))
                metrics.RESYNC.labels(facts.state.value if facts.state else "absent").inc()
        groups = await ask_about_groups(self._served, pools, activity.heartbeat)
        changed = [
            key for key, found in groups.instances.items() if any(group_differs(pool, found) for pool in pools[key])
        ]
        if not look.dry_run:
            for group in changed:
                await wake(self._client, group.lifecycle_in(look.key.cluster))
        lines = [f"{len(bulk.facts)} instances were compared, {len(differing)} differed"]
        lines += [f"{len(groups.instances)} groups were compared, {len(changed)} differed"] if pools else []
        return look.swept("; ".join((*lines, *bulk.troubles, *groups.troubles)), moment + self._interval)

    def _pools(self) -> dict[GroupKey, list[AWSMachinePool]]:
        found: defaultdict[GroupKey, list[AWSMachinePool]] = defaultdict(list)
        for pool in self._cache.pools():
            if pool.group is not None and not paused(pool.metadata):
                found[pool.group].append(pool)
        return found
