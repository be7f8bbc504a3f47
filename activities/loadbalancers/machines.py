"""The pass over a LoadBalancerMachine: its rights, its port, its server.

A machine that is settled is not looked at in the cloud again before something of it changes. While its server is built
the server alone is looked at, ever more seldom; so it is when it has been asked to go, the rest once it is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.leaders import HELD_FOR
from activities.loadbalancers.balancers import gone, left_alone
from activities.loadbalancers.ground import Ground
from activities.openstack.births import birth
from activities.openstack.observing import get_server, observe_leaving_machine, observe_machine
from activities.openstack.session import Project
from domain.decision import Decision, Outcome, earliest
from domain.identity import Kind
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.cloud.changes import machine_changed
from domain.loadbalancers.cloud.looks import look_of_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.steps import DeleteServer
from domain.loadbalancers.constants import MARKED_AT_ANNOTATION
from domain.loadbalancers.health import Standing, expires_at, health_of, mark_patches
from domain.loadbalancers.hindrances import Hindrance, Nature, notices_of, overdue
from domain.loadbalancers.machine.access import has_access
from domain.loadbalancers.machine.lifecycle import MachinePhase, MachineWork, next_look, work_for_machine
from domain.loadbalancers.passes import LoadBalancerWorld, Memory, PassMachine
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.loadbalancers.scaling import config_fault
from domain.loadbalancers.set_status import MachineStanding
from engine.clock import now
from engine.kube import SECRET

MOST_ROUNDS = 20

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
        return await until_undisturbed(look.key, lambda attempt: self._pass(look, fresh=attempt > 0))

    async def _pass(self, look: PassMachine, *, fresh: bool) -> LoadBalancerWorld:
        ground, key = self._ground, look.key
        view = ground.known.view(key, fresh=fresh)
        machine = await view.own(LoadBalancerMachine, look.memory.version)
        if machine is None:
            return LoadBalancerWorld(key=key, exists=False, decision=gone())
        hold = ground.hold(machine.metadata)
        if not (hold or look.dry_run) and (leader := await ground.leads(LOAD_BALANCER_MACHINE)):
            return left_alone(look, machine.owner, leader)
        reference = machine.spec.load_balancer_ref
        deleting = machine.metadata.deleting
        balancer = None if deleting else await view.get(LoadBalancer, reference.namespace, reference.name)
        if deleting and not (hold or look.dry_run or look.memory.leaving) and machine.status.server_id:
            hindrance = await self._send_away(machine)
            if hindrance is not None:
                await ground.tell(machine, notices_of(hindrance.problem, hindrance), now())
                return _leaving(look, machine, hindrance)
        cloud, hindrance = await self._look(machine, balancer, look.memory)
        # A machine that names its rights has them; one that does not may have some, and those are not made twice. One
        # that is given up unless it reports may have lost them: what is there stays, the rest is made again.
        lost = MARKED_AT_ANNOTATION in machine.metadata.annotations
        rights = set(RIGHTS) if deleting or (has_access(machine) and not lost) else set()
        work = self._work(machine, balancer, cloud, rights, hindrance)
        if hold or look.dry_run:
            decision = _decision(machine.owner, work, None, planned=_lines(work))
            return LoadBalancerWorld(key=key, hold=hold, known=look.memory, decision=decision)
        for _ in range(MOST_ROUNDS):
            if work.idle:
                break
            machine = await ground.patch(machine, work.patch)
            for body in work.create:
                await ground.create(RIGHTS[str(body["kind"])], body, key.namespace)
                rights.add(str(body["kind"]))
            if cloud is not None and work.steps:
                born = partial(birth, ground.blocking, ground.settings, machine, balancer, work.virtual_address)
                at = machine.spec.infrastructure
                taken, hindrance = await ground.take(at, key.namespace, work.steps, cloud, machine_changed, born)
                cloud = taken
            else:
                machine = await ground.patch(machine, work.status, status=True)
            for kind in work.remove:
                await ground.delete(RIGHTS[kind], key.namespace, (key.name,))
                rights.discard(kind)
            await ground.tell(balancer or machine, work.notices, now())
            if work.drop_finalizer:
                await ground.drop_finalizer(machine)
                return LoadBalancerWorld(key=key, exists=False, decision=gone())
            work = self._work(machine, balancer, cloud, rights, hindrance)
        await ground.tell(balancer or machine, work.notices, now())
        if hindrance is None and (work.problem or (deleting and work.why)):
            nature = Nature.REFUSED if work.problem else Nature.UNDER_WAY
            hindrance = Hindrance(why=work.why, nature=nature)
        machine, judged = await self._judged(machine)
        memory = _memory(look.memory, machine, balancer, work, hindrance, looked=cloud is not None and work.idle)
        await ground.tell(balancer or machine, overdue(hindrance, memory.hindered, now()), now())
        again = earliest([_again(machine, work, hindrance, memory), judged])
        return LoadBalancerWorld(key=key, known=memory, decision=_decision(machine.owner, work, again))

    async def _judged(self, machine: LoadBalancerMachine) -> tuple[LoadBalancerMachine, datetime | None]:
        """A machine that no set looks after, marked and given up as by a set; when another look at it can differ.

        Of an agent that falls silent the watcher tells sets alone, so the moment of that is held here.
        """
        ground, meta = self._ground, machine.metadata
        if meta.deleting or await ground.looked_after(machine):
            return machine, None
        if await ground.leads(LOAD_BALANCER_SET):
            return machine, now() + HELD_FOR
        health = health_of(machine, now(), ground.timings)
        if health.standing is Standing.CONDEMNED:
            if health.reported and not health.hopeless:
                standing = MachineStanding(machine=machine, health=health)
                if config_fault([standing], now(), ground.timings) or (await ground.fleet(now())).silent:
                    return machine, now() + ground.timings.window
            await ground.delete(LOAD_BALANCER_MACHINE, meta.namespace, (meta.name,))
            return machine, None
        patch, status = mark_patches(machine, health)
        machine = await ground.patch(await ground.patch(machine, patch), status, status=True)
        moment, silent = now(), expires_at(machine, ground.timings)
        change = health_of(machine, moment, ground.timings).next_change
        return machine, earliest([change, silent if silent and silent > moment else None])

    def _work(
        self,
        machine: LoadBalancerMachine,
        balancer: LoadBalancer | None,
        cloud: MachineCloud | None,
        rights: set[str],
        hindrance: Hindrance | None,
    ) -> MachineWork:
        return work_for_machine(machine, balancer, cloud, rights, now(), self._ground.timings, hindrance)

    async def _look(
        self, machine: LoadBalancerMachine, balancer: LoadBalancer | None, memory: Memory
    ) -> tuple[MachineCloud | None, Hindrance | None]:
        meta, server = machine.metadata, machine.status.server_id
        see: Callable[[Project], MachineCloud] = partial(observe_machine, machine=machine)
        if meta.deleting and memory.leaving and server:
            see = partial(observe_leaving_machine, machine=machine)
        elif not meta.deleting and memory.settled == look_of_machine(machine, balancer):
            if not (memory.building and server):
                return None, None
            see = partial(_only_server, server_id=server)
        return await self._ground.look(machine.spec.infrastructure, meta.namespace, see)

    async def _send_away(self, machine: LoadBalancerMachine) -> Hindrance | None:
        """The recorded server is asked to go before anything is looked at; None if it does not exist any more."""
        at, namespace = machine.spec.infrastructure, machine.metadata.namespace
        step = DeleteServer(id=machine.status.server_id or "")
        _, hindrance = await self._ground.take(at, namespace, (step,), MachineCloud(), machine_changed)
        return hindrance


def _only_server(project: Project, server_id: str) -> MachineCloud:
    found = get_server(project, server_id)
    return MachineCloud(servers=(found,) if found else (), servers_only=True)


def _leaving(look: PassMachine, machine: LoadBalancerMachine, hindrance: Hindrance) -> LoadBalancerWorld:
    asked = hindrance.nature is Nature.UNDER_WAY
    memory = Memory(leaving=asked, hindered=look.memory.hindered or now(), version=machine.metadata.resource_version)
    work = MachineWork(phase=MachinePhase.DELETING, why=hindrance.why)
    return LoadBalancerWorld(
        key=machine.key, known=memory, decision=_decision(machine.owner, work, _again(machine, work, hindrance, memory))
    )


def _memory(
    before: Memory,
    machine: LoadBalancerMachine,
    balancer: LoadBalancer | None,
    work: MachineWork,
    hindrance: Hindrance | None,
    *,
    looked: bool,
) -> Memory:
    version = machine.metadata.resource_version
    if hindrance is not None:
        return Memory(leaving=before.leaving, hindered=before.hindered or now(), version=version)
    settled = look_of_machine(machine, balancer) if looked or before.settled else ""
    return Memory(settled=settled, building=work.building, version=version)


def _again(
    machine: LoadBalancerMachine, work: MachineWork, hindrance: Hindrance | None, memory: Memory
) -> datetime | None:
    moment, born = now(), machine.metadata.creation_timestamp
    if hindrance is not None:
        return hindrance.until(memory.hindered or moment, moment)
    if not work.building or born is None:
        return None
    return moment + next_look(moment - born)


_AWAITED = {
    MachinePhase.BOOTING: "its agent's first report",
    MachinePhase.MARKED: "its recovery",
    MachinePhase.GIVEN_UP: "its set, which replaces it",
}


def _decision(owner: str, work: MachineWork, again: datetime | None, planned: Sequence[str] = ()) -> Decision:
    settled = work.phase is MachinePhase.READY
    return Decision(
        phase=work.phase.value,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why=work.problem or work.why or "its server runs",
        waits_for=() if settled else (work.problem or _AWAITED.get(work.phase) or work.why or "the agent's report",),
        deadline=again,
        at_deadline="observe again" if again else "",
        owner=owner,
        planned=tuple(planned),
    )


def _lines(work: MachineWork) -> list[str]:
    lines = [f"make {body['kind']}" for body in work.create] + [step.summary for step in work.steps]
    return lines + [f"delete {kind}" for kind in work.remove]
