"""The lifecycle of a LoadBalancer, from what is observed to what is to be done now.

    New --finalizer--> Provisioning --everything in the cloud--> Starting --machines ready--> Ready
                            ^                                       ^                           |  new template
                            | drift                                 |                           v
                            `---------------------------------------+---------------------- RollingOut
    any --deletion--> Deleting: sets, then the cloud, then the finalizer

One look gives everything that can be done at once: steps in the cloud, sets, and one patch each of the object and of
its status. What stands in the way of one does not stop the other: while a drift in the cloud is repaired machines are
scaled all the same, only a new set waits until the cloud is as it should be, because its template speaks of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from domain.loadbalancers.balancer_conditions import stalled_patch
from domain.loadbalancers.cloud.load_balancer import CloudPlan, plan_cloud, released_status
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.removal import remove_load_balancer
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.constants import (
    DRIFT_ANNOTATION,
    LOAD_BALANCER_FINALIZER,
    NOTHING_MADE_ANNOTATION,
    REVISION_ANNOTATION,
)
from domain.loadbalancers.hindrances import Hindrance, notices_of
from domain.loadbalancers.migration import migrated, spec_migration, status_migration
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerSet
from domain.loadbalancers.rollout import (
    Rollout,
    SetPatch,
    plan_rollout,
    sets_of,
)
from domain.model import Model
from domain.notices import Notice, warning
from domain.schema import Document
from domain.writes import JsonPatch, merge


class Phase(StrEnum):
    """Where a LoadBalancer stands."""

    NEW = "New"
    PROVISIONING = "Provisioning"
    STARTING = "Starting"
    ROLLING_OUT = "RollingOut"
    READY = "Ready"
    WAITING = "Waiting"
    DELETING = "Deleting"
    GONE = "Gone"


class BalancerWork(Model):
    """What to do now for a LoadBalancer, and how it stands.

    Attributes:
        phase: where it stands.
        why: what is waited for, in words.
        problem: what only a person, or a change of the world, can mend.
        patch: the merge patch of the object; before anything else.
        steps: what to do in the cloud now.
        status: the merge patch of its status.
        create_set: the set to be made, as a document for the API server.
        set_patches: what changes in sets.
        delete_sets: names of sets to be deleted.
        drop_finalizer: nothing is left, and the object may go.
        deadline: when another look can differ without anything happening.
        notices: what a person is told.
        left: what stays in the cloud when the object goes, in words.
    """

    phase: Phase
    why: str = ""
    problem: str = ""
    patch: JsonPatch = {}
    steps: tuple[Step, ...] = ()
    status: JsonPatch = {}
    create_set: Document = {}
    set_patches: tuple[SetPatch, ...] = ()
    delete_sets: tuple[str, ...] = ()
    drop_finalizer: bool = False
    deadline: datetime | None = None
    notices: tuple[Notice, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done now."""
        done = (self.patch, self.steps, self.status, self.create_set, self.set_patches, self.delete_sets)
        return not any(done) and not self.drop_finalizer


def work_for_balancer(
    balancer: LoadBalancer,
    cloud: LoadBalancerCloud | None,
    sets: Iterable[LoadBalancerSet],
    now: datetime,
    hindrance: Hindrance | None = None,
    *,
    conditions: bool = True,
) -> BalancerWork:
    """What to do now for a LoadBalancer that exists.

    Args:
        balancer: the LoadBalancer as it was read last.
        cloud: its candidates in the cloud; None where everything is as it should be, and while its sets go.
        sets: the sets of its namespace.
        now: the moment.
        hindrance: what stands in the way in the cloud: nothing is tried there again before another look.
        conditions: whether the API server keeps a LoadBalancer's conditions; by the replaced operator's definition not.
    """
    own = sets_of(balancer, sets)
    if balancer.metadata.deleting:
        return _farewell(balancer, cloud, own, hindrance)
    if LOAD_BALANCER_FINALIZER not in balancer.metadata.finalizers:
        return BalancerWork(
            phase=Phase.NEW, why="add its finalizer", patch=_adopted(balancer, own, reached=cloud is not None)
        )
    today = migrated(balancer)
    looked = cloud is not None and not cloud.groups_only
    plan = _plan(today, cloud, now, hindrance)
    known = LoadBalancer.model_validate(merge(today.model_dump(mode="json"), plan.status))
    waits = plan.problem or ("" if plan.settled else "waits until the cloud is up to date")
    rollout = plan_rollout(known, own, now, frozen=waits)
    problem = plan.problem or ("" if waits else rollout.problem)
    return BalancerWork(
        phase=_phase(known, own, rollout, settled=plan.settled, problem=problem),
        why=problem or (hindrance.why if hindrance else "") or _told(plan.steps) or rollout.why,
        problem=problem,
        patch=combined(
            spec_migration(balancer),
            rollout.revise,
            _mended(balancer, settled=plan.settled and looked),
            _reached(balancer, cloud),
        ),
        steps=plan.steps,
        status=combined(
            status_migration(balancer),
            plan.status,
            rollout.status,
            stalled_patch(balancer, problem, hindrance, now) if conditions else {},
        ),
        create_set=rollout.create,
        set_patches=rollout.patches,
        delete_sets=rollout.delete,
        deadline=rollout.deadline,
        notices=(*plan.notices, *_frozen(rollout, waits)),
    )


