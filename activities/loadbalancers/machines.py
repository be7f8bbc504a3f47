from __future__ import annotations

from temporalio import activity

from activities.activity_class import Activities
from activities.loadbalancers.pass_context import PassContext
from activities.replaced_operator import HELD_FOR
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.cloud.machine import ServedBalancer
from domain.loadbalancers.fleet_silence import AskFleet, Fleet
from domain.loadbalancers.machine.world import GrantAccess, MachineWorld, ObserveMachine, RevokeAccess
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.clock import now
from engine.kube import SECRET

_RBAC = "rbac.authorization.k8s.io"
RIGHTS = {
    kind.name: kind
    for kind in (
        Kind(name="ServiceAccount", group="", version="v1", plural="serviceaccounts", area=""),
        SECRET,
        Kind(name="Role", group=_RBAC, version="v1", plural="roles", area=""),
        Kind(name="RoleBinding", group=_RBAC, version="v1", plural="rolebindings", area=""),
    )
}


class MachineActivities(Activities):
    def __init__(self, context: PassContext) -> None:
        self._context = context

    @activity.defn(name=ObserveMachine.activity)
    async def observe_machine(self, look: ObserveMachine) -> MachineWorld:
        context, key = self._context, look.key
        view = await context.cache.view(look.seen, fresh=look.outdated)
        machine = await view.own(LoadBalancerMachine, key, look.memory.version)
        if machine is None:
            return MachineWorld(key=key, exists=False)
        hold = context.hold(machine.metadata)
        left_to = "" if hold or look.dry_run else await context.leads(LOAD_BALANCER_MACHINE)
        balancer, orphan, sets_left_to = None, False, ""
        if not (left_to or machine.metadata.deleting):
            reference = machine.spec.load_balancer_ref
            balancer = await view.get(LoadBalancer, reference.namespace, reference.name)
            orphan = not await context.is_managed(machine)
            sets_left_to = await context.leads(LOAD_BALANCER_SET) if orphan else ""
        return MachineWorld(
            key=key,
            hold=hold or left_to,
            machine=machine.model_copy(update={"status": machine.status.model_copy(update={"metrics": ()})}),
            balancer=None if balancer is None else ServedBalancer.of(balancer),
            orphan=orphan,
            left_to=left_to,
            sets_left_to=sets_left_to,
            again=now() + HELD_FOR if left_to or sets_left_to else None,
            timings=context.timings,
        )

    @activity.defn(name=GrantAccess.activity)
    async def grant_access(self, grant: GrantAccess) -> None:
        for body in grant.objects:
            await self._context.create(RIGHTS[str(body["kind"])], body, grant.namespace)

    @activity.defn(name=RevokeAccess.activity)
    async def revoke_access(self, revoke: RevokeAccess) -> None:
        for kind in revoke.kinds:
            await self._context.delete(RIGHTS[kind], revoke.namespace, revoke.name)

    @activity.defn(name=AskFleet.activity)
    async def ask_fleet(self, ask: AskFleet) -> Fleet:
        return await self._context.ask_fleet(ask)
