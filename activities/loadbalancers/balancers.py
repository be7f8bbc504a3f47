"""The pass over a LoadBalancer: what it has in the cloud, its sets, its status.

    read --> look, if anything has changed --> work (domain/loadbalancers/balancer.py)
                                                 ^   --> patch, steps, status, sets --+--> idle
                                                 `------------------------------------'

The cloud is looked at once in a pass, and not at all while the object is what it was when everything was last in place
(`cloud/looks.py`); what a step brings is folded into what was seen. The status is written when no step is left, or when
something stands in the way: what a dead worker has made is found by its name and mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.leaders import HELD_FOR
from activities.loadbalancers.ground import Ground
from activities.loadbalancers.known import View
from activities.openstack.observing import observe_load_balancer, observe_security_group
from activities.openstack.session import Project
from domain.decision import Decision, Outcome, earliest
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_SET
from domain.loadbalancers.balancer import BalancerWork, Phase, work_for_balancer
from domain.loadbalancers.cloud.changes import changed
from domain.loadbalancers.cloud.looks import look_of_balancer, look_of_rules
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.hindrances import Hindrance, overdue, problem
from domain.loadbalancers.passes import LoadBalancerWorld, Memory, PassLoadBalancer, PassSet
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.loadbalancers.rollout import sets_of
from engine.clock import now
from engine.kube.json import mapping

MOST_ROUNDS = 30


class LoadBalancerActivities:
    """The LoadBalancer's activity."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._keeps_conditions = True  # until the API server drops one, as the replaced operator's definition has it do

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_load_balancer,)

    @activity.defn(name=PassLoadBalancer.activity)
    async def pass_load_balancer(self, look: PassLoadBalancer) -> LoadBalancerWorld:
        """One pass; another one at once where somebody has written what was read."""
        return await until_undisturbed(look.key, lambda attempt: self._pass(look, fresh=attempt > 0))

    async def _pass(self, look: PassLoadBalancer, *, fresh: bool) -> LoadBalancerWorld:
        ground, key = self._ground, look.key
        view = ground.known.view(key, fresh=fresh)
        balancer = await view.own(LoadBalancer, look.memory.version)
        if balancer is None:
            return LoadBalancerWorld(key=key, exists=False, decision=gone())
        hold = ground.hold(balancer.metadata)
        if not (hold or look.dry_run) and (leader := await ground.leads(LOAD_BALANCER)):
            return left_alone(look, balancer.owner, leader)
        sets = await view.all(LoadBalancerSet, key.namespace, balancer.spec.selector.match_labels)
        cloud, hindrance = await self._look(balancer, sets, look.memory)
        looked = cloud is not None
        work = self._work(balancer, cloud, sets, hindrance)
        if hold or look.dry_run:
            decision = _decision(balancer.owner, work, None, planned=_lines(work))
            return LoadBalancerWorld(key=key, hold=hold, known=look.memory, decision=decision)
        for _ in range(MOST_ROUNDS):
            if work.idle:
                break
            balancer = await ground.patch(balancer, work.patch)
            if cloud is not None and work.steps:
                at = balancer.spec.infrastructure
                taken, hindrance = await ground.take(at, key.namespace, work.steps, cloud, changed)
                cloud = taken
            else:
                balancer = await ground.patch(balancer, work.status, status=True)
                if mapping(work.status, "status").get("conditions") and not balancer.status.conditions:
                    self._keeps_conditions = False
            sets = await self._carry_out(view, balancer, sets, work)
            if work.drop_finalizer:
                await ground.drop_finalizer(balancer)
                return LoadBalancerWorld(key=key, exists=False, decision=gone())
            work = self._work(balancer, cloud, sets, hindrance)
        await ground.tell(balancer, work.notices, now())
        if work.problem and hindrance is None:
            hindrance = problem(work.problem)
        memory = _memory(look.memory, balancer, hindrance, looked=looked and work.idle)
        await ground.tell(balancer, overdue(hindrance, memory.hindered, now()), now())
        return LoadBalancerWorld(
            key=key, known=memory, decision=_decision(balancer.owner, work, _again(hindrance, memory))
        )

    def _work(
        self,
        balancer: LoadBalancer,
        cloud: LoadBalancerCloud | None,
        sets: Sequence[LoadBalancerSet],
        hindrance: Hindrance | None,
    ) -> BalancerWork:
        return work_for_balancer(balancer, cloud, sets, now(), hindrance, conditions=self._keeps_conditions)

    async def _look(
        self, balancer: LoadBalancer, sets: Sequence[LoadBalancerSet], memory: Memory
    ) -> tuple[LoadBalancerCloud | None, Hindrance | None]:
        meta = balancer.metadata
        waits = meta.deleting and bool(sets_of(balancer, sets))
        see: Callable[[Project], LoadBalancerCloud] = partial(observe_load_balancer, balancer=balancer)
        if waits:
            return None, None
        if not meta.deleting and memory.settled == look_of_balancer(balancer):
            if memory.rules == look_of_rules(balancer):
                return None, None
            see = partial(observe_security_group, balancer=balancer)
        return await self._ground.look(balancer.spec.infrastructure, meta.namespace, see)

    async def _carry_out(
        self, view: View, balancer: LoadBalancer, sets: tuple[LoadBalancerSet, ...], work: BalancerWork
    ) -> tuple[LoadBalancerSet, ...]:
        """What becomes of the sets, and what they are then."""
        ground, namespace = self._ground, balancer.metadata.namespace
        await ground.tell(balancer, work.notices, now())
        if work.create_set:
            made = await ground.create(LOAD_BALANCER_SET, work.create_set, namespace)
            if made is not None:
                return (*sets, LoadBalancerSet.model_validate(made))
        for each in work.set_patches:
            await ground.patch_other(LOAD_BALANCER_SET, namespace, each.name, each.patch)
        await ground.delete(LOAD_BALANCER_SET, namespace, work.delete_sets)
        if not (work.create_set or work.set_patches or work.delete_sets):
            return sets
        return await view.all(LoadBalancerSet, namespace, balancer.spec.selector.match_labels)


