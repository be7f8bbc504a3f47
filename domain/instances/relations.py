"""Which lifecycles the objects of Cluster API and its AWS provider wake, in the served accounts and regions.

| change of | wakes |
|---|---|
| AWSMachine | its instance: when it gets an instance, is paused or deleted, or Perdure's labels are edited |
| new AWSMachine, AWSMachinePool or served Node | the sweep |
| Node, if served | its instance: when it is paused or deleted, becomes ready, or Perdure's labels are edited |
| Machine | its instance: when the Machine's Node joins or becomes ready, or the Machine is paused or deleted |
| MachineDeployment | the instances of Machines under replacement: when replicas or Perdure's annotation are edited |
| Machine of such a MachineDeployment | the same instances: when the Machine is deleted, or its Node becomes ready |
| AWSMachinePool | its group: when it gets a group, is paused or deleted, or Perdure's label is edited |
| AWSMachinePool | its instances: when it is paused or resumed |
| InterruptionPolicy | the instances of its clusters; if it names none, of its namespaces; if it names neither, all |

None of these kinds has a workflow, and Perdure's own writes to them wake no lifecycle. AWSMachine and Node do not name
their account. If instances of several accounts are served in the region, the account is read from Perdure's annotation.
Without the annotation an object wakes no lifecycle, and its instance is found by events and the sweep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from functools import cache
from typing import ClassVar

from domain.control_annotations import PAUSED
from domain.identity import Key, Kind
from domain.instances import NODE, THE_SWEEP
from domain.instances.constants import (
    EVENTS_ANNOTATION,
    GROUP_STATE_LABEL,
    INTERRUPTION_LABEL,
    PAUSED_ANNOTATION,
    REPLACING_ANNOTATION,
    STATE_LABEL,
)
from domain.instances.machine_labels import story_of
from domain.instances.provider_ids import region_of_provider_id
from domain.instances.replacements import deployment_of, marked
from domain.instances.resources import AWSMachine, AWSMachinePool, InterruptionPolicy, Machine, MachineDeployment, Node
from domain.instances.workflow_ids import InstanceKey
from domain.relations import Linked, News, On, Relation, Whom
from domain.resource import ObjectMeta

_ALL = ("all", "")
_HOLDS = (PAUSED_ANNOTATION, PAUSED)


class WatchedNode(Node):
    """A Node. The name of its kind differs, because the watcher's index also has Nodes for load balancers."""

    kind_of: ClassVar[Kind] = NODE.model_copy(update={"name": "Node of an instance"})


