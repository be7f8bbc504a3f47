"""What the load balancers' area watches: its three kinds, and who waits for whom.

| change of | wakes, besides itself |
|---|---|
| LoadBalancer | its machines, when what they are made from or their security group changes |
| LoadBalancerSet | its LoadBalancer |
| LoadBalancerMachine | its set, by whose labels it was made |

Agents write a machine's status every half minute: only what health and rollouts read of it is news.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import LOAD_BALANCER_FINALIZER, MACHINE_FINALIZER, SET_FINALIZER
from engine.kube.json import JsonObject, mapping, sequence, text
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.loadbalancer_figures import balancer_figures, machine_figures, set_figures
from starters.watch.projection import Projection, View, generation, others_finalizers


def read_balancer(obj: JsonObject) -> View:
    """A LoadBalancer."""
    status = mapping(obj, "status")
    return View(
        fingerprint=(generation(obj), others_finalizers(obj, LOAD_BALANCER_FINALIZER), _annotations(obj)),
        handed=tuple(text(status, field) for field in ("securityGroupID", "portID", "serverGroupID")),
        facts={"group": text(status, "securityGroupID"), **balancer_figures(obj)},
    )


def read_set(obj: JsonObject) -> View:
    """A LoadBalancerSet."""
    status = mapping(obj, "status")
    conditions = tuple((text(c, "type"), text(c, "status")) for c in sequence(status, "conditions"))
    # Its own workflow's write, and no news to it; but what leaves the fingerprint as it is reaches no relative either.
    counts = repr((status.get("replicas"), status.get("readyReplicas"), conditions))
    return View(
        fingerprint=(others_finalizers(obj, SET_FINALIZER), _annotations(obj), counts),
        handed=(generation(obj),),  # its LoadBalancer's workflow scales it
        facts={
            "owner": _owner(obj, LOAD_BALANCER.name),
            "counts": counts,
            **set_figures(obj),
        },
    )


def read_machine(obj: JsonObject) -> View:
    """A LoadBalancerMachine."""
    status = mapping(obj, "status")
    conditions = tuple(
        sorted(
            (text(c, "type"), text(c, "status"), text(c, "lastTransitionTime")) for c in sequence(status, "conditions")
        )
    )
    return View(
        fingerprint=(generation(obj), others_finalizers(obj, MACHINE_FINALIZER), _annotations(obj), conditions),
        facts={
            "owner": _owner(obj, LOAD_BALANCER_SET.name),
            "balancer": text(obj, "spec", "loadBalancerRef", "name"),
            "health": repr((conditions, _annotations(obj))),
            **machine_figures(obj),
        },
    )


def balancer_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The machines of a LoadBalancer: they wait for its security group."""
    known = after or before
    if known is None or (before and after and before.fact("group") == after.fact("group")):
        return set()
    machines = index.find(LOAD_BALANCER_MACHINE.name, "balancer", known.key.name)
    return {machine.key for machine in machines if machine.key.namespace == known.key.namespace}


def set_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The LoadBalancer of a set."""
    return _owners(LOAD_BALANCER.name, "counts", before, after, index)


def machine_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The set of a machine."""
    return _owners(LOAD_BALANCER_SET.name, "health", before, after, index)


def _owners(kind: str, fact: str, before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    if before and after and (before.fact(fact), before.deleting) == (after.fact(fact), after.deleting):
        return set()
    return {
        key
        for side in (before, after)
        if side is not None and side.fact("owner")
        for key in index.keys(kind, side.key.namespace, [side.fact("owner")])
    }


def _owner(obj: JsonObject, kind: str) -> str:
    owners = sequence(obj, "metadata", "ownerReferences")
    return next((text(each, "name") for each in owners if text(each, "kind") == kind), "")


def _annotations(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    annotations: Mapping[str, object] = mapping(obj, "metadata", "annotations")
    return tuple(sorted((name, str(value)) for name, value in annotations.items()))


WATCHED = (
    Watched(kind=LOAD_BALANCER, read=read_balancer, dependents=balancer_dependents),
    Watched(kind=LOAD_BALANCER_SET, read=read_set, dependents=set_dependents),
    Watched(kind=LOAD_BALANCER_MACHINE, read=read_machine, dependents=machine_dependents),
)
