"""How many machines a set creates, and which surplus machines it deletes.

Condemned machines that may be replaced (`machine_replacement.py`), and machines being deleted, do not count as
replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from domain.decision import earliest
from domain.loadbalancers.boot_backoff import count_failures, forget_failures, paused_until
from domain.loadbalancers.fleet_silence import Fleet
from domain.loadbalancers.machine_health import DEFAULT_TIMINGS, Timings, health_of, is_master
from domain.loadbalancers.machine_replacement import Ranks, ranks_of, replaced
from domain.loadbalancers.new_machine import machine_names
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.selectors import age
from domain.loadbalancers.set_status import MachineReadiness, readiness_patch, status_patch
from domain.model import Model
from domain.notices import Notice, warning
from domain.resource import timestamp
from domain.writes import JsonPatch, patched


class SetPlan(Model):
    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    marks: tuple[MachineReadiness, ...] = ()  # machines whose mark for deletion is written or removed (`mark_patches`)
    restamp: tuple[str, ...] = ()  # names of machines that need the set's revision
    annotate: JsonPatch = {}  # the merge patch of the set itself: failed boots, and when all machines were ready
    status: JsonPatch = {}  # the merge patch of the set's status; empty if up to date
    hold: str = ""  # why condemned machines are not replaced; empty if they may be
    why: str = ""
    deadline: datetime | None = None  # when the plan may change without any event
    notices: tuple[Notice, ...] = ()


def plan_set(
    machine_set: LoadBalancerSet,
    machines: Sequence[LoadBalancerMachine],
    fleet: Fleet,
    now: datetime,
    *,
    timings: Timings = DEFAULT_TIMINGS,
    quota_refused: bool = False,
    taken: Collection[str] = (),
    noted: bool = False,
) -> SetPlan:
    """The plan for a set that is not being deleted.

    `machines` are sorted with the oldest first. `quota_refused`: a machine of the set waits for quota. `taken` and
    `noted` are fields of SetWorld.
    """
    alive = [
        MachineReadiness(machine=each, health=health_of(each, now, timings))
        for each in machines
        if not each.metadata.deleting
    ]
    ranks = ranks_of(machine_set, alive, fleet, now, timings)
    memory = _memory(machine_set, ranks, now)
    pause = paused_until(patched(machine_set, memory, "") if memory else machine_set)
    paused_to = pause if pause is not None and pause > now else None

    wanted = machine_set.spec.replicas
    missing = wanted - len(ranks.counted)
    room = missing + 1 - len(ranks.former)
    create = 0 if paused_to else max(0, min(missing, room))
    names = machine_names(machine_set.metadata, {*taken, *(each.metadata.name for each in machines)})
    leaving = [*ranks.useless, *replaced(ranks, wanted, quota_refused=quota_refused)]
    staying = [each for each in alive if each not in leaving]
    waits = paused_to if missing > 0 else None
    return SetPlan(
        create=tuple(next(names) for _ in range(create)),
        delete=tuple(each.name for each in (*leaving, *_surplus(ranks.counted, -missing))),
        marks=tuple(each for each in alive if each.health.mark or each.health.unmark),
        restamp=_outdated(machine_set, alive),
        annotate=combined(memory, {} if noted else readiness_patch(machine_set, staying, now)),
        status=status_patch(machine_set, staying, now),
        hold=ranks.hold,
        why=ranks.hold or _why(missing, waits),
        deadline=earliest([waits, ranks.look_again, *(each.health.next_change for each in alive)]),
        notices=(warning("Failed", ranks.hold),) if ranks.hold else (),
    )


def _memory(machine_set: LoadBalancerSet, ranks: Ranks, now: datetime) -> JsonPatch:
    failed = [each.machine for each in ranks.useless if not each.health.reported]
    ready = [each.machine for each in ranks.counted if each.health.ready]
    return count_failures(machine_set, failed, now) or forget_failures(machine_set, ready)


def _outdated(machine_set: LoadBalancerSet, alive: Sequence[MachineReadiness]) -> tuple[str, ...]:
    revision = machine_set.revision
    return tuple(each.name for each in alive if revision and each.machine.revision != revision)


def _surplus(counted: Sequence[MachineReadiness], number: int) -> list[MachineReadiness]:
    ranked = sorted(counted, key=lambda each: (each.health.ready, is_master(each.machine), age(each.machine)))
    return ranked[: max(0, number)]


def _why(missing: int, paused_to: datetime | None) -> str:
    if paused_to is not None:
        return f"machines do not boot: the next machine is created at {timestamp(paused_to)}"
    return f"machines to create: {missing}" if missing > 0 else ""
