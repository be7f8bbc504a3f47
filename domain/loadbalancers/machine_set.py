"""The lifecycle of a LoadBalancerSet, from what is observed to what is to be done now.

    New --finalizer--> Scaling <--> Ready          any --deletion--> Deleting: its machines, then the finalizer

What it does with its machines is `scaling.py`'s to say. A machine is deleted by its object: its own lifecycle takes it
out of the cloud.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import StrEnum

from domain.levers import retry_wanted
from domain.loadbalancers.boots import tried_again
from domain.loadbalancers.constants import REVISION_ANNOTATION, SET_FINALIZER
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import DEFAULT_TIMINGS, Timings, health_of, mark_patches
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.scaling import plan_set
from domain.loadbalancers.set_status import MachineStanding
from domain.model import Model
from domain.notices import Notice, normal
from domain.schema import Document
from domain.writes import JsonPatch


class SetPhase(StrEnum):
    """Where a set stands."""

    NEW = "New"
    SCALING = "Scaling"
    READY = "Ready"
    WAITING = "Waiting"
    DELETING = "Deleting"
    GONE = "Gone"


class MachinePatch(Model):
    """Merge patches of one machine and of its status; either may be empty.

    A patch of the status replaces what the agent has written as a whole, so it is for the machine of this version only.
    """

    name: str
    patch: JsonPatch = {}
    status: JsonPatch = {}
    version: str = ""


class SetWork(Model):
    """What to do now for a set, and how it stands.

    Attributes:
        phase: where it stands.
        why: what is waited for, in words.
        patch: the merge patch of the set; before anything else, it holds the memory of what is done next.
        create: machines to be made, as documents for the API server.
        machine_patches: marks and revisions.
        delete: names of machines to be deleted.
        status: the merge patch of the set's status.
        drop_finalizer: nothing is left, and the object may go.
        deadline: when another look can differ without anything happening.
        notices: what a person is told.
    """

    phase: SetPhase
    why: str = ""
    patch: JsonPatch = {}
    create: tuple[Document, ...] = ()
    machine_patches: tuple[MachinePatch, ...] = ()
    delete: tuple[str, ...] = ()
    status: JsonPatch = {}
    drop_finalizer: bool = False
    deadline: datetime | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done now."""
        done = (self.patch, self.create, self.machine_patches, self.delete, self.status)
        return not any(done) and not self.drop_finalizer


def work_for_set(
    machine_set: LoadBalancerSet,
    machines: Sequence[LoadBalancerMachine],
    fleet: Fleet,
    now: datetime,
    *,
    timings: Timings = DEFAULT_TIMINGS,
    quota_refused: bool = False,
    taken: Collection[str] = (),
) -> SetWork:
    """What to do now for a set that exists.

    Args:
        machine_set: the set as it was read last.
        machines: its machines (`scaling.machines_of`), oldest first.
        fleet: all machines of the installation.
        now: the moment.
        timings: how long is waited.
        quota_refused: whether the project's quota refused the last machine of the set.
        taken: names that machines have which are not the set's, or not any more.
    """
    if machine_set.metadata.deleting:
        return _farewell(machine_set, machines)
    if token := retry_wanted(machine_set.metadata):
        return SetWork(phase=SetPhase.SCALING, why="try again at once, as the retry asks", patch=tried_again(token))
    adopted: JsonPatch = {}
    if SET_FINALIZER not in machine_set.metadata.finalizers:
        adopted = {"metadata": {"finalizers": [*machine_set.metadata.finalizers, SET_FINALIZER]}}
    plan = plan_set(machine_set, machines, fleet, now, timings=timings, quota_refused=quota_refused, taken=taken)
    why = plan.why or _lacking(machine_set, machines, now, timings)
    ready = why == "" and not plan.create and not plan.delete
    phase = SetPhase.WAITING if plan.hold else SetPhase.READY if ready else SetPhase.SCALING
    return SetWork(
        phase=phase,
        why=why,
        patch=combined(adopted, plan.annotate),
        create=plan.create,
        machine_patches=_machine_patches(machine_set, plan.marks, plan.restamp, plan.delete),
        delete=plan.delete,
        status=plan.status,
        deadline=plan.deadline,
        notices=(*plan.notices, *_deleted(plan.delete)),
    )


def _lacking(
    machine_set: LoadBalancerSet, machines: Sequence[LoadBalancerMachine], now: datetime, timings: Timings
) -> str:
    """How many of the wanted machines are ready, empty if all are."""
    alive = (each for each in machines if not each.metadata.deleting)
    ready, wanted = sum(health_of(each, now, timings).ready for each in alive), machine_set.spec.replicas
    return f"ready machines: {ready} of {wanted}" if ready < wanted else ""


def _machine_patches(
    machine_set: LoadBalancerSet, marks: Sequence[MachineStanding], restamp: Sequence[str], leaving: Sequence[str]
) -> tuple[MachinePatch, ...]:
    found: dict[str, MachinePatch] = {}
    for each in marks:
        patch, status = mark_patches(each.machine, each.health)
        version = each.machine.metadata.resource_version if status else ""
        found[each.name] = MachinePatch(name=each.name, patch=patch, status=status, version=version)
    revision: JsonPatch = {"metadata": {"annotations": {REVISION_ANNOTATION: machine_set.revision}}}
    for name in restamp:
        before = found.get(name, MachinePatch(name=name))
        found[name] = before.model_copy(update={"patch": combined(before.patch, revision)})
    return tuple(each for each in found.values() if (each.patch or each.status) and each.name not in leaving)


def created(machine: LoadBalancerMachine) -> Notice:
    """What is told of a machine that its set has made."""
    return normal("Created", f"Created loadBalancerMachine {machine.metadata.name}")


def _deleted(names: Sequence[str]) -> tuple[Notice, ...]:
    return tuple(normal("Deleted", f"Deleted loadBalancerMachine {name}") for name in names)


def _farewell(machine_set: LoadBalancerSet, machines: Sequence[LoadBalancerMachine]) -> SetWork:
    if SET_FINALIZER not in machine_set.metadata.finalizers:
        return SetWork(phase=SetPhase.GONE, why="it has released everything")
    if not machines:
        return SetWork(phase=SetPhase.DELETING, why="no machine is left", drop_finalizer=True)
    names = tuple(each.metadata.name for each in machines if not each.metadata.deleting)
    why = f"waits until {len(machines)} machines are gone"
    return SetWork(phase=SetPhase.DELETING, why=why, delete=names, notices=_deleted(names))