@cache
def relations_of(served: frozenset[tuple[str, str]], *, nodes: bool = False) -> tuple[Relation, ...]:
    """`nodes` adds Nodes without Machines."""
    accounts: defaultdict[str, set[str]] = defaultdict(set)
    for account, region in served:
        accounts[region].add(account)
    only = {region: next(iter(found)) for region, found in accounts.items() if len(found) == 1}

    def instance(machine: AWSMachine | Node) -> Iterable[Key]:
        region, instance_id = region_of_provider_id(machine.spec.provider_id), machine.instance_id
        account = only.get(region) or story_of(machine.metadata).account
        if account not in accounts.get(region, ()) or not instance_id:
            return []
        return [InstanceKey(account=account, region=region, instance_id=instance_id).lifecycle]

    def group(pool: AWSMachinePool) -> Iterable[Key]:
        found = pool.group
        return [found.lifecycle] if found is not None and (found.account, found.region) in served else []

    def instances(pool: AWSMachinePool) -> Iterable[Key]:
        if pool.group is None or not group(pool):
            return []
        account, region = pool.group.account, pool.group.region
        keys = (InstanceKey(account=account, region=region, instance_id=each) for each in pool.instance_ids)
        return [each.lifecycle for each in keys]

    def replaced(deployment: MachineDeployment) -> Iterable[Key]:
        entries = marked(deployment.metadata.annotations)
        return [each.key.lifecycle for each in entries if (each.account, each.region) in served]

    its_replaced = Relation(of=MachineDeployment, to=(), by=replaced, news=News(_replacing, ours=False))
    its_instance = Relation(of=AWSMachine, to=(), by=instance, news=News(_machine, ours=False))
    nodes_instance = Relation(of=WatchedNode, to=(), by=instance, news=News(_node, ours=False))
    its_instances = Relation(
        of=AWSMachinePool,
        to=(),
        by=instances,
        news=News(_held, ours=False, on=frozenset({On.CHANGES}), linked=Linked.NEVER),
    )
    ends = (its_instance, its_instances, *((nodes_instance,) if nodes else ()))
    return (
        *ends,
        *(
            Relation(
                of=end.of,
                to=InterruptionPolicy,
                by=_scopes,
                known_as=_selects,
                matters=News(lambda policy: policy.spec.model_dump_json(), whom=Whom.NONE, onward=(end,)),
            )
            for end in ends
        ),
        *((Relation(of=WatchedNode, to=THE_SWEEP, news=News(on=frozenset({On.COMES}))),) if nodes else ()),
        Relation(of=AWSMachine, to=THE_SWEEP, news=News(on=frozenset({On.COMES}))),
        Relation(
            of=AWSMachine,
            to=Machine,
            by=lambda machine: [(machine.metadata.namespace, machine.machine)],
            matters=News(_owner, ours=False, whom=Whom.NONE, onward=(its_instance,)),
        ),
        its_replaced,
        Relation(
            of=Machine,
            to=MachineDeployment,
            by=lambda machine: [(machine.metadata.namespace, deployment_of(machine))],
            news=News(_replaces, ours=False, whom=Whom.NONE, onward=(its_replaced,)),
        ),
        Relation(of=AWSMachinePool, to=(), by=group, news=News(_pool, ours=False)),
        Relation(of=AWSMachinePool, to=THE_SWEEP, news=News(on=frozenset({On.COMES}))),
    )


def _scopes(found: AWSMachine | AWSMachinePool | Node) -> Iterable[Hashable]:
    """The keys by which policies may select an object; `_selects` returns the keys of a policy."""
    if isinstance(found, Node):
        return (_ALL,)
    return _ALL, ("cluster", found.cluster), ("namespace", found.metadata.namespace)


def _selects(policy: InterruptionPolicy) -> Iterable[Hashable]:
    selector = policy.spec.selector
    if selector.clusters:
        return [("cluster", name) for name in selector.clusters]
    return [("namespace", name) for name in selector.namespaces] or [_ALL]


def _machine(machine: AWSMachine) -> Hashable:
    meta = machine.metadata
    labels = tuple(meta.labels.get(name) for name in (STATE_LABEL, INTERRUPTION_LABEL))
    return machine.instance_id, labels, meta.annotations.get(EVENTS_ANNOTATION), _held(machine), meta.deleting


def _node(node: Node) -> Hashable:
    meta = node.metadata
    labels = tuple(meta.labels.get(name) for name in (STATE_LABEL, INTERRUPTION_LABEL))
    news = labels, meta.annotations.get(EVENTS_ANNOTATION), meta.annotations.get(PAUSED)
    return node.instance_id, news, node.node_ready, meta.deleting


def _owner(machine: Machine) -> Hashable:
    return machine.node, machine.node_ready, _held(machine), machine.metadata.deleting


def _replaces(machine: Machine) -> Hashable:
    return machine.node_ready, machine.metadata.deleting


def _replacing(deployment: MachineDeployment) -> Hashable:
    meta = deployment.metadata
    return deployment.spec.replicas, meta.annotations.get(REPLACING_ANNOTATION), meta.deleting


def _pool(pool: AWSMachinePool) -> Hashable:
    meta = pool.metadata
    news = meta.labels.get(GROUP_STATE_LABEL), meta.annotations.get(EVENTS_ANNOTATION)
    return pool.spec.provider_id, news, _held(pool), meta.deleting


def _held(found: AWSMachine | AWSMachinePool | Machine) -> Hashable:
    meta: ObjectMeta = found.metadata
    return tuple(meta.annotations.get(name) for name in _HOLDS), found.paused
