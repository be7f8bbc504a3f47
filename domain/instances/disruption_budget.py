"""How many machines of one node group are disrupted at the same time: the limit, and the ledger of disruptions.

A node group is a control plane, a MachineDeployment, a MachineSet or a machine pool. For Nodes without Machines, a
label of the Node names the group; all Nodes without such a label are one group. A disruption begins when Perdure
deletes a Machine or cordons its Node. It ends once the Machine is replaced or the Node is uncordoned. It counts for at
most an hour, because a group that was scaled down gets no replacement.

- A control plane loses one machine at a time, and only while its other machines and their etcd members are healthy, so
  that etcd keeps its quorum.
- Other groups lose as many machines at a time as the setting or the policy allows. A machine that AWS is
  reclaiming counts towards the limit, but does not wait, because waiting would not save the machine.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from domain.instances.constants import DEPLOYMENT_LABEL, POOL_LABEL, SET_LABEL
from domain.instances.events import Reckonable
from domain.instances.resources import AWSMachinePool, Machine, Node
from domain.instances.resources.node import NodeStatus
from domain.model import Model
from domain.resource import ObjectMeta

LONGEST_DISRUPTION = timedelta(hours=1)
ASK_FOR_TURN_AGAIN = timedelta(seconds=20)
# A node pool and a node group may have the same name, so the name of the group in the ledger includes this word.
_NODE_GROUPS = {"karpenter.sh/nodepool": "node pool", "kops.k8s.io/instancegroup": "instance group"}
# How many Machines a reason for waiting names at most. Lists show the reason, so it has to be short.
_MOST_NAMED = 3


class Turn(Model):
    """The answer, given at the time `at`, to a request to disrupt a machine."""

    at: datetime
    why: str = ""  # what the machine has to wait for; empty if it may be disrupted now
    taken: bool = False  # whether the request said that AWS is reclaiming the instance

    def waits(self, now: datetime) -> bool:
        return bool(self.why) and now < self.at + ASK_FOR_TURN_AGAIN

    def holds_up(self, now: datetime, *, taken: bool) -> bool:
        """Whether a cause has to wait because of this answer.

        `taken`: whether AWS is reclaiming the instance now. If so, the cause waits only if AWS was already reclaiming
        the instance when this answer was given.
        """
        return self.waits(now) and (self.taken or not taken)


class Limit(Model):
    most: int
    policy: str = ""

    @property
    def reached(self) -> str:
        said_by = f"maxUnavailable ({self.most}) of InterruptionPolicy {self.policy}"
        return f"{said_by if self.policy else f'PERDURE_INSTANCES_DISRUPTIONS ({self.most})'} is reached"


class Disruption(Model):
    instance: str
    name: str  # the name of the Machine, or of the Node if there is no Machine
    uid: str = ""  # the uid of that Machine or Node
    at: Reckonable
    size: int = 0  # how many healthy machines the group has once the disruption is over


class Ledger(Model):
    groups: dict[str, tuple[Disruption, ...]] = {}

    def of(self, group: str) -> tuple[Disruption, ...]:
        return self.groups.get(group, ())

    def has(self, group: str, uid: str, now: datetime) -> bool:
        return any(each.uid == uid and _young(each, now) for each in self.of(group))

    def begun(self, group: str, one: Disruption) -> Ledger:
        rest = [each for each in self.of(group) if each.instance != one.instance]
        retained = {name: tuple(each for each in found if _young(each, one.at)) for name, found in self.groups.items()}
        retained[group] = (*(each for each in rest if _young(each, one.at)), one)
        return Ledger(groups={name: found for name, found in retained.items() if found})

    def ended(self, instance: str) -> Ledger:
        retained = {
            name: tuple(each for each in found if each.instance != instance) for name, found in self.groups.items()
        }
        return Ledger(groups={name: found for name, found in retained.items() if found})


def node_group(machine: Machine | Node) -> str:
    """The name of the machine's node group, unique in the management cluster. A Machine without a node group is a group
    of its own.
    """
    if isinstance(machine, Node) and not machine.metadata.namespace:
        if machine.control_plane:
            return "control plane"
        kind = _NODE_GROUPS.get(machine.pool_label, "node group")
        return f"{kind} {machine.pool}" if machine.pool else "Nodes without a group"
    labels, namespace = machine.metadata.labels, machine.metadata.namespace
    if machine.control_plane:
        return f"control plane {namespace}/{machine.cluster}"
    for kind, label in (("MachineDeployment", DEPLOYMENT_LABEL), ("MachineSet", SET_LABEL), ("pool", POOL_LABEL)):
        if label in labels:
            return f"{kind} {namespace}/{labels[label]}"
    return f"Machine {namespace}/{machine.metadata.name}"


def member_of(pool: AWSMachinePool, instance: str, node: str, *, ready: bool) -> Node:
    """An instance of a pool without Machines, as a Node; `node` is empty before the instance has joined."""
    labels = {POOL_LABEL: pool.metadata.name}
    meta = ObjectMeta(namespace=pool.metadata.namespace, name=node or instance, uid=instance, labels=labels)
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    return Node(metadata=meta, status=NodeStatus.model_validate({"conditions": conditions}))


def waits_for(
    machine: Machine | Node,
    members: Sequence[Machine | Node],
    under_way: Sequence[Disruption],
    limit: Limit,
    now: datetime,
    *,
    taken: bool,
) -> str:
    """Why the machine waits: its group, the machines that it waits for, and the limit; empty if it may be disrupted.

    `members` are the machines of the node group, `under_way` the group's recorded disruptions. `taken`: whether
    AWS reclaims the instance now.
    """
    group, uid = node_group(machine), machine.metadata.uid
    others = [each for each in members if each.metadata.uid != uid]
    if machine.control_plane:
        unwell = next((each for each in others if not _well(each)), None)
        if unwell is not None:
            return f"{group}: {_unwell(unwell)}"
    elif taken:
        return ""
    there = {each.metadata.uid for each in members}
    kind = machine.kind_of.name
    lasting = {each.uid: _disrupted(kind, each, there) for each in _lasting(machine, others, under_way, now)}
    lasting |= {each.metadata.uid: _unwell(each) for each in others if each.metadata.deleting}
    if len(lasting) < (1 if machine.control_plane else limit.most):
        return ""
    names = sorted(lasting.values())
    more = [f"and {len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    reached = "a control plane loses one machine at a time" if machine.control_plane else limit.reached
    return f"{group}: {', '.join([*names[:_MOST_NAMED], *more])}; {reached}"


def group_size(machine: Machine | Node, members: Sequence[Machine | Node]) -> int:
    """How many healthy machines the group has once a disruption of the machine is over: in a control plane the number
    of all machines, in other groups the number of machines that are healthy now.
    """
    return sum(machine.control_plane or _well(each) for each in members)


def _lasting(
    machine: Machine | Node, others: Sequence[Machine | Node], under_way: Sequence[Disruption], now: datetime
) -> list[Disruption]:
    """The disruptions of other machines that are not over: the disrupted machine still exists, or its replacement is
    not healthy yet.
    """
    young = [each for each in under_way if each.uid != machine.metadata.uid and _young(each, now)]
    there = {each.metadata.uid for each in others}
    open_ = {each.uid for each in young} & there
    count = 1 + sum(_well(each) or each.metadata.deleting or each.metadata.uid in open_ for each in others)
    gone = sorted((each for each in young if each.uid not in there and each.size > count), key=lambda each: each.at)
    lacking = max((each.size for each in gone), default=count) - count
    return [*(each for each in young if each.uid in there), *gone[max(0, len(gone) - lacking) :]]


def _well(machine: Machine | Node) -> bool:
    return machine.node_ready and machine.etcd_healthy and not machine.metadata.deleting


def _unwell(machine: Machine | Node) -> str:
    kind, name = machine.kind_of.name, machine.metadata.name
    if machine.metadata.deleting:
        return f"{kind} {name} is being deleted"
    return (
        f"{_node_of(kind, name)} is not ready"
        if machine.etcd_healthy
        else f"{kind} {name} has an unhealthy etcd member"
    )


def _disrupted(kind: str, disruption: Disruption, there: Collection[str]) -> str:
    if disruption.uid in there:
        if kind == Node.kind_of.name:
            return f"Node {disruption.name} is cordoned or drained"
        return f"{kind} {disruption.name} is being replaced, cordoned or drained"
    return f"the replacement of {kind} {disruption.name} is not ready"


def _node_of(kind: str, name: str) -> str:
    return f"Node {name}" if kind == Node.kind_of.name else f"the Node of {kind} {name}"


def _young(disruption: Disruption, now: datetime) -> bool:
    return now - disruption.at < LONGEST_DISRUPTION
