"""The lifecycle of a LoadBalancer.

    New --finalizer--> Provisioning --everything in the cloud--> Starting --machines ready--> Ready
                            ^                                       ^                           |  new template
                            | drift                                 |                           v
                            `---------------------------------------+---------------------- RollingOut
    any --deletion--> Deleting: sets, then the cloud, then the finalizer

Machines are scaled even while drift in the cloud is repaired. Only the rollout waits until the cloud objects match the
spec, because a set's template contains their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from domain.decision import Action, Decision
from domain.loadbalancers.balancer_world import BalancerWorld, DeleteSets, LookAtBalancer, WriteStatus
from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.load_balancer import CloudPlan, released_status
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.observation_due import LATE, effects_until, needs_look, observed_again
from domain.loadbalancers.cloud.project_change import project_restored
from domain.loadbalancers.cloud.steps import in_project
from domain.loadbalancers.constants import (
    DRIFT_ANNOTATION,
    LOAD_BALANCER_FINALIZER,
    NOTHING_MADE_ANNOTATION,
    REVISION_ANNOTATION,
)
from domain.loadbalancers.former_fields import migrated, spec_migration, status_migration
from domain.loadbalancers.object_world import Moment, adopt, decided, gone, held_by, writes
from domain.loadbalancers.patches import combined
from domain.loadbalancers.refused_calls import blocked_step
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.loadbalancers.rollout import Rollout, plan_rollout, sets_of
from domain.loadbalancers.stalled_condition import stalled_patch
from domain.notices import Notice, warning
from domain.writes import JsonPatch, merge


class Phase(StrEnum):
    NEW = "New"
    PROVISIONING = "Provisioning"
    STARTING = "Starting"
    ROLLING_OUT = "RollingOut"
    READY = "Ready"
    WAITING = "Waiting"
    DELETING = "Deleting"


def decide_balancer(world: BalancerWorld, now: datetime) -> Decision:
    balancer = world.balancer
    if not world.exists:
        return gone()
    if world.left_to:
        return held_by(world)
    own = sets_of(balancer, world.sets)
    if balancer.metadata.deleting:
        return _ending(world, own, now)
    if adopt(world):
        return _new(world, own)
    return _provided(world, own, now)


def _new(world: BalancerWorld, own: tuple[LoadBalancerSet, ...]) -> Decision:
    observations = _observations(world, ())
    if any(not world.refused(each.slot) for each in observations):
        return _decision(world, Phase.NEW, observations[0].summary, observations, working=True)
    added = world.write(_adopted(world.balancer, own, reached=not observations), note="add the finalizer")
    return _decision(world, Phase.NEW, "add its finalizer", (added,), working=True)


def _provided(world: BalancerWorld, own: tuple[LoadBalancerSet, ...], now: datetime) -> Decision:
    balancer, today = world.balancer, migrated(world.balancer)
    planned = world.planned(now) if world.current is not None else None
    plan = planned or CloudPlan(settled=world.known.settled == world.look)
    steps = in_project(plan.steps, world.project)
    observations = _observations(world, steps)
    steps = () if observations else steps
    blocked = blocked_step(world, (*observations, *steps))
    settled = plan.settled and not observations
    problem = plan.problem or blocked.problem
    known = LoadBalancer.model_validate(merge(today.model_dump(mode="json"), plan.status))
    waits = problem or ("" if settled else "waits until the cloud objects match the spec")
    rollout = plan_rollout(known, own, now, frozen=waits)
    if not waits:
        blocked = blocked_step(world, _sets(world, rollout, whole=True))
        problem = rollout.problem or blocked.problem
    refused = blocked.notices(problem if blocked.blocker else "", now)
    notices = (*plan.notices, *refused, *_frozen(rollout, waits))
    patch = combined(spec_migration(balancer), rollout.revise, _without_outdated(world, settled=settled))
    under_way = any(not world.refused(each.slot) for each in (*observations, *steps))
    status: JsonPatch = {}
    if not under_way:
        conditions = {} if world.known.drops_conditions else stalled_patch(balancer, problem, blocked.blocker, now)
        status = combined(status_migration(balancer), plan.status, rollout.status, conditions)
    # The LoadBalancer is patched before the first step: if a worker died after a step while the annotation
    # `nothing-made` was still set, the created object would be leaked.
    first = writes(world, patch)
    written = first or _status(world, status)
    actions = (
        *written,
        *observations,
        *(() if first else steps),
        *_sets(world, rollout, whole=not (written or under_way)),
    )
    moments = observed_again(world)
    if rollout.deadline:
        moments.append(
            Moment(at=rollout.deadline, then="the old machines are deleted if all new machines are still ready")
        )
    doing = "; ".join(each.summary for each in (*observations, *steps))
    return _decision(
        world,
        _phase(known, own, rollout, settled=settled, problem=problem),
        problem or blocked.why or doing or rollout.why,
        actions,
        moments,
        problem=problem,
        working=under_way and not problem,
        notices=notices,
    )


def _observations(world: BalancerWorld, steps: tuple[Action, ...]) -> tuple[LookAtBalancer, ...]:
    return (_look(world),) if needs_look(world, steps) else ()


def _look(world: BalancerWorld) -> LookAtBalancer:
    return LookAtBalancer(
        project=world.project,
        balancer=migrated(world.balancer),
        groups_only=world.only_rules and not world.stale,
        changes=world.changes,
    )


def _status(world: BalancerWorld, status: JsonPatch, *, releases: bool = False) -> tuple[WriteStatus, ...]:
    if not status:
        return ()
    version = world.balancer.metadata.resource_version
    return (
        WriteStatus(
            key=world.key,
            patch=status,
            subresource="status",
            resource_version=version,
            note="write its status",
            releases=releases,
        ),
    )


def _sets(world: BalancerWorld, rollout: Rollout, *, whole: bool) -> tuple[Action, ...]:
    made = (rollout.create,) if rollout.create and whole else ()
    namespace = world.balancer.metadata.namespace
    left = (DeleteSets(namespace=namespace, names=rollout.delete),) if rollout.delete else ()
    return (*made, *rollout.patches, *left)


def _frozen(rollout: Rollout, waits: str) -> tuple[Notice, ...]:
    return (warning("Failed", rollout.problem),) if rollout.problem and not waits else ()


def _adopted(balancer: LoadBalancer, sets: tuple[LoadBalancerSet, ...], *, reached: bool) -> JsonPatch:
    """The patch that adds the finalizer. If there is neither a revision nor a set, it adds the first revision, too.

    If, in addition, the project was never reached, the patch sets an annotation which says that no cloud object exists.
    """
    metadata: JsonPatch = {"finalizers": [*balancer.metadata.finalizers, LOAD_BALANCER_FINALIZER]}
    if not balancer.revision and not sets:
        unmade = not reached and balancer.status.records_no_object
        metadata["annotations"] = {REVISION_ANNOTATION: "1", **({NOTHING_MADE_ANNOTATION: "true"} if unmade else {})}
    return combined(spec_migration(balancer), {"metadata": metadata})


def _without_outdated(world: BalancerWorld, *, settled: bool) -> JsonPatch:
    cloud, annotations = world.current, world.balancer.metadata.annotations
    ended = {
        NOTHING_MADE_ANNOTATION: cloud is not None,
        DRIFT_ANNOTATION: settled and cloud is not None and not cloud.groups_only,
    }
    outdated = {name: None for name, over in ended.items() if over and name in annotations}
    return {"metadata": {"annotations": outdated}} if outdated else {}


def _phase(
    balancer: LoadBalancer, sets: tuple[LoadBalancerSet, ...], rollout: Rollout, *, settled: bool, problem: str
) -> Phase:
    if problem:
        return Phase.WAITING
    if not settled:
        return Phase.PROVISIONING
    if rollout.done and not rollout.create:
        return Phase.READY
    others = len(sets) if rollout.create else len(sets) - 1
    return Phase.ROLLING_OUT if others > 0 and any(each.spec.replicas for each in sets) else Phase.STARTING


def _ending(world: BalancerWorld, sets: tuple[LoadBalancerSet, ...], now: datetime) -> Decision:
    """The next deletion. Sets are deleted first, because their machines use the cloud objects."""
    balancer = world.balancer
    if adopt(world):
        return gone("it has released everything")
    if sets:
        if restored := project_restored(balancer, sets):
            write = world.write(restored, note="set projectID back to the project of its cloud objects")
            return _decision(world, Phase.DELETING, write.summary, (write,), working=True)
        names = tuple(each.metadata.name for each in sets if not each.metadata.deleting)
        left = (DeleteSets(namespace=balancer.metadata.namespace, names=names),) if names else ()
        blocked = blocked_step(world, left)
        why, notices = blocked.why or f"waits until {len(sets)} sets are gone", blocked.notices(blocked.problem, now)
        return _decision(world, Phase.DELETING, why, left, problem=blocked.problem, notices=notices)
    unmade = NOTHING_MADE_ANNOTATION in balancer.metadata.annotations and balancer.status.records_no_object
    if unmade or world.known.released:
        why = "nothing was created in the cloud" if unmade else "nothing is left in the cloud"
        drop = world.drop_finalizer(f"release the load balancer: {why}")
        return _decision(world, Phase.DELETING, why, (drop,), working=True)
    removal = remove_load_balancer(migrated(balancer), world.current or LoadBalancerCloud())
    steps = in_project(removal.steps, world.project)
    until = None if steps else effects_until(world)
    observations = (_look(world),) if until and until <= now else _observations(world, steps)
    wanted = observations or steps
    if wanted:
        return _leaving(world, wanted, now)
    if until:
        return _decision(world, Phase.DELETING, LATE, moments=[Moment(at=until)])
    retained = f"; kept: {', '.join(removal.retained)}" if removal.retained else ""
    why = f"nothing is left in the cloud{retained}"
    status = _status(world, released_status(balancer.status), releases=True)
    last = status or (world.drop_finalizer(f"release the load balancer: {why}"),)
    return _decision(world, Phase.DELETING, why, last, working=True)


def _leaving(world: BalancerWorld, wanted: tuple[Action, ...], now: datetime) -> Decision:
    blocked = blocked_step(world, wanted)
    why = blocked.why or "; ".join(each.summary for each in wanted)
    problem, working = blocked.problem, blocked.blocker is None
    notices = blocked.notices(problem, now)
    return _decision(world, Phase.DELETING, why, wanted, problem=problem, working=working, notices=notices)


def _decision(
    world: BalancerWorld,
    phase: Phase,
    why: str,
    actions: tuple[Action, ...] = (),
    moments: Sequence[Moment] = (),
    *,
    problem: str = "",
    **more: Any,
) -> Decision:
    waits, why = problem or why or "its machines", why or "everything is up to date"
    settled = phase is Phase.READY
    return decided(world, phase, why, actions, moments, settled=settled, waits_for=waits, **more)