def _memory(before: Memory, balancer: LoadBalancer, hindrance: Hindrance | None, *, looked: bool) -> Memory:
    if hindrance is not None:
        return Memory(hindered=before.hindered or now(), version=balancer.metadata.resource_version)
    memory = Memory(version=balancer.metadata.resource_version)
    if not (looked or before.settled):
        return memory
    return memory.model_copy(update={"settled": look_of_balancer(balancer), "rules": look_of_rules(balancer)})


def _again(hindrance: Hindrance | None, memory: Memory) -> datetime | None:
    return hindrance.until(memory.hindered or now(), now()) if hindrance else None


def _decision(owner: str, work: BalancerWork, again: datetime | None, planned: Sequence[str] = ()) -> Decision:
    settled = work.phase is Phase.READY
    deadline = earliest([work.deadline, again])
    return Decision(
        phase=work.phase.value,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why=work.problem or work.why or "everything is up to date",
        waits_for=() if settled else (work.problem or work.why or "its machines",),
        deadline=deadline,
        at_deadline="observe again" if deadline else "",
        owner=owner,
        planned=tuple(planned),
    )


def _lines(work: BalancerWork) -> list[str]:
    lines = [step.summary for step in work.steps]
    lines += ["write the object"] if work.patch else []
    lines += ["write the status"] if work.status else []
    lines += ["create a LoadBalancerSet"] if work.create_set else []
    lines += [f"patch LoadBalancerSet {each.name}" for each in work.set_patches]
    return lines + [f"delete LoadBalancerSet {name}" for name in work.delete_sets]


def left_alone(look: PassLoadBalancer | PassSet, owner: str, leader: str) -> LoadBalancerWorld:
    """The replaced controller still leads: nothing is looked at until it does not."""
    decision = Decision(
        phase="Held",
        outcome=Outcome.WAITING,
        why=leader,
        waits_for=("yawol giving up its leader lease",),
        deadline=now() + HELD_FOR,
        at_deadline="observe again",
        owner=owner,
    )
    return LoadBalancerWorld(key=look.key, hold=leader, known=look.memory, decision=decision)


def gone() -> Decision:
    """The object does not exist any more."""
    return Decision(phase="Deleted", outcome=Outcome.GONE, why="it does not exist any more")
