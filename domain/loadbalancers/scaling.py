"""What a set does with its machines: makes them, replaces them, takes surplus ones away.

A machine counts as long as it is neither being deleted nor condemned. What is missing is made at once. A condemned
machine that has ever reported may still pass on traffic: its replacement is made first, one more than wanted at a time,
and it goes when that exists; where the quota allows no more it goes first. One that has never reported, or whose server
is gone, goes at once, and counts as a failed boot.

Two findings hold all of this back: the whole fleet is silent (`fleet.py`), or all machines of the set that report say
that their configuration is at fault while Envoy runs. A new machine would say the same, so a bad Service costs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from domain.decision import earliest
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.boots import count_failures, forget_failures, paused_until
from domain.loadbalancers.constants import API_VERSION, MACHINE_FINALIZER, REVISION_ANNOTATION
from domain.loadbalancers.fleet import Fleet
from domain.loadbalancers.health import (
    CONFIG_READY,
    DEFAULT_TIMINGS,
    ENVOY_READY,
    ENVOY_UP_TO_DATE,
    TRUE,
    Health,
    Standing,
    Timings,
    health_of,
    is_master,
    last_report,
    reports_of,
)
from domain.loadbalancers.names import machine_names
from domain.loadbalancers.notices import Notice, warning
from domain.loadbalancers.resources import HAS_MASTER, LoadBalancerMachine, LoadBalancerSet, SetCondition, SetStatus
from domain.model import Model
from domain.resource import timestamp
from domain.schema import Document
from domain.writes import JsonPatch, difference

_MASTER_REASON = "KeepalivedMasterInSet"
_NO_MASTER_REASON = "NoKeepalivedMasterInSet"


class MachineStanding(Model):
    """A machine and how it stands."""

    machine: LoadBalancerMachine
    health: Health

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.metadata.name


class SetPlan(Model):
    """What to do now for a set, and how it stands.

    Attributes:
        create: machines to be made, as documents for the API server.
        delete: names of machines to be deleted.
        marks: machines whose mark is to be set or removed, see `mark_patches`.
        restamp: names of machines that need the set's revision.
        annotate: the merge patch of the set itself, its memory of boots.
        status: the merge patch of the set's status, empty if it says how the set stands.
        hold: why machines that should be replaced are not, empty if they are.
        why: what is waited for.
        deadline: when another look can differ without anything happening.
        notices: what a person is told.
    """

    create: tuple[Document, ...] = ()
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


def plan_set(
    machine_set: LoadBalancerSet,
    machines: Sequence[LoadBalancerMachine],
    fleet: Fleet,
    now: datetime,
    *,
    timings: Timings = DEFAULT_TIMINGS,
    quota_refused: bool = False,
) -> SetPlan:
    """What to do now for a set that is not being deleted.

    Args:
        machine_set: the set.
        machines: its machines, oldest first.
        fleet: all machines of the installation.
        now: the moment.
        timings: how long is waited.
        quota_refused: whether the project's quota refused the last machine of the set.
    """
    alive = [
        MachineStanding(machine=each, health=health_of(each, now, timings))
        for each in machines
        if not each.metadata.deleting
    ]
    condemned = [each for each in alive if each.health.standing is Standing.CONDEMNED]
    counted = [each for each in alive if each.health.standing is not Standing.CONDEMNED]
    useless = [each for each in condemned if each.health.hopeless or not each.health.reported]
    former = [each for each in condemned if each not in useless]
    config_fault = _config_fault(alive, now, timings) if former else ""
    silence = _silence(fleet) if former else ""
    if config_fault or (silence and fleet.scout != _path(machine_set)):
        counted, former = [*counted, *former], []

    wanted = machine_set.spec.replicas
    failed = [each.machine for each in useless if not each.health.reported]
    ready = [each.machine for each in counted if each.health.ready]
    annotate = count_failures(machine_set, failed, now) or forget_failures(machine_set, ready)
    remembered = _with(machine_set, annotate)
    pause = paused_until(remembered)
    paused = pause is not None and pause > now

    missing = wanted - len(counted)
    room = wanted + 1 - len(counted) - len(former)
    create = 0 if paused else max(0, min(missing, room))
    names = machine_names(machine_set.metadata, {each.metadata.name for each in machines})
    leaving = [*useless, *_replaced(former, wanted, counted, quota_refused=quota_refused, held=bool(silence))]
    surplus = _surplus(counted, -missing)
    hold = config_fault or silence
    return SetPlan(
        create=tuple(machine_document(machine_set, next(names)) for _ in range(create)),
        delete=tuple(each.name for each in (*leaving, *surplus)),
        marks=tuple(each for each in alive if each.health.mark or each.health.unmark),
        restamp=tuple(
            each.name for each in alive if machine_set.revision and each.machine.revision != machine_set.revision
        ),
        annotate=annotate,
        status=_status(machine_set, [each for each in alive if each not in leaving], now),
        hold=hold,
        why=_why(missing, paused=paused, pause=pause, hold=hold),
        deadline=earliest([*(each.health.next_change for each in alive), pause if paused and missing > 0 else None]),
        notices=(warning("Failed", hold),) if hold else (),
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


# --- what holds back ---


def _silence(fleet: Fleet) -> str:
    if not fleet.silent:
        return ""
    return f"none of {fleet.reported} machines reports: the way to the API server may be broken, nothing is deleted"


def _config_fault(alive: Sequence[MachineStanding], now: datetime, timings: Timings) -> str:
    """Why it is the configuration; empty if one machine that reports has none to complain of."""
    reporting = [
        each.machine
        for each in alive
        if (moment := last_report(each.machine)) is not None and moment >= now - timings.window
    ]
    faults = [_fault_of(machine) for machine in reporting]
    if not faults or not all(faults):
        return ""
    return f"the configuration is at fault, not the machines: {faults[0]}"


def _fault_of(machine: LoadBalancerMachine) -> str:
    found = {each.type: each for each in reports_of(machine)}
    config, envoy, current = found.get(CONFIG_READY), found.get(ENVOY_READY), found.get(ENVOY_UP_TO_DATE)
    if config is not None and config.status != TRUE:
        return config.message or f"{CONFIG_READY} is {config.status}"
    runs = envoy is not None and envoy.status == TRUE
    if runs and current is not None and current.status != TRUE:
        return current.message or f"{ENVOY_UP_TO_DATE} is {current.status}"
    return ""


# --- who goes ---


def _replaced(
    former: Sequence[MachineStanding],
    wanted: int,
    counted: Sequence[MachineStanding],
    *,
    quota_refused: bool,
    held: bool,
) -> list[MachineStanding]:
    """The condemned machines whose place is taken, who holds the virtual address last."""
    if held:
        return []
    number = len(former) + len(counted) - wanted
    if quota_refused:
        number = max(number, 1)
    return sorted(former, key=lambda each: (is_master(each.machine), _age(each.machine)))[: max(0, number)]


def _surplus(counted: Sequence[MachineStanding], number: int) -> list[MachineStanding]:
    """Who goes when fewer are wanted: who is not ready, then who does not hold the virtual address, then the oldest."""
    ranked = sorted(counted, key=lambda each: (each.health.ready, is_master(each.machine), _age(each.machine)))
    return ranked[: max(0, number)]


def _age(machine: LoadBalancerMachine) -> tuple[str, str]:
    born = machine.metadata.creation_timestamp
    return (timestamp(born) if born else "", machine.metadata.name)


# --- the set itself ---


def _status(machine_set: LoadBalancerSet, alive: Sequence[MachineStanding], now: datetime) -> JsonPatch:
    status = machine_set.status
    master = any(is_master(each.machine) for each in alive)
    known = next((each for each in status.conditions if each.type == HAS_MASTER), None)
    said = str(master)
    condition = SetCondition(
        type=HAS_MASTER,
        status=said,
        reason=_MASTER_REASON if master else _NO_MASTER_REASON,
        message="a machine of the set holds the virtual address"
        if master
        else "no machine of the set holds the virtual address",
        last_transition_time=timestamp(now),
    )
    kept = known if known is not None and known.status == said else condition
    others = tuple(each for each in status.conditions if each.type != HAS_MASTER)
    wanted = SetStatus(
        available_replicas=status.available_replicas,
        ready_replicas=sum(each.health.ready for each in alive),
        replicas=machine_set.spec.replicas,
        conditions=(*others, kept),
    )
    change = difference(status, wanted)
    if "conditions" in change:
        change["conditions"] = [each.model_dump(mode="json", exclude_none=True) for each in wanted.conditions]
    return {"status": change} if change else {}


def _with(machine_set: LoadBalancerSet, annotate: JsonPatch) -> LoadBalancerSet:
    """The set as it is after the write of its memory."""
    metadata = annotate.get("metadata")
    changed = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(changed, dict):
        return machine_set
    merged = {**machine_set.metadata.annotations, **changed}
    kept = {name: text for name, text in merged.items() if text is not None}
    return machine_set.model_copy(update={"metadata": machine_set.metadata.model_copy(update={"annotations": kept})})


def _why(missing: int, *, paused: bool, pause: datetime | None, hold: str) -> str:
    if hold:
        return hold
    if missing > 0 and paused and pause is not None:
        return f"machines do not boot: the next one is made at {timestamp(pause)}"
    return f"{missing} more machines are made" if missing > 0 else ""


def _path(machine_set: LoadBalancerSet) -> str:
    return f"{machine_set.metadata.namespace}/{machine_set.metadata.name}"
