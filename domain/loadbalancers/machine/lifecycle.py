"""The lifecycle of a machine, from what is observed to what is to be done now.

    New --finalizer--> Provisioning: rights, port, server --ACTIVE--> Booting --first report--> Running <--> Ready
    any but Ready --its server failed or is lost--> GivenUp: its set replaces it
    any --deletion--> Deleting: server, port, rights, then the finalizer

Health is the set's to judge (`health.py`); here it only names the phase. The rights are made first, because the token
in the Secret takes the cluster a moment to fill in and the server's user data needs it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import StrEnum

from domain.loadbalancers.cloud.machine import MachinePlan, ServerState, plan_machine
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.removal import remove_machine
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.constants import (
    BOOTS_SINCE_ANNOTATION,
    DRIFT_ANNOTATION,
    GIVEN_UP_ANNOTATION,
    MACHINE_FINALIZER,
    OUTAGE_ANNOTATION,
    QUOTA_ANNOTATION,
)
from domain.loadbalancers.health import DEFAULT_TIMINGS, Standing, Timings, health_of
from domain.loadbalancers.hindrances import Hindrance, Nature, notices_of
from domain.loadbalancers.machine.access import REMOVED, access_objects, access_status
from domain.loadbalancers.migration import machine_migration
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.model import Model
from domain.notices import Notice, warning
from domain.resource import timestamp
from domain.schema import Document
from domain.writes import JsonPatch

# Eight looks for a boot of a minute; a server that runs is seen after 20 s at the latest.
_FIRST_LOOK = timedelta(seconds=1)
_LONGEST_LOOK = timedelta(seconds=20)
_PART_OF_AGE = 0.8


class MachinePhase(StrEnum):
    """Where a machine stands."""

    NEW = "New"
    PROVISIONING = "Provisioning"
    BOOTING = "Booting"
    RUNNING = "Running"
    READY = "Ready"
    MARKED = "Marked"
    GIVEN_UP = "GivenUp"
    WAITING = "Waiting"
    DELETING = "Deleting"
    GONE = "Gone"


_PHASES = {
    Standing.BOOTING: MachinePhase.BOOTING,
    Standing.RUNNING: MachinePhase.RUNNING,
    Standing.READY: MachinePhase.READY,
    Standing.MARKED: MachinePhase.MARKED,
    Standing.CONDEMNED: MachinePhase.GIVEN_UP,
}


class MachineWork(Model):
    """What to do now for a machine, and how it stands.

    Attributes:
        phase: where it stands.
        why: what is waited for, in words.
        problem: what only a person, or a change of the world, can mend.
        patch: the merge patch of the object; before anything else.
        create: objects of its rights that are missing, as documents for the API server.
        steps: what to do in the cloud now.
        status: the merge patch of its status.
        remove: kinds of the objects of its rights that have to go, all called like the machine.
        drop_finalizer: nothing is left, and the object may go.
        building: whether the server is being made, so that it has to be looked at.
        virtual_address: what the machine listens on, for its user data.
        notices: what a person is told, on its LoadBalancer; on the machine itself when it goes or has none.
    """

    phase: MachinePhase
    why: str = ""
    problem: str = ""
    patch: JsonPatch = {}
    create: tuple[Document, ...] = ()
    steps: tuple[Step, ...] = ()
    status: JsonPatch = {}
    remove: tuple[str, ...] = ()
    drop_finalizer: bool = False
    building: bool = False
    virtual_address: str = ""
    notices: tuple[Notice, ...] = ()

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done now."""
        return not any((self.patch, self.create, self.steps, self.status, self.remove, self.drop_finalizer))


