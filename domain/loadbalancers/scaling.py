"""What a set does with its machines: makes them, replaces them, takes surplus ones away.

A machine counts as long as it is neither being deleted nor condemned. What is missing is made at once. A condemned
machine that has ever reported may still pass on traffic: its replacement is made first, one more than wanted at a time,
and it goes when that exists; where the quota allows no more it goes first. One that has never reported, or whose server
is gone, goes at once, and counts as a failed boot.

Two findings hold replacements back: the whole fleet is silent (`fleet.py`), or Envoy rejects the configuration. A new
machine would reject it too, so a bad Service costs no machine. A machine that alone rejects what another one of its set
serves is replaced, and so is one whose Envoy runs but does not take up what it is served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from domain.decision import earliest
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.boots import count_failures, forget_failures, paused_until
from domain.loadbalancers.constants import API_VERSION, MACHINE_FINALIZER, REVISION_ANNOTATION
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import (
    CONFIG_READY,
    CONFIG_REJECTED,
    DEFAULT_TIMINGS,
    ENVOY_READY,
    ENVOY_UP_TO_DATE,
    TRUE,
    Standing,
    Timings,
    health_of,
    is_master,
    last_report,
    reports_of,
    unmet,
)
from domain.loadbalancers.names import machine_names
from domain.loadbalancers.patches import combined
from domain.loadbalancers.resources import LoadBalancerMachine, LoadBalancerSet
from domain.loadbalancers.set_status import MachineStanding, readiness_patch, status_patch
from domain.model import Model
from domain.notices import Notice, warning
from domain.resource import timestamp
from domain.schema import Document
from domain.writes import JsonPatch


class SetPlan(Model):
    """What to do now for a set, and how it stands.

    Attributes:
        create: names of machines to be made.
        delete: names of machines to be deleted.
        marks: machines whose mark is to be set or removed, see `mark_patches`.
        restamp: names of machines that need the set's revision.
        annotate: the merge patch of the set itself, its memory of boots and of when all were ready.
        status: the merge patch of the set's status, empty if it says how the set stands.
        hold: why machines that should be replaced are not, empty if they are.
        why: what is waited for.
        deadline: when another look can differ without anything happening.
        notices: what a person is told.
    """

    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    marks: tuple[MachineStanding, ...] = ()
    restamp: tuple[str, ...] = ()
    annotate: JsonPatch = {}
    status: JsonPatch = {}
    hold: str = ""
    why: str = ""
    deadline: datetime | None = None
    notices: tuple[Notice, ...] = ()


def machines_of(
    machine_set: LoadBalancerSet, machines: Iterable[LoadBalancerMachine]
) -> tuple[LoadBalancerMachine, ...]:
    """The machines of the set, oldest first: by its selector, or by their owner where it selects nothing."""
    wanted = machine_set.spec.selector.match_labels

    def belongs(machine: LoadBalancerMachine) -> bool:
        meta = machine.metadata
        if meta.namespace != machine_set.metadata.namespace:
            return False
        owners = [each.uid for each in meta.owner_references if each.kind == LOAD_BALANCER_SET.name]
        if owners:
            return machine_set.metadata.uid in owners
        return bool(wanted) and wanted.items() <= meta.labels.items()

    return tuple(sorted(filter(belongs, machines), key=_age))


def selects(machine_set: LoadBalancerSet, machine: LoadBalancerMachine) -> bool:
    """Whether the set looks after the machine: it has all labels of the set's selector, and no other set owns it."""
    wanted = machine_set.spec.selector.match_labels
    return wanted.items() <= machine.metadata.labels.items() and bool(machines_of(machine_set, (machine,)))


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
    """What to do now for a set that is not being deleted.

    Args:
        machine_set: the set.
        machines: its machines, oldest first.
        fleet: all machines of the installation.
        now: the moment.
        timings: how long is waited.
        quota_refused: whether the project's quota refused the last machine of the set.
        taken: names that machines have which are not the set's, or not any more.
        noted: since when all of them are ready has just been noted.
    """
    alive = [
        MachineStanding(machine=each, health=health_of(each, now, timings))
        for each in machines
        if not each.metadata.deleting
    ]
    ranks = _ranks(machine_set, alive, fleet, now, timings)
    memory = _memory(machine_set, ranks, now)
    pause = paused_until(_with(machine_set, memory))
    paused_to = pause if pause is not None and pause > now else None

    wanted = machine_set.spec.replicas
    missing = wanted - len(ranks.counted)
    room = missing + 1 - len(ranks.former)
    create = 0 if paused_to else max(0, min(missing, room))
    names = machine_names(machine_set.metadata, {*taken, *(each.metadata.name for each in machines)})
    leaving = [*ranks.useless, *_replaced(ranks, wanted, quota_refused=quota_refused)]
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


def machine_document(machine_set: LoadBalancerSet, name: str) -> Document:
    """A machine of the set, as a document for the API server; its finalizer is there from birth."""
    meta, template = machine_set.metadata, machine_set.spec.template
    return {
        "apiVersion": API_VERSION,
        "kind": LOAD_BALANCER_MACHINE.name,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": dict(machine_set.spec.selector.match_labels),
            "annotations": {REVISION_ANNOTATION: machine_set.revision} if machine_set.revision else {},
            "finalizers": [MACHINE_FINALIZER],
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": LOAD_BALANCER_SET.name, "name": meta.name, "uid": meta.uid}
            ],
        },
        "spec": template.spec.model_dump(mode="json", exclude_none=True),
    }


# --- who counts ---


