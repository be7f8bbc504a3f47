"""The pass over a LoadBalancerSet. `domain/loadbalancers/set_lifecycle.py` decides."""

from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.inline_driver import Inline, effects_of
from activities.kube import KubeActivities
from activities.loadbalancers.pass_context import PassContext
from activities.replaced_operator import HELD_FOR
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.fleet_silence import AskFleet
from domain.loadbalancers.new_machine import machine_document
from domain.loadbalancers.passes import LoadBalancerWorld, PassSet
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.selectors import machines_of, selects
from domain.loadbalancers.set_lifecycle import decide_set
from domain.loadbalancers.set_world import CreateMachine, DeleteMachine, FoundMachine, PatchMachine, SetWorld
from engine.clock import now
from engine.errors import Conflict
from engine.kube.json import text


class SetActivities(Activities):
    def __init__(self, context: PassContext, writes: KubeActivities) -> None:
        self._context = context
        own = (self.create_machine, self.patch_machine, self.delete_machine)
        effects = effects_of(writes.patch, writes.record_events, *own)
        self._effects = {**effects, AskFleet.activity: context.ask_fleet}

    @activity.defn(name=PassSet.activity)
    async def pass_set(self, look: PassSet) -> LoadBalancerWorld:

        async def observe(fresh: bool) -> SetWorld:
            return await self._observe(look, fresh=fresh)

        passed = await Inline(decide_set, self._effects, observe, cached=True).carry_out(look, look.memory)
        return passed.as_world(LoadBalancerWorld)

    async def _observe(self, look: PassSet, *, fresh: bool) -> SetWorld:
        context, key = self._context, look.key
        view = await context.cache.view(look.seen, fresh=fresh)
        machine_set = await view.own(LoadBalancerSet, key, look.memory.version)
        if machine_set is None:
            return SetWorld(key=key, exists=False)
        hold = context.hold(machine_set.metadata)
        left_to = "" if hold or look.dry_run else await context.leads(LOAD_BALANCER_SET)
        labels = machine_set.spec.selector.match_labels
        found = () if left_to else await view.all(LoadBalancerMachine, key.namespace, labels)
        return SetWorld(
            key=key,
            hold=hold or left_to,
            machine_set=machine_set,
            machines=machines_of(machine_set, found),
            timings=context.timings,
            left_to=left_to,
            again=now() + HELD_FOR if left_to else None,
        )

    # --- effects ---

    @activity.defn(name=CreateMachine.activity)
    async def create_machine(self, create: CreateMachine) -> FoundMachine:
        """Create a machine, or find the existing machine of this name; the result is empty if the set does not select
        the existing machine.

        Raises Conflict if the existing machine is deleted meanwhile.
        """
        machine_set, namespace = create.machine_set, create.machine_set.metadata.namespace
        body = machine_document(machine_set, create.name)
        if (made := await self._context.create(LOAD_BALANCER_MACHINE, body, namespace)) is not None:
            return FoundMachine(machine=LoadBalancerMachine.model_validate(made))
        there = await self._context.cache.fresh(LOAD_BALANCER_MACHINE, namespace, create.name)
        if there is None:
            raise Conflict(f"LoadBalancerMachine {namespace}/{create.name} has just been deleted")
        machine = LoadBalancerMachine.model_validate(there)
        return FoundMachine(machine=machine if selects(machine_set, machine) else None)

    @activity.defn(name=PatchMachine.activity)
    async def patch_machine(self, change: PatchMachine) -> FoundMachine:
        """With `version`, raises Conflict if the resourceVersion differs."""
        of = (LOAD_BALANCER_MACHINE, change.machine_set.metadata.namespace, change.name)
        version, found = change.version, None
        for patch, status in ((change.patch, False), (change.status, True)):
            if patch:
                if (found := await self._context.patch(*of, patch, status=status, version=version)) is None:
                    return FoundMachine()
                version = text(found, "metadata", "resourceVersion") if version else ""
        return FoundMachine(machine=LoadBalancerMachine.model_validate(found))

    @activity.defn(name=DeleteMachine.activity)
    async def delete_machine(self, deletion: DeleteMachine) -> FoundMachine:
        namespace = deletion.machine_set.metadata.namespace
        left = await self._context.delete(LOAD_BALANCER_MACHINE, namespace, deletion.name)
        return FoundMachine(machine=LoadBalancerMachine.model_validate(left) if left else None)
