"""The lifecycle of a LoadBalancerSet.

    New --finalizer--> Scaling <--> Ready          any --deletion--> Deleting: its machines, then the finalizer

`scaling.py` plans its machines. The set is patched before its machines, so that failed boots are recorded before the
failed machines are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

from domain.control_annotations import retry_wanted
from domain.decision import Action, Decision
from domain.loadbalancers.boot_backoff import tried_again
from domain.loadbalancers.constants import QUOTA_ANNOTATION, REVISION_ANNOTATION
from domain.loadbalancers.fleet_silence import AskFleet, Fleet
from domain.loadbalancers.machine_health import HealthState, health_of, mark_patches
from domain.loadbalancers.object_world import Moment, adopt, decided, gone, held_by, writes
from domain.loadbalancers.patches import combined
from domain.loadbalancers.scaling import SetPlan, plan_set
from domain.loadbalancers.set_world import CreateMachine, DeleteMachine, PatchMachine, SetWorld
from domain.notices import Notice, normal, warning
from domain.refusal import ErrorType
from domain.writes import JsonPatch

# Until this time after a machine's creation, each pass reports the Event `Created`: the pass that created the machine
# may have crashed before its report.
CREATED_REPORTED = timedelta(minutes=10)


class SetPhase(StrEnum):
    NEW = "New"
    SCALING = "Scaling"
    READY = "Ready"
    WAITING = "Waiting"
    DELETING = "Deleting"


def decide_set(world: SetWorld, now: datetime) -> Decision:
    machine_set = world.machine_set
    if not world.exists:
        return gone()
    if world.left_to:
        return held_by(world)
    if machine_set.metadata.deleting:
        return _ending(world)
    if token := retry_wanted(machine_set.metadata):
        retried = writes(world, tried_again(token))
        return _decision(world, SetPhase.SCALING, "end the delay of the next machine: a retry was requested", retried)
    if world.fleet is None and _asks_fleet(world, now):
        return _decision(
            world, SetPhase.SCALING, "find out whether any machine of the installation reports", (AskFleet(),)
        )
    quota = any(QUOTA_ANNOTATION in each.metadata.annotations for each in world.machines)
    plan = plan_set(
        machine_set,
        world.machines,
        world.fleet or Fleet(),
        now,
        timings=world.timings,
        quota_refused=quota,
        taken=world.taken,
        noted=world.noted,
    )
    why = plan.why or _lacking(world, now)
    ready = why == "" and not plan.create and not plan.delete
    first, scaled = writes(world, combined(adopt(world), plan.annotate)), _scaled(world, plan)
    return _decision(
        world,
        SetPhase.WAITING if plan.hold else SetPhase.READY if ready else SetPhase.SCALING,
        why,
        first or scaled,
        (Moment(at=plan.deadline, then="check its machines again"),) if plan.deadline else (),
        (*plan.notices, *_created(world, now)),
    ).model_copy(update={"planned": tuple(each.summary for each in scaled) if first else ()})


def _created(world: SetWorld, now: datetime) -> Iterator[Notice]:
    for machine in world.machines:
        meta, owner = machine.metadata, world.machine_set.metadata.uid
        young = meta.creation_timestamp is not None and now - meta.creation_timestamp < CREATED_REPORTED
        if young and any(each.uid == owner for each in meta.owner_references):
            about = machine.key.model_copy(update={"cluster": world.key.cluster})
            yield normal("Created", f"Created loadBalancerMachine {meta.name}", about=about)


def _asks_fleet(world: SetWorld, now: datetime) -> bool:
    healths = (health_of(each, now, world.timings) for each in world.machines if not each.metadata.deleting)
    return any(each.state is HealthState.CONDEMNED and each.reported for each in healths)


def _lacking(world: SetWorld, now: datetime) -> str:
    alive = (each for each in world.machines if not each.metadata.deleting)
    ready, wanted = sum(health_of(each, now, world.timings).ready for each in alive), world.machine_set.spec.replicas
    return f"ready machines: {ready} of {wanted}" if ready < wanted else ""


def _scaled(world: SetWorld, plan: SetPlan) -> tuple[Action, ...]:
    return (
        *(CreateMachine(machine_set=world.machine_set, name=name) for name in plan.create),
        *_machine_patches(world, plan),
        *_deletions(world, plan.delete),
        *writes(world, plan.status, subresource="status"),
    )


def _machine_patches(world: SetWorld, plan: SetPlan) -> tuple[PatchMachine, ...]:
    found: dict[str, PatchMachine] = {}
    for each in plan.marks:
        patch, status = mark_patches(each.machine, each.health)
        version = each.machine.metadata.resource_version if status else ""
        found[each.name] = PatchMachine(
            machine_set=world.machine_set, name=each.name, patch=patch, status=status, version=version
        )
    revision: JsonPatch = {"metadata": {"annotations": {REVISION_ANNOTATION: world.machine_set.revision}}}
    for name in plan.restamp:
        before = found.get(name, PatchMachine(machine_set=world.machine_set, name=name))
        found[name] = before.model_copy(update={"patch": combined(before.patch, revision)})
    return tuple(each for each in found.values() if (each.patch or each.status) and each.name not in plan.delete)


def _deletions(world: SetWorld, names: Sequence[str]) -> tuple[DeleteMachine, ...]:
    return tuple(DeleteMachine(machine_set=world.machine_set, name=name) for name in names)


def _ending(world: SetWorld) -> Decision:
    if adopt(world):
        return gone("it has released everything")
    if not world.machines:
        drop = world.drop_finalizer("release the set: no machine is left")
        return _decision(world, SetPhase.DELETING, "no machine is left", (drop,))
    names = [each.metadata.name for each in world.machines if not each.metadata.deleting]
    why = f"waits until {len(world.machines)} machines are gone"
    return _decision(world, SetPhase.DELETING, why, _deletions(world, names))


def _decision(
    world: SetWorld,
    phase: SetPhase,
    why: str,
    actions: tuple[Action, ...],
    moments: tuple[Moment, ...] = (),
    notices: tuple[Notice, ...] = (),
) -> Decision:
    refusals = (world.refused(each.slot, ErrorType.DENIED, ErrorType.INVALID) for each in actions)
    if refused := next((each.message for each in refusals if each), ""):
        phase = phase if phase is SetPhase.DELETING else SetPhase.WAITING
        why, notices = refused, (*notices, warning("Failed", refused))
    why, waits, settled = why or "its machines are ready", why or "its machines", phase is SetPhase.READY
    return decided(world, phase, why, actions, moments, settled=settled, waits_for=waits, notices=notices)