class _Ranks(Model):
    """The machines that count, the condemned ones that may serve still, and those that never will.

    `hold` says why the second are none, or why they are `kept` until they are too many; `look_again` when nobody else
    will say that it is over.
    """

    counted: tuple[MachineStanding, ...] = ()
    former: tuple[MachineStanding, ...] = ()
    useless: tuple[MachineStanding, ...] = ()
    hold: str = ""
    kept: bool = False
    look_again: datetime | None = None


def _ranks(
    machine_set: LoadBalancerSet, alive: Sequence[MachineStanding], fleet: Fleet, now: datetime, timings: Timings
) -> _Ranks:
    condemned = [each for each in alive if each.health.standing is Standing.CONDEMNED]
    counted = tuple(each for each in alive if each not in condemned)
    useless = tuple(each for each in condemned if each.health.hopeless or not each.health.reported)
    former = tuple(each for each in condemned if each not in useless)
    ranks = _Ranks(counted=counted, former=former, useless=useless)
    if not former:
        return ranks
    rejecting = tuple(each for each in former if rejection_of(each.machine))
    if rejecting and (fault := config_fault(alive, now, timings)):
        counted, former = (*counted, *rejecting), tuple(each for each in former if each not in rejecting)
        ranks = ranks.model_copy(update={"counted": counted, "former": former, "hold": fault})
    if not former:
        return ranks
    if not fleet.silent:
        return ranks
    # That another set's machine reports again is no event of this one.
    silent = {"hold": _silence(fleet), "kept": True, "look_again": now + timings.window}
    if fleet.scout != f"{machine_set.metadata.namespace}/{machine_set.metadata.name}":
        silent.update(counted=(*counted, *former), former=())
    return ranks.model_copy(update=silent)


def _memory(machine_set: LoadBalancerSet, ranks: _Ranks, now: datetime) -> JsonPatch:
    failed = [each.machine for each in ranks.useless if not each.health.reported]
    ready = [each.machine for each in ranks.counted if each.health.ready]
    return count_failures(machine_set, failed, now) or forget_failures(machine_set, ready)


def _outdated(machine_set: LoadBalancerSet, alive: Sequence[MachineStanding]) -> tuple[str, ...]:
    revision = machine_set.revision
    return tuple(each.name for each in alive if revision and each.machine.revision != revision)


# --- what holds back ---


def _silence(fleet: Fleet) -> str:
    return f"none of {fleet.reported} machines reports: the API server may be out of their reach, so none is deleted"


def config_fault(alive: Sequence[MachineStanding], now: datetime, timings: Timings) -> str:
    """Why the configuration is to blame, in Envoy's words; empty if Envoy rejects nothing, or a machine serves it all.

    Only a rejection (NACK) counts. An Envoy that is merely behind is wedged, however many of the set's are.
    """
    reporting = [
        each.machine
        for each in alive
        if (moment := last_report(each.machine)) is not None and moment >= now - timings.window
    ]
    if any(not unmet(machine, now, timings.window, stable=False) for machine in reporting):
        return ""
    rejections = [found for machine in reporting if (found := rejection_of(machine))]
    return f"Envoy rejects the configuration, so no machine is replaced: {rejections[0]}" if rejections else ""


def rejection_of(machine: LoadBalancerMachine) -> str:
    """Why the machine's Envoy rejects the configuration; empty if it does not, or if it also fails otherwise."""
    found = {each.type: each for each in reports_of(machine)}
    config = found.get(CONFIG_READY)
    if config is None or config.status == TRUE or config.reason != CONFIG_REJECTED:
        return ""
    if any(type_ in found and found[type_].status != TRUE for type_ in (ENVOY_READY, ENVOY_UP_TO_DATE)):
        return ""
    return config.message or f"{CONFIG_READY} is {config.status}"


# --- who goes ---


def _replaced(ranks: _Ranks, wanted: int, *, quota_refused: bool) -> list[MachineStanding]:
    """The condemned machines whose place is taken, who holds the virtual address last.

    Of those that are kept only as many go as are too many by themselves: fewer are wanted, and that is no judgement.
    """
    number = len(ranks.former) - wanted
    if not ranks.kept:
        number = max(number + len(ranks.counted), 1 if quota_refused else 0)
    ranked = sorted(ranks.former, key=lambda each: (is_master(each.machine), _age(each.machine)))
    return ranked[: max(0, number)]


def _surplus(counted: Sequence[MachineStanding], number: int) -> list[MachineStanding]:
    """Who goes when fewer are wanted: who is not ready, then who does not hold the virtual address, then the oldest."""
    ranked = sorted(counted, key=lambda each: (each.health.ready, is_master(each.machine), _age(each.machine)))
    return ranked[: max(0, number)]


def _age(machine: LoadBalancerMachine) -> tuple[str, str]:
    born = machine.metadata.creation_timestamp
    return (timestamp(born) if born else "", machine.metadata.name)


# --- the set itself ---


def _with(machine_set: LoadBalancerSet, annotate: JsonPatch) -> LoadBalancerSet:
    """The set as it is after the write of its memory."""
    metadata = annotate.get("metadata")
    changed = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(changed, dict):
        return machine_set
    merged = {**machine_set.metadata.annotations, **changed}
    kept = {name: text for name, text in merged.items() if text is not None}
    return machine_set.model_copy(update={"metadata": machine_set.metadata.model_copy(update={"annotations": kept})})


def _why(missing: int, paused_to: datetime | None) -> str:
    if paused_to is not None:
        return f"machines do not boot: the next one is created at {timestamp(paused_to)}"
    return f"{missing} more machines are created" if missing > 0 else ""