def _frozen(rollout: Rollout, waits: str) -> tuple[Notice, ...]:
    """What keeps the sets as they are and is not the cloud's: what is the cloud's is told already."""
    return (warning("Failed", rollout.problem),) if rollout.problem and not waits else ()


def _adopted(balancer: LoadBalancer, sets: tuple[LoadBalancerSet, ...], *, reached: bool) -> JsonPatch:
    """The first write: the finalizer, and the revision of the first set, which nobody has yet.

    A new LoadBalancer whose project cannot be reached is marked: until it is, nothing can exist there for it.
    """
    metadata: JsonPatch = {"finalizers": [*balancer.metadata.finalizers, LOAD_BALANCER_FINALIZER]}
    if not balancer.revision and not sets:
        unmade = not reached and balancer.status.records_no_object
        metadata["annotations"] = {REVISION_ANNOTATION: "1", **({NOTHING_MADE_ANNOTATION: "true"} if unmade else {})}
    return combined(spec_migration(balancer), {"metadata": metadata})


def _reached(balancer: LoadBalancer, cloud: LoadBalancerCloud | None) -> JsonPatch:
    """The mark goes before the first step: a worker that dies in between leaves none on something that exists."""
    if cloud is None or NOTHING_MADE_ANNOTATION not in balancer.metadata.annotations:
        return {}
    return {"metadata": {"annotations": {NOTHING_MADE_ANNOTATION: None}}}


def _mended(balancer: LoadBalancer, *, settled: bool) -> JsonPatch:
    """What the sweep had found is no more."""
    if not settled or DRIFT_ANNOTATION not in balancer.metadata.annotations:
        return {}
    return {"metadata": {"annotations": {DRIFT_ANNOTATION: None}}}


def _plan(
    balancer: LoadBalancer, cloud: LoadBalancerCloud | None, now: datetime, hindrance: Hindrance | None
) -> CloudPlan:
    """What the cloud lacks, as far as something can be done about it now."""
    plan = CloudPlan(settled=True) if cloud is None else plan_cloud(balancer, cloud, now)
    if hindrance is None:
        return plan
    notices = notices_of(hindrance.problem, hindrance)
    changes = {"steps": (), "settled": False, "notices": (*plan.notices, *notices)}
    return plan.model_copy(update={**changes, "problem": plan.problem or hindrance.problem})


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


def _told(steps: tuple[Step, ...]) -> str:
    return "; ".join(step.summary for step in steps)


def _farewell(
    balancer: LoadBalancer,
    cloud: LoadBalancerCloud | None,
    sets: tuple[LoadBalancerSet, ...],
    hindrance: Hindrance | None,
) -> BalancerWork:
    """Machines first: they use all the rest."""
    if LOAD_BALANCER_FINALIZER not in balancer.metadata.finalizers:
        return BalancerWork(phase=Phase.GONE, why="it has released everything")
    if sets:
        names = tuple(each.metadata.name for each in sets if not each.metadata.deleting)
        return BalancerWork(phase=Phase.DELETING, why=f"waits until {len(sets)} sets are gone", delete_sets=names)
    if NOTHING_MADE_ANNOTATION in balancer.metadata.annotations and balancer.status.records_no_object:
        return BalancerWork(phase=Phase.DELETING, why="nothing was created in the cloud", drop_finalizer=True)
    if hindrance is not None or cloud is None:
        why = hindrance.why if hindrance else "find out what is left in the cloud"
        notices = notices_of(hindrance.problem, hindrance) if hindrance else ()
        return BalancerWork(phase=Phase.DELETING, why=why, notices=notices)
    removal = remove_load_balancer(migrated(balancer), cloud)
    if removal.steps:
        return BalancerWork(phase=Phase.DELETING, why=_told(removal.steps), steps=removal.steps)
    return BalancerWork(
        phase=Phase.DELETING,
        why="nothing is left in the cloud",
        status=released_status(balancer.status),
        drop_finalizer=True,
        left=removal.kept,
    )
