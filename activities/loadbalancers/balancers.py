from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.loadbalancers.pass_context import PassContext
from activities.replaced_operator import HELD_FOR
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.balancer_world import BalancerWorld, CreateSet, DeleteSets, ObserveBalancer, PatchSet
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.resource import ObjectMeta
from domain.writes import JsonPatch
from engine.clock import now
from engine.errors import ApiError, Conflict


class LoadBalancerActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self._context = context

    @activity.defn(name=ObserveBalancer.activity)
    async def observe_load_balancer(self, look: ObserveBalancer) -> BalancerWorld:
        context, key = self._context, look.key
        view = await context.cache.view(look.seen, fresh=look.outdated)
        balancer = await view.own(LoadBalancer, key, look.memory.version)
        if balancer is None:
            return BalancerWorld(key=key, exists=False)
        hold = context.hold(balancer.metadata)
        left_to = "" if hold or look.dry_run else await context.leads(LOAD_BALANCER)
        labels = balancer.spec.selector.match_labels
        return BalancerWorld(
            key=key,
            hold=hold or left_to,
            balancer=balancer.model_copy(update={"spec": balancer.spec.model_copy(update={"endpoints": ()})}),
            sets=() if left_to else await view.all(LoadBalancerSet, key.namespace, labels),
            left_to=left_to,
            again=now() + HELD_FOR if left_to else None,
        )

    @activity.defn(name=CreateSet.activity)
    async def create_set(self, create: CreateSet) -> LoadBalancerSet:
        wanted, context = LoadBalancerSet.model_validate(create.document), self._context
        name, labels = wanted.metadata.name, wanted.metadata.labels
        found = await context.create(LOAD_BALANCER_SET, create.document, create.namespace)
        if found is None and (found := await context.cache.fresh(LOAD_BALANCER_SET, create.namespace, name)):
            there = LoadBalancerSet.model_validate(found).metadata
            if _owners(wanted.metadata).isdisjoint(_owners(there)):
                message = f"LoadBalancerSet {create.namespace}/{name} exists and belongs to another owner: delete it"
                raise Conflict(message)
            if not labels.items() <= there.labels.items():  # a person has changed them, and sets are found by labels
                patch: JsonPatch = {"metadata": {"uid": there.uid, "labels": labels}}
                found = await context.patch(LOAD_BALANCER_SET, create.namespace, name, patch)
        if found is None:
            raise Conflict(f"LoadBalancerSet {create.namespace}/{name} has just been deleted")
        return LoadBalancerSet.model_validate(found)

    @activity.defn(name=PatchSet.activity)
    async def patch_set(self, change: PatchSet) -> None:
        await self._context.patch(LOAD_BALANCER_SET, change.namespace, change.name, change.patch)

    @activity.defn(name=DeleteSets.activity)
    async def delete_sets(self, deletion: DeleteSets) -> None:
        refused: list[ApiError] = []
        for name in deletion.names:
            try:
                await self._context.delete(LOAD_BALANCER_SET, deletion.namespace, name)
            except ApiError as error:
                refused.append(error)
        if refused:
            raise refused[0]


def _owners(meta: ObjectMeta) -> set[str]:
    return {each.uid for each in meta.owner_references}
