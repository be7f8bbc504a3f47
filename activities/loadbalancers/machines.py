"""The pass over a LoadBalancerMachine: its rights, its port, its server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.loadbalancers.balancers import gone
from activities.loadbalancers.ground import Ground
from activities.openstack.births import birth
from activities.openstack.observing import observe_machine
from domain.decision import Decision, Outcome
from domain.identity import Kind
from domain.loadbalancers.actions import CreateServer, ProjectReference
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.changes import machine_changed
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.machine.lifecycle import MachinePhase, MachineWork, work_for_machine
from domain.loadbalancers.passes import LoadBalancerWorld, PassMachine
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from engine.clock import now
from engine.errors import Absent
from engine.kube import SECRET

MOST_ROUNDS = 20
DRIFT = timedelta(minutes=5)
# How often a server that is being built is looked at, by how long it has been asked for.
_LOOKS = ((timedelta(seconds=15), timedelta(seconds=1)), (timedelta(minutes=2), timedelta(seconds=5)))
_SELDOM = timedelta(seconds=20)

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


class MachineActivities:
    """The LoadBalancerMachine's activity."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_machine,)

    @activity.defn(name=PassMachine.activity)
    async def pass_machine(self, look: PassMachine) -> LoadBalancerWorld:
        """One pass; another one at once where somebody has written what was read."""
        return await until_undisturbed(look.key, lambda _: self._pass(look))

    async def _pass(self, look: PassMachine) -> LoadBalancerWorld:
        ground, key = self._ground, look.key
        machine = await ground.own(LoadBalancerMachine, key)
        if machine is None:
            return LoadBalancerWorld(key=key, exists=False, decision=gone())
        reference = machine.spec.load_balancer_ref
        balancer = await ground.get(LoadBalancer, reference.namespace, reference.name)
        project = await ground.project(machine.spec.infrastructure, key.namespace)
        cloud = await ground.observe(observe_machine, project, machine)
        rights = await self._rights(machine)
        hold = ground.hold(machine.metadata)
        work = work_for_machine(machine, balancer, cloud, rights, now())
        if hold or look.dry_run:
            return LoadBalancerWorld(key=key, hold=hold, decision=_decision(machine, work, planned=_lines(work)))
        for _ in range(MOST_ROUNDS):
            if work.idle:
                break
            machine = await ground.patch(machine, work.patch)
            for body in work.create:
                await ground.create(RIGHTS[str(body["kind"])], body, key.namespace)
                rights.add(str(body["kind"]))
            for step in work.steps:
                data = self._born(machine, balancer, work, step) if balancer else None
                cloud = machine_changed(cloud, await ground.carry_out(project, step, data))
            machine = await ground.patch(machine, work.status, status=True)
            for kind in work.remove:
                await ground.delete(RIGHTS[kind], key.namespace, (key.name,))
                rights.discard(kind)
            if balancer is not None:
                await ground.tell(balancer, work.notices, now())
            if work.drop_finalizer:
                await ground.drop_finalizer(machine)
                return LoadBalancerWorld(key=key, exists=False, decision=gone())
            work = work_for_machine(machine, balancer, cloud, rights, now())
        return LoadBalancerWorld(key=key, decision=_decision(machine, work))

    async def _rights(self, machine: LoadBalancerMachine) -> set[str]:
        """Which objects of its rights exist."""
        found = set()
        for name, kind in RIGHTS.items():
            try:
                await self._ground.kube.get(kind, machine.metadata.namespace, machine.metadata.name)
            except Absent:
                continue
            found.add(name)
        return found

    def _born(
        self, machine: LoadBalancerMachine, balancer: LoadBalancer, work: MachineWork, step: Step
    ) -> Callable[[], str] | None:
        """What makes the user data of a server that this step makes, when it is sent."""
        if not isinstance(step, steps.CreateServer):
            return None
        action = CreateServer(
            project=ProjectReference.of(machine.spec.infrastructure, machine.metadata.namespace),
            step=step,
            machine=machine.key,
            balancer=balancer.key,
            virtual_address=work.virtual_address,
        )
        return partial(birth, self._ground.blocking, self._ground.settings, action)


def _decision(machine: LoadBalancerMachine, work: MachineWork, planned: Sequence[str] = ()) -> Decision:
    settled = work.phase is MachinePhase.READY
    return Decision(
        phase=work.phase.value,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why=work.problem or work.why or "its server runs",
        waits_for=() if settled else (work.problem or work.why or "the agent's report",),
        deadline=_next_look(machine, work),
        at_deadline="look again",
        planned=tuple(planned),
    )


def _next_look(machine: LoadBalancerMachine, work: MachineWork) -> datetime:
    moment, born = now(), machine.metadata.creation_timestamp
    if not work.building or born is None:
        return moment + DRIFT
    age = moment - born
    return moment + next((pause for limit, pause in _LOOKS if age < limit), _SELDOM)


def _lines(work: MachineWork) -> list[str]:
    lines = [f"make {body['kind']}" for body in work.create] + [step.summary for step in work.steps]
    return lines + [f"delete {kind}" for kind in work.remove]
