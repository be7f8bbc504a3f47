"""A set's status: the number of ready machines, and a condition that is True if a machine of the set holds the virtual
address.

`status.replicas` repeats `spec.replicas`. A rollout empties old sets a fixed time after the condition's transition, so
the transition time changes only with the condition's status. If the condition is already False when all machines become
ready, the fixed time counts from their readiness, which an annotation records.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from domain.loadbalancers.constants import READY_SINCE_ANNOTATION
from domain.loadbalancers.machine_health import Health, is_master
from domain.loadbalancers.resources import HAS_MASTER, LoadBalancerMachine, LoadBalancerSet, SetCondition, SetStatus
from domain.model import Model
from domain.resource import timestamp
from domain.writes import JsonPatch, difference

_MASTER_REASON = "KeepalivedMasterInSet"
_NO_MASTER_REASON = "NoKeepalivedMasterInSet"


class MachineReadiness(Model):
    machine: LoadBalancerMachine
    health: Health

    @property
    def name(self) -> str:
        return self.machine.metadata.name


def status_patch(machine_set: LoadBalancerSet, alive: Sequence[MachineReadiness], now: datetime) -> JsonPatch:
    status = machine_set.status
    master = _master(alive)
    known = _known(machine_set)
    master_text = str(master)
    condition = SetCondition(
        type=HAS_MASTER,
        status=master_text,
        reason=_MASTER_REASON if master else _NO_MASTER_REASON,
        message="a machine of the set holds the virtual address"
        if master
        else "no machine of the set holds the virtual address",
        last_transition_time=timestamp(now),
    )
    remaining = known if known is not None and known.status == master_text else condition
    others = tuple(each for each in status.conditions if each.type != HAS_MASTER)
    wanted = SetStatus(
        available_replicas=status.available_replicas,
        ready_replicas=_ready(alive),
        replicas=machine_set.spec.replicas,
        conditions=(*others, remaining),
    )
    change = difference(status, wanted)
    if "conditions" in change:
        change["conditions"] = [each.model_dump(mode="json", exclude_none=True) for each in wanted.conditions]
    return {"status": change} if change else {}


def readiness_patch(machine_set: LoadBalancerSet, alive: Sequence[MachineReadiness], now: datetime) -> JsonPatch:
    status, wanted, known = machine_set.status, machine_set.spec.replicas, _known(machine_set)
    if not wanted or _ready(alive) != wanted or status.replicas == status.ready_replicas == wanted:
        return {}
    if known is None or known.status != "False" or _master(alive):
        return {}  # the condition is new, changes now, or is True
    return {"metadata": {"annotations": {READY_SINCE_ANNOTATION: timestamp(now)}}}


def _known(machine_set: LoadBalancerSet) -> SetCondition | None:
    return next((each for each in machine_set.status.conditions if each.type == HAS_MASTER), None)


def _master(alive: Sequence[MachineReadiness]) -> bool:
    return any(is_master(each.machine) for each in alive)


def _ready(alive: Sequence[MachineReadiness]) -> int:
    return sum(each.health.ready for each in alive)