def work_for_machine(
    machine: LoadBalancerMachine,
    balancer: LoadBalancer | None,
    cloud: MachineCloud | None,
    rights: Collection[str],
    now: datetime,
    timings: Timings = DEFAULT_TIMINGS,
    hindrance: Hindrance | None = None,
) -> MachineWork:
    """What to do now for a machine that exists.

    Args:
        machine: the machine as it was read last.
        balancer: its LoadBalancer, None if there is none.
        cloud: its candidates in the cloud; None where everything is as it should be, or could not be looked at.
        rights: the kinds of the objects of its rights that exist.
        now: the moment.
        timings: how long is waited.
        hindrance: what stands in the way in the cloud: nothing is tried there again before another look.
    """
    if machine.metadata.deleting:
        return _farewell(machine, cloud, rights, hindrance)
    if MACHINE_FINALIZER not in machine.metadata.finalizers:
        patch: JsonPatch = {"metadata": {"finalizers": [*machine.metadata.finalizers, MACHINE_FINALIZER]}}
        return MachineWork(phase=MachinePhase.NEW, why="add its finalizer", patch=patch)
    if GIVEN_UP_ANNOTATION in machine.metadata.annotations:
        return MachineWork(phase=MachinePhase.GIVEN_UP, why=machine.metadata.annotations[GIVEN_UP_ANNOTATION])
    if balancer is None:
        reference = machine.spec.load_balancer_ref
        problem = f"LoadBalancer {reference.namespace}/{reference.name} does not exist"
        return MachineWork(phase=MachinePhase.WAITING, why=problem, problem=problem)
    missing = tuple(each for each in access_objects(machine) if each["kind"] not in rights)
    plan = _plan(machine, balancer, cloud, hindrance)
    if plan.given_up:
        return _given_up(plan)
    named: JsonPatch = {} if missing else access_status(machine)
    return MachineWork(
        phase=_phase(machine, plan, now, timings),
        why=plan.problem
        or (hindrance.why if hindrance else "")
        or "; ".join(step.summary for step in plan.steps)
        or _told(machine, plan, now, timings),
        problem=plan.problem,
        patch=combined(_waiting_patch(machine, plan, hindrance, now), _mended(machine, plan, cloud)),
        create=missing,
        steps=plan.steps,
        status=combined(machine_migration(machine), plan.status, _found_whole(machine, plan, cloud, now), named),
        building=plan.server is ServerState.BUILDING,
        virtual_address=plan.virtual_address,
        notices=notices_of(plan.problem, hindrance),
    )


def next_look(age: timedelta) -> timedelta:
    """After how long a server that is being built is looked at again, by how old its machine is."""
    return max(_FIRST_LOOK, min(_LONGEST_LOOK, age * _PART_OF_AGE))


def _plan(
    machine: LoadBalancerMachine, balancer: LoadBalancer, cloud: MachineCloud | None, hindrance: Hindrance | None
) -> MachinePlan:
    """What the cloud lacks, as far as something can be done about it now."""
    if cloud is None:
        there = ServerState.ACTIVE if machine.status.server_id else ServerState.ABSENT
        plan = MachinePlan(server=there, settled=hindrance is None)
    else:
        plan = plan_machine(
            machine,
            cloud,
            security_group_id=balancer.status.group_id or "",
            debug=balancer.spec.debug_settings,
        )
    if hindrance is None:
        return plan
    return plan.model_copy(
        update={"steps": (), "settled": False, "problem": plan.problem or hindrance.problem},
    )


def _found_whole(
    machine: LoadBalancerMachine, plan: MachinePlan, cloud: MachineCloud | None, now: datetime
) -> JsonPatch:
    """That all is in place in the cloud: with whatever was found to be new, and where nobody has said so yet."""
    news = bool(plan.status) or not machine.status.last_openstack_reconcile
    if cloud is None or not (plan.settled and news):
        return {}
    return {"status": {"lastOpenstackReconcile": timestamp(now)}}


def _mended(machine: LoadBalancerMachine, plan: MachinePlan, cloud: MachineCloud | None) -> JsonPatch:
    """What the sweep had found is no more."""
    looked = cloud is not None and not cloud.servers_only
    if not (plan.settled and looked and DRIFT_ANNOTATION in machine.metadata.annotations):
        return {}
    return {"metadata": {"annotations": {DRIFT_ANNOTATION: None}}}


