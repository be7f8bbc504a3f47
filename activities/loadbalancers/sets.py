"""The pass over a LoadBalancerSet: its machines counted, judged, made and given up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.leaders import HELD_FOR
from activities.loadbalancers.ground import Ground
from activities.loadbalancers.known import View
from domain.decision import Decision, Outcome
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.cloud.lifecycle import gone, held_by
from domain.loadbalancers.constants import QUOTA_ANNOTATION, SET_COMPONENT
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import Standing, health_of
from domain.loadbalancers.machine_set import SetPhase, SetWork, created, work_for_set
from domain.loadbalancers.passes import LoadBalancerWorld, Memory, PassSet
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.scaling import machines_of, selects
from domain.schema import Document
from engine.clock import now
from engine.kube.json import JsonObject, text

MOST_ROUNDS = 10


class SetActivities:
    """The LoadBalancerSet's activity."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_set,)

    @activity.defn(name=PassSet.activity)
    async def pass_set(self, look: PassSet) -> LoadBalancerWorld:
        """One pass; another one at once where somebody has written what was read."""
        return await until_undisturbed(look.key, lambda attempt: self._pass(look, fresh=attempt > 0))

    async def _pass(self, look: PassSet, *, fresh: bool) -> LoadBalancerWorld:
        ground, key = self._ground, look.key
        view = ground.known.view(key, fresh=fresh)
        machine_set = await view.own(LoadBalancerSet, look.memory.version)
        if machine_set is None:
            return LoadBalancerWorld(key=key, exists=False, decision=gone())
        hold = ground.hold(machine_set.metadata)
        if not (hold or look.dry_run) and (leader := await ground.leads(LOAD_BALANCER_SET)):
            held = held_by(leader, now() + HELD_FOR, machine_set.owner)
            return LoadBalancerWorld(key=key, hold=leader, known=look.memory, decision=held)
        machines = await _machines(view, machine_set)
        work = await self._work(machine_set, machines)
        if hold or look.dry_run:
            decision = _decision(machine_set.owner, work, planned=_lines(work))
            return LoadBalancerWorld(key=key, hold=hold, known=look.memory, decision=decision)
        taken = set[str]()
        for _ in range(MOST_ROUNDS):
            if work.idle:
                break
            machine_set = await ground.patch(machine_set, work.patch)
            made = [await self._made(machine_set, body, taken) for body in work.create]
            for each in work.machine_patches:
                of = (LOAD_BALANCER_MACHINE, key.namespace, each.name)
                version = await ground.patch_other(*of, each.patch, version=each.version)
                await ground.patch_other(*of, each.status, status=True, version=version)
            await ground.delete(LOAD_BALANCER_MACHINE, key.namespace, work.delete)
            machine_set = await ground.patch(machine_set, work.status, status=True)
            born = tuple(LoadBalancerMachine.model_validate(each) for each in made if each)
            await self._tell(machine_set, work, born)
            if work.drop_finalizer:
                await ground.drop_finalizer(machine_set)
                return LoadBalancerWorld(key=key, exists=False, decision=gone())
            known = all(made) and not (work.machine_patches or work.delete)
            machines = (*machines, *born) if known else await _machines(view, machine_set)
            work = await self._work(machine_set, machines, taken)
        memory = Memory(version=machine_set.metadata.resource_version)
        return LoadBalancerWorld(key=key, known=memory, decision=_decision(machine_set.owner, work))

    async def _made(self, machine_set: LoadBalancerSet, body: Document, taken: set[str]) -> JsonObject | None:
        """A new machine. One of its name that was made before is found by the next round, if it is the set's.

        A person may have taken it out of its set by its labels: its name is taken then, and its place is not.
        """
        ground, namespace = self._ground, machine_set.metadata.namespace
        made = await ground.create(LOAD_BALANCER_MACHINE, body, namespace)
        if made is None:
            name = text(body, "metadata", "name")
            there = await ground.known.fresh(LOAD_BALANCER_MACHINE, namespace, name)
            if there is not None and not selects(machine_set, LoadBalancerMachine.model_validate(there)):
                taken.add(name)
        return made

    async def _tell(self, machine_set: LoadBalancerSet, work: SetWork, born: Sequence[LoadBalancerMachine]) -> None:
        await self._ground.tell(machine_set, work.notices, now(), SET_COMPONENT)
        for each in born:
            await self._ground.tell(each, (created(each),), now(), SET_COMPONENT)

    async def _work(
        self, machine_set: LoadBalancerSet, machines: Sequence[LoadBalancerMachine], taken: Collection[str] = ()
    ) -> SetWork:
        moment, timings = now(), self._ground.timings
        quota = any(QUOTA_ANNOTATION in each.metadata.annotations for each in machines)
        fleet = await self._fleet(machines, moment)
        return work_for_set(machine_set, machines, fleet, moment, timings=timings, quota_refused=quota, taken=taken)

    async def _fleet(self, machines: Sequence[LoadBalancerMachine], moment: datetime) -> Fleet:
        """All machines of the installation, asked for only when one that has reported is to be replaced."""
        standings = (health_of(each, moment, self._ground.timings) for each in machines if not each.metadata.deleting)
        if not any(each.standing is Standing.CONDEMNED and each.reported for each in standings):
            return Fleet()
        return await self._ground.fleet(moment)


async def _machines(view: View, machine_set: LoadBalancerSet) -> tuple[LoadBalancerMachine, ...]:
    labels = machine_set.spec.selector.match_labels
    return machines_of(machine_set, await view.all(LoadBalancerMachine, machine_set.metadata.namespace, labels))


def _decision(owner: str, work: SetWork, planned: Sequence[str] = ()) -> Decision:
    settled = work.phase is SetPhase.READY
    return Decision(
        phase=work.phase.value,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why=work.why or "its machines are ready",
        waits_for=() if settled else (work.why or "its machines",),
        deadline=work.deadline,
        at_deadline="check its machines again" if work.deadline else "",
        owner=owner,
        planned=tuple(planned),
    )


def _lines(work: SetWork) -> list[str]:
    lines = [f"create LoadBalancerMachine {body['metadata']['name']}" for body in work.create]  # type: ignore[index]
    lines += [f"patch LoadBalancerMachine {each.name}" for each in work.machine_patches]
    return lines + [f"delete LoadBalancerMachine {name}" for name in work.delete]
