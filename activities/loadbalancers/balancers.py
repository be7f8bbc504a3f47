"""The pass over a LoadBalancer: what it has in the cloud, its sets, its status.

    observe --> work (domain/loadbalancers/balancer.py) --> patch, steps, status, sets --> work again ... --> idle

The cloud is observed once; what a step brings is folded into what was seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

from temporalio import activity

from activities.conflicts import until_undisturbed
from activities.loadbalancers.ground import Ground
from activities.openstack.observing import observe_load_balancer
from domain.decision import Decision, Outcome
from domain.loadbalancers import LOAD_BALANCER_SET
from domain.loadbalancers.balancer import BalancerWork, Phase, work_for_balancer
from domain.loadbalancers.cloud.changes import changed
from domain.loadbalancers.passes import LoadBalancerWorld, PassLoadBalancer
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from engine.clock import now

# Drift in the cloud sends no event.
DRIFT = timedelta(minutes=5)
MOST_ROUNDS = 30


class LoadBalancerActivities:
    """The LoadBalancer's activity."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.pass_load_balancer,)

    @activity.defn(name=PassLoadBalancer.activity)
    async def pass_load_balancer(self, look: PassLoadBalancer) -> LoadBalancerWorld:
        """One pass; another one at once where somebody has written what was read."""
        return await until_undisturbed(look.key, lambda _: self._pass(look))

    async def _pass(self, look: PassLoadBalancer) -> LoadBalancerWorld:
        ground, key = self._ground, look.key
        balancer = await ground.own(LoadBalancer, key)
        if balancer is None:
            return LoadBalancerWorld(key=key, exists=False, decision=gone())
        project = await ground.project(balancer.spec.infrastructure, key.namespace)
        cloud = await ground.observe(observe_load_balancer, project, balancer)
        sets = await ground.all(LoadBalancerSet, key.namespace)
        hold = ground.hold(balancer.metadata)
        work = work_for_balancer(balancer, cloud, sets, now())
        if hold or look.dry_run:
            return LoadBalancerWorld(key=key, hold=hold, decision=_decision(work, planned=_lines(work)))
        for _ in range(MOST_ROUNDS):
            if work.idle:
                break
            balancer = await ground.patch(balancer, work.patch)
            for step in work.steps:
                cloud = changed(cloud, await ground.carry_out(project, step))
            balancer = await ground.patch(balancer, work.status, status=True)
            if work.create_set:
                await ground.create(LOAD_BALANCER_SET, work.create_set, key.namespace)
            for each in work.set_patches:
                await ground.patch_other(LOAD_BALANCER_SET, key.namespace, each.name, each.patch)
            await ground.delete(LOAD_BALANCER_SET, key.namespace, work.delete_sets)
            await ground.tell(balancer, work.notices, now())
            if work.drop_finalizer:
                await ground.drop_finalizer(balancer)
                return LoadBalancerWorld(key=key, exists=False, decision=gone())
            if work.create_set or work.set_patches or work.delete_sets:
                sets = await ground.all(LoadBalancerSet, key.namespace)
            work = work_for_balancer(balancer, cloud, sets, now())
        return LoadBalancerWorld(key=key, decision=_decision(work))


def _decision(work: BalancerWork, planned: Sequence[str] = ()) -> Decision:
    settled = work.phase is Phase.READY
    deadline = work.deadline or now() + DRIFT
    return Decision(
        phase=work.phase.value,
        outcome=Outcome.SETTLED if settled else Outcome.WAITING,
        why=work.problem or work.why or "everything is as it should be",
        waits_for=() if settled else (work.problem or work.why or "its machines",),
        deadline=deadline,
        at_deadline="look again",
        planned=tuple(planned),
    )


def _lines(work: BalancerWork) -> list[str]:
    lines = [step.summary for step in work.steps]
    lines += ["write the object"] if work.patch else []
    lines += ["write the status"] if work.status else []
    lines += ["make a LoadBalancerSet"] if work.create_set else []
    lines += [f"patch LoadBalancerSet {each.name}" for each in work.set_patches]
    return lines + [f"delete LoadBalancerSet {name}" for name in work.delete_sets]


def gone() -> Decision:
    """The object does not exist any more."""
    return Decision(phase="Deleted", outcome=Outcome.GONE, why="it does not exist any more")
