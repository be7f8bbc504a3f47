from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.instances.events import EventKind, InstanceState
from domain.instances.interruption_causes import open_interruptions, open_planned
from domain.instances.observed import InstanceWorld


class InstancePhase(StrEnum):
    UNKNOWN = "Unknown"
    LIVE = "Live"
    LAUNCHING = "Launching"
    INTERRUPTING = "Interrupting"
    MAINTENANCE_PLANNED = "MaintenancePlanned"
    HOOK_DRAINING = "HookDraining"
    STOPPED = "Stopped"
    NOT_FOUND = "InstanceNotFound"
    GONE = "Gone"
    UNMANAGED = "Unmanaged"


def phase_of(world: InstanceWorld, now: datetime) -> InstancePhase:
    """The phase that applies. A terminating hook takes precedence over a stop, and a stop over an announced
    interruption.
    """
    record = world.record
    if record.state is InstanceState.TERMINATED:
        return InstancePhase.GONE
    if record.absent:
        return InstancePhase.NOT_FOUND
    if not world.managed:
        return InstancePhase.UNKNOWN
    hooks = {hook.action.transition for hook in record.open_hooks if not hook.action.warms}
    if "terminating" in hooks:
        return InstancePhase.HOOK_DRAINING
    if record.state in (InstanceState.STOPPING, InstanceState.STOPPED):
        return InstancePhase.STOPPED
    if any(kind is not EventKind.REBALANCE for kind, _ in open_interruptions(record)):
        return InstancePhase.INTERRUPTING
    if "launching" in hooks:
        return InstancePhase.LAUNCHING
    if any(True for _ in open_planned(record, now)):
        return InstancePhase.MAINTENANCE_PLANNED
    return InstancePhase.LIVE if record.state is not None else InstancePhase.UNKNOWN
