"""The lifecycle of a machine.

    New --finalizer--> Provisioning: rights, port, server --ACTIVE--> Booting --first report--> Running <--> Ready
    any --its server failed or is lost--> GivenUp: its set replaces it
    any --deletion--> Deleting: server, port, rights, then the finalizer

The set evaluates health (`machine_health.py`) and acts on it; a machine without a set acts by itself. The server is
created after the access objects, because its user data contains the token, which the cluster issues after a moment.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from domain.decision import Action, Decision, earliest
from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.boot_timeout import waiting_patch
from domain.loadbalancers.cloud.deletion import remove_machine
from domain.loadbalancers.cloud.machine import MachinePlan, ServerState, machine_servers
from domain.loadbalancers.cloud.objects import MachineCloud
from domain.loadbalancers.cloud.observation_due import LATE, effects_until, needs_look, observed_again
from domain.loadbalancers.cloud.steps import CreateServer, DeleteServer, Step, in_project
from domain.loadbalancers.config_rejection import config_fault
from domain.loadbalancers.constants import DRIFT_ANNOTATION, GIVEN_UP_ANNOTATION, MARKED_AT_ANNOTATION
from domain.loadbalancers.fleet_silence import AskFleet
from domain.loadbalancers.former_fields import machine_migration
from domain.loadbalancers.machine.api_access import REMOVED, SECRET_GONE, access_objects, access_status
from domain.loadbalancers.machine.world import AwaitServer, GrantAccess, LookAtMachine, MachineWorld, RevokeAccess
from domain.loadbalancers.machine_health import HealthState, expires_at, health_of, mark_patches
from domain.loadbalancers.object_world import Moment, adopt, decided, gone, held_by, writes
from domain.loadbalancers.patches import annotated, combined
from domain.loadbalancers.refused_calls import OVERDUE_AFTER, Blocker, Nature, blocked_step, notices_of, overdue
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.notices import Notice, warning
from domain.resource import timestamp
from domain.writes import Delete, JsonPatch


class MachinePhase(StrEnum):
    NEW = "New"
    PROVISIONING = "Provisioning"
    BOOTING = "Booting"
    RUNNING = "Running"
    READY = "Ready"
    MARKED = "Marked"
    GIVEN_UP = "GivenUp"
    WAITING = "Waiting"
    DELETING = "Deleting"


_PHASES = {
    HealthState.BOOTING: MachinePhase.BOOTING,
    HealthState.RUNNING: MachinePhase.RUNNING,
    HealthState.READY: MachinePhase.READY,
    HealthState.MARKED: MachinePhase.MARKED,
    HealthState.CONDEMNED: MachinePhase.GIVEN_UP,
}
_AWAITED = {
    MachinePhase.BOOTING: "its agent's first report",
    MachinePhase.MARKED: "its recovery",
    MachinePhase.GIVEN_UP: "its replacement by its set",
}
SET_ACTS = timedelta(seconds=30)  # how long the machine waits after a deadline for its set to act


def decide_machine(world: MachineWorld, now: datetime) -> Decision:
    machine = world.machine
    if not world.exists:
        return gone()
    if world.left_to:
        return held_by(world)
    if machine.metadata.deleting:
        return _ending(world, now)
    if patch := adopt(world):
        added = world.write(patch, note="add the finalizer")
        return _decision(world, MachinePhase.NEW, "add its finalizer", (added,), working=True)
    actions, moments = _health_actions(world, now)
    if given_up := machine.metadata.annotations.get(GIVEN_UP_ANNOTATION):
        return _decision(world, MachinePhase.GIVEN_UP, given_up, actions, moments)
    if world.balancer is None:
        reference = machine.spec.load_balancer_ref
        problem = f"LoadBalancer {reference.namespace}/{reference.name} does not exist"
        return _decision(world, MachinePhase.WAITING, problem, actions, moments, problem=problem)
    return _provided(world, now, actions, moments)


def _provided(world: MachineWorld, now: datetime, first: tuple[Action, ...], moments: list[Moment]) -> Decision:
    machine, plan = world.machine, _plan(world)
    grants = () if _has_rights(world) else (_grant(world),)
    steps = in_project((each for each in plan.steps if not (grants and isinstance(each, CreateServer))), world.project)
    observations = _observations(world, steps)
    steps = () if observations else steps
    awaited = () if observations else _awaited(world, plan)
    in_cloud = (*observations, *steps, *awaited)
    blocker = blocked_step(world, in_cloud).blocker  # what is recorded about the cloud depends on its refusals only
    blocked = blocked_step(world, (*grants, *in_cloud))
    problem = plan.problem or blocked.problem
    if plan.given_up and not observations:
        return _given_up(world, plan)
    waiting = waiting_patch(machine, blocker, now, has_server=plan.server is not ServerState.ABSENT)
    patch = combined(waiting, _without_drift(world, plan, blocker))
    # The status is written once, after all steps or when blocked. If a worker dies before that, the next observation
    # finds the objects that it created.
    under_way = any(not world.refused(each.slot) for each in (*grants, *observations, *steps))
    status: JsonPatch = {}
    if not under_way:
        named: JsonPatch = {} if grants else access_status(machine)
        status = combined(machine_migration(machine), plan.status, _found_whole(world, plan, blocker, now), named)
    written = (*writes(world, patch), *writes(world, status, subresource="status"))
    notices = blocked.notices(problem, now)
    phase = _phase(world, plan, problem, now)
    doing = "; ".join(each.summary for each in (*grants, *observations, *steps))
    why = plan.problem or blocked.why or doing or _health_text(world, plan, now)
    moments = [*moments, *observed_again(world)]
    actions = (*written, *grants, *observations, *steps, *awaited, *first)
    working = under_way and not problem
    return _decision(world, phase, why, actions, moments, problem=problem, working=working, notices=notices)


def _plan(world: MachineWorld) -> MachinePlan:
    plan = world.plan if world.seen == world.look else None
    if plan is not None:
        return plan
    there = ServerState.ACTIVE if world.machine.status.server_id else ServerState.ABSENT
    return MachinePlan(server=there, settled=world.known.settled == world.look)


def _observations(world: MachineWorld, steps: tuple[Step, ...]) -> tuple[LookAtMachine, ...]:
    return (_look(world),) if needs_look(world, steps) else ()


def _look(world: MachineWorld) -> LookAtMachine:
    machine = world.machine
    status = machine.status.model_copy(update={"conditions": (), "metrics": ()})
    if world.known.server_gone == status.server_id:
        status = status.model_copy(update={"server_id": None})
    seen = machine.model_copy(update={"status": status})
    return LookAtMachine(project=world.project, machine=seen, changes=world.changes)


def _awaited(world: MachineWorld, plan: MachinePlan) -> tuple[AwaitServer, ...]:
    if plan.server is not ServerState.BUILDING or world.cloud is None:
        return ()
    server = machine_servers(world.machine, world.cloud).selected
    return (AwaitServer(project=world.project, id=server.id),) if server else ()


def _found_whole(world: MachineWorld, plan: MachinePlan, blocker: Blocker | None, now: datetime) -> JsonPatch:
    news = bool(plan.status) or not world.machine.status.last_openstack_reconcile
    if world.cloud is None or blocker or not (plan.settled and news):
        return {}
    return {"status": {"lastOpenstackReconcile": timestamp(now)}}


def _without_drift(world: MachineWorld, plan: MachinePlan, blocker: Blocker | None) -> JsonPatch:
    seen = world.current is not None and blocker is None
    drifted = DRIFT_ANNOTATION in world.machine.metadata.annotations
    return annotated({DRIFT_ANNOTATION: None}) if plan.settled and seen and drifted else {}


def _health_text(world: MachineWorld, plan: MachinePlan, now: datetime) -> str:
    if plan.server is ServerState.BUILDING:
        return "Nova builds its server"
    if plan.server is ServerState.ABSENT:
        return ""
    health = health_of(world.machine, now, world.timings)
    return {
        HealthState.BOOTING: "its server runs, and its agent has not reported yet",
        HealthState.RUNNING: f"its agent reports a problem: {health.why}",
        HealthState.READY: "it serves traffic",
        HealthState.MARKED: f"it is replaced unless it recovers: {health.why}",
        HealthState.CONDEMNED: f"its set replaces it: {health.why}",
    }[health.state]


def _given_up(world: MachineWorld, plan: MachinePlan) -> Decision:
    if plan.server is ServerState.LOST:
        why = "its server does not exist any more"
    else:
        why = f"Nova could not create its server: {plan.fault or 'no reason given'}"
    before = writes(world, plan.status, subresource="status")
    # The annotation is last: afterwards this lifecycle does nothing more for the machine.
    last = writes(world, annotated({GIVEN_UP_ANNOTATION: why}))
    return _decision(world, MachinePhase.GIVEN_UP, why, before or last, notices=(warning("Failed", why),))


def _phase(world: MachineWorld, plan: MachinePlan, problem: str, now: datetime) -> MachinePhase:
    if problem:
        return MachinePhase.WAITING
    if plan.server in (ServerState.ABSENT, ServerState.BUILDING):
        return MachinePhase.PROVISIONING
    return _PHASES[health_of(world.machine, now, world.timings).state]


def _mark(machine: LoadBalancerMachine) -> str:
    return machine.metadata.annotations.get(MARKED_AT_ANNOTATION, "")


def _has_rights(world: MachineWorld) -> bool:
    """Whether the objects that give the machine's agent access to the API server exist: this workflow created them, or
    the status names them all.
    """
    # A machine may be marked for deletion because its agent has lost access. So after each mark, the status is not
    # trusted, and the workflow creates missing objects.
    mark = _mark(world.machine)
    named = not access_status(world.machine) and not mark and world.known.granted != SECRET_GONE
    return named or world.known.granted == (mark or "new")


def _grant(world: MachineWorld) -> GrantAccess:
    machine = world.machine
    return GrantAccess(
        namespace=machine.metadata.namespace, objects=access_objects(machine), mark=_mark(machine) or "new"
    )


def _health_actions(world: MachineWorld, now: datetime) -> tuple[tuple[Action, ...], list[Moment]]:
    """The actions for the machine's health, and when the health may change next.

    The watcher reports missed heartbeats to sets only, so a machine without a set tracks the expiry itself.
    """
    machine = world.machine
    health = health_of(machine, now, world.timings)
    if not world.orphan:
        then = {
            HealthState.BOOTING: "it is replaced if its agent has not reported",
            HealthState.MARKED: "it is replaced if it has not recovered",
        }.get(health.state, "it is marked for deletion if it has not recovered")
        return (), [Moment(at=health.next_change, then=then, patience=SET_ACTS)] if health.next_change else []
    if world.sets_left_to:
        return (), [Moment(at=world.again)] if world.again else []
    if health.state is HealthState.CONDEMNED:
        return _condemned(world, now, reported=health.reported and not health.hopeless)
    patch, status = mark_patches(machine, health)
    silent = expires_at(machine, world.timings)
    change = earliest([health.next_change, silent if silent and silent > now else None])
    written = (*writes(world, patch), *writes(world, status, subresource="status"))
    return written, [Moment(at=change)] if change else []


def _condemned(world: MachineWorld, now: datetime, *, reported: bool) -> tuple[tuple[Action, ...], list[Moment]]:
    machine = world.machine
    if reported and world.balancer is not None:  # without a LoadBalancer it serves no traffic
        if config_fault([machine], now, world.timings):
            return (), [Moment(at=now + world.timings.window)]
        if world.fleet is None:
            return (AskFleet(),), []
        if world.fleet.silent:
            return (), [Moment(at=(world.fleet.at or now) + world.timings.window)]
    return (Delete(key=world.key),), []


def _ending(world: MachineWorld, now: datetime) -> Decision:
    """The next deletion. The server is first, because it costs money. API access is last, so that the agent can report
    until then.
    """
    machine = world.machine
    if adopt(world):
        return gone("it has released everything")
    wanted = _removal(world)
    until = None if wanted else effects_until(world)
    if until and until <= now:
        wanted = (_look(world),)
    if wanted:
        return _leaving(world, wanted, now)
    if until:
        return _decision(world, MachinePhase.DELETING, LATE, moments=[Moment(at=until)])
    if not world.known.revoked:
        revoke = RevokeAccess(namespace=machine.metadata.namespace, name=machine.metadata.name, kinds=REMOVED)
        blocked = blocked_step(world, (revoke,))
        return _decision(
            world,
            MachinePhase.DELETING,
            blocked.why or revoke.summary,
            (revoke,),
            problem=blocked.problem,
            working=blocked.blocker is None,
            notices=blocked.notices(blocked.problem, now),
        )
    drop = world.drop_finalizer("release the machine: nothing is left")
    return _decision(world, MachinePhase.DELETING, "nothing is left", (drop,), working=True)


def _removal(world: MachineWorld) -> tuple[Action, ...]:
    server = world.machine.status.server_id
    if server and world.known.server_gone != server:
        return in_project((DeleteServer(id=server),), world.project)
    steps = in_project(remove_machine(world.machine, world.cloud or MachineCloud()).steps, world.project)
    return _observations(world, steps) or steps


def _leaving(world: MachineWorld, wanted: tuple[Action, ...], now: datetime) -> Decision:
    began = world.machine.metadata.deletion_timestamp or now
    blocked = blocked_step(world, wanted)
    doing = "; ".join(each.summary for each in wanted)
    slow = blocked.blocker or Blocker(why=doing, nature=Nature.UNDER_WAY)
    notices = (*notices_of(blocked.problem, blocked.blocker), *overdue(slow, began, now))
    late = began + OVERDUE_AFTER
    moments = [Moment(at=late, then="report that the deletion takes long")] if late > now else []
    return _decision(
        world,
        MachinePhase.DELETING,
        blocked.why or doing,
        wanted,
        moments,
        problem=blocked.problem,
        working=blocked.blocker is None,
        notices=notices,
    )


# --- decisions ---


def _about(world: MachineWorld) -> Key | None:
    if world.balancer is None or world.machine.metadata.deleting:
        return None
    reference = world.machine.spec.load_balancer_ref.model_dump(include={"namespace", "name"})
    return Key(kind=LOAD_BALANCER.name, uid=world.balancer.uid, cluster=world.key.cluster, **reference)


def _decision(
    world: MachineWorld,
    phase: MachinePhase,
    why: str,
    actions: tuple[Action, ...] = (),
    moments: list[Moment] | None = None,
    *,
    problem: str = "",
    working: bool = False,
    notices: tuple[Notice, ...] = (),
) -> Decision:
    waits = problem or _AWAITED.get(phase) or why or "the agent's report"
    why, settled = why or "its server runs", phase is MachinePhase.READY
    notices = tuple(each.model_copy(update={"about": _about(world)}) for each in notices)
    more: dict[str, Any] = {"settled": settled, "working": working, "waits_for": waits, "notices": notices}
    return decided(world, phase, why, actions, moments or (), **more)