def _waiting_patch(
    machine: LoadBalancerMachine, plan: MachinePlan, hindrance: Hindrance | None, now: datetime
) -> JsonPatch:
    """Record what keeps a machine from getting its server: its time to boot begins with its server.

    A limit of this process is no outage: its turn comes within seconds.
    """
    annotations = machine.metadata.annotations
    if hindrance is not None and hindrance.nature is Nature.QUOTA and QUOTA_ANNOTATION not in annotations:
        return _annotated({QUOTA_ANNOTATION: hindrance.why})
    there = plan.server is not ServerState.ABSENT
    outage = hindrance is not None and hindrance.nature is Nature.OUTAGE and not hindrance.ours
    waits = tuple(each for each in (QUOTA_ANNOTATION, OUTAGE_ANNOTATION) if each in annotations)
    if outage and hindrance is not None and not there and not waits:
        return _annotated({OUTAGE_ANNOTATION: hindrance.why})
    over = waits if there else ()
    if hindrance is not None and hindrance.nature is Nature.REFUSED:
        # OpenStack answers again: a refusal counts against the time to boot.
        over = tuple(each for each in waits if there or each == OUTAGE_ANNOTATION)
    return _annotated({**dict.fromkeys(over), BOOTS_SINCE_ANNOTATION: timestamp(now)}) if over else {}


def _annotated(annotations: JsonPatch) -> JsonPatch:
    return {"metadata": {"annotations": annotations}}


def _told(machine: LoadBalancerMachine, plan: MachinePlan, now: datetime, timings: Timings) -> str:
    """How it stands when there is nothing to do for it."""
    if plan.server is ServerState.BUILDING:
        return "Nova builds its server"
    if plan.server is ServerState.ABSENT:
        return ""
    health = health_of(machine, now, timings)
    return {
        Standing.BOOTING: "its server runs, and its agent has not reported yet",
        Standing.RUNNING: f"its agent reports a problem: {health.why}",
        Standing.READY: "it serves traffic",
        Standing.MARKED: f"it is replaced unless it recovers: {health.why}",
        Standing.CONDEMNED: f"its set replaces it: {health.why}",
    }[health.standing]


def _given_up(plan: MachinePlan) -> MachineWork:
    if plan.server is ServerState.LOST:
        why = "its server does not exist any more"
    else:
        why = f"Nova could not create its server: {plan.fault or 'no reason given'}"
    return MachineWork(
        phase=MachinePhase.GIVEN_UP,
        why=why,
        patch={"metadata": {"annotations": {GIVEN_UP_ANNOTATION: why}}},
        status=plan.status,
        notices=(warning("Failed", why),),
    )


def _phase(machine: LoadBalancerMachine, plan: MachinePlan, now: datetime, timings: Timings) -> MachinePhase:
    if plan.problem:
        return MachinePhase.WAITING
    if plan.server in (ServerState.ABSENT, ServerState.BUILDING):
        return MachinePhase.PROVISIONING
    return _PHASES[health_of(machine, now, timings).standing]


def _farewell(
    machine: LoadBalancerMachine, cloud: MachineCloud | None, rights: Collection[str], hindrance: Hindrance | None
) -> MachineWork:
    """What costs money first; the rights last, so that the agent can report until its server is gone."""
    if MACHINE_FINALIZER not in machine.metadata.finalizers:
        return MachineWork(phase=MachinePhase.GONE, why="it has released everything")
    if hindrance is not None or cloud is None:
        why = hindrance.why if hindrance else "find out what is left in the cloud"
        notices = notices_of(hindrance.problem, hindrance) if hindrance else ()
        return MachineWork(phase=MachinePhase.DELETING, why=why, notices=notices)
    removal = remove_machine(machine, cloud)
    if not removal.done:
        why = removal.waits or "; ".join(step.summary for step in removal.steps)
        return MachineWork(phase=MachinePhase.DELETING, why=why, steps=removal.steps)
    remove = tuple(kind for kind in REMOVED if kind in rights)
    if remove:
        return MachineWork(
            phase=MachinePhase.DELETING, why="delete its Role, RoleBinding and ServiceAccount", remove=remove
        )
    return MachineWork(phase=MachinePhase.DELETING, why="nothing is left", drop_finalizer=True)
