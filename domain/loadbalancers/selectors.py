"""Which sets belong to a LoadBalancer, and which machines to a set: by owner reference, else by selector."""

from __future__ import annotations

from collections.abc import Iterable

from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine, LoadBalancerSet
from domain.resource import timestamp


def belongs(found: LoadBalancerSet | LoadBalancerMachine, owner: LoadBalancer | LoadBalancerSet) -> bool:
    """An empty selector selects nothing: two LoadBalancers that select everything would delete each other's sets."""
    meta, wanted = found.metadata, owner.spec.selector.match_labels
    if meta.namespace != owner.metadata.namespace:
        return False
    owners = [each.uid for each in meta.owner_references if each.kind == owner.kind_of.name]
    if owners:
        return owner.metadata.uid in owners
    return bool(wanted) and wanted.items() <= meta.labels.items()


def machines_of(
    machine_set: LoadBalancerSet, machines: Iterable[LoadBalancerMachine]
) -> tuple[LoadBalancerMachine, ...]:
    """The set's machines, oldest first."""
    return tuple(sorted((each for each in machines if belongs(each, machine_set)), key=age))


def selects(machine_set: LoadBalancerSet, machine: LoadBalancerMachine) -> bool:
    wanted = machine_set.spec.selector.match_labels
    return wanted.items() <= machine.metadata.labels.items() and belongs(machine, machine_set)


def age(machine: LoadBalancerMachine) -> tuple[str, str]:
    born = machine.metadata.creation_timestamp
    return (timestamp(born) if born else "", machine.metadata.name)
