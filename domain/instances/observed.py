"""What one decision about an instance sees, and in which phase the instance stands."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from domain.instances.causes import standing_interruptions, standing_planned
from domain.instances.disruptions import Turn
from domain.instances.events import EventKind, InstanceState
from domain.instances.hooks import HookTiming
from domain.instances.policy import ReactionPolicy
from domain.instances.record import InstanceRecord
from domain.instances.resources import AWSMachine, AWSMachinePool, Machine
from domain.instances.verification import Facts
from domain.levers import paused
from domain.model import Model


class InstancePhase(StrEnum):
    """Where an instance stands."""

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


class ObservedInstance(Model):
    """Everything that one decision sees.

    Attributes:
        record: what events and answers have come to.
        machine: its AWSMachine, None if there is none.
        pool: its AWSMachinePool, None if there is none.
        owner: its Machine, None if there is none, or none any more.
        node: its Node where there is no Machine to name it.
        node_sought: whether its Node is still looked for: that none is known does not mean that there is none.
        node_ready: whether its Node has joined and is ready.
        facts: what AWS answered last.
        timings: its group's hooks, by name.
        policy: what is wanted.
        observing: whether nothing is to be written anywhere.
        checked: whether changes that events told are checked for many instances at once, so that none asks for that.
        turn: what was said when its turn to be disrupted was asked for last.
        account_known: whether the machine's cluster says that the machine is of this account.
    """

    record: InstanceRecord
    machine: AWSMachine | None = None
    pool: AWSMachinePool | None = None
    owner: Machine | None = None
    node: str = ""
    node_sought: bool = False
    node_ready: bool = False
    facts: Facts | None = None
    timings: dict[str, HookTiming] = {}
    policy: ReactionPolicy = ReactionPolicy()
    observing: bool = False
    checked: bool = False
    account_known: bool = False
    turn: Turn | None = None

    @property
    def absence_counts(self) -> bool:
        """Whether "EC2 does not know the instance" proves its end.

        It does only in the instance's own account, which EC2 shows by having known the instance there, or the cluster
        by its identity, or the pool by its group. In any other account EC2 knows it never.
        """
        grouped = self.pool is not None and self.pool.group is not None
        return self.record.found or self.account_known or grouped

    @property
    def ask_at(self) -> datetime | None:
        """When EC2 is to be asked."""
        return None if self.checked and self.record.only_to_check else self.record.ask_at

    @property
    def managed(self) -> bool:
        """True if the instance is somebody's."""
        return self.machine is not None or self.pool is not None

    @property
    def node_name(self) -> str:
        """Its Node in the workload cluster, empty until it has joined."""
        return self.owner.node if self.owner is not None and self.owner.node else self.node

    @property
    def hindrance(self) -> str:
        """Why no reaction may run, empty if one may."""
        held = (("AWSMachine", self.machine), ("Machine", self.owner), ("AWSMachinePool", self.pool))
        for kind, each in held:
            if each is not None and (each.paused or paused(each.metadata)):
                return f"{kind} {each.metadata.name} is paused"
        if self.machine is not None and self.machine.metadata.deleting:
            return f"AWSMachine {self.machine.metadata.name} is being deleted"
        return ""


def phase_of(observed: ObservedInstance, now: datetime) -> InstancePhase:
    """Where the instance stands: what is going to happen to it counts more than how it is."""
    record = observed.record
    if record.state is InstanceState.TERMINATED:
        return InstancePhase.GONE
    if record.absent:
        return InstancePhase.NOT_FOUND
    if not observed.managed:
        return InstancePhase.UNKNOWN
    hooks = {hook.action.transition for hook in record.open_hooks if not hook.action.warms}
    if "terminating" in hooks:
        return InstancePhase.HOOK_DRAINING
    if record.state in (InstanceState.STOPPING, InstanceState.STOPPED):
        return InstancePhase.STOPPED
    if any(kind is not EventKind.REBALANCE for kind, _ in standing_interruptions(record)):
        return InstancePhase.INTERRUPTING
    if "launching" in hooks:
        return InstancePhase.LAUNCHING
    if any(True for _ in standing_planned(record, now)):
        return InstancePhase.MAINTENANCE_PLANNED
    return InstancePhase.LIVE if record.state is not None else InstancePhase.UNKNOWN
