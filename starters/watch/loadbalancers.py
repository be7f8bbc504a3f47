"""What the load balancers' area watches: its three kinds, and who waits for whom.

| change of | wakes, besides itself |
|---|---|
| LoadBalancer | its machines, when their security group changes; its Service; a new one: the sweep over the projects |
| LoadBalancerSet | its LoadBalancer |
| LoadBalancerMachine | its set; where none owns it, those that select its template's label |

Agents write a machine's status every half minute: only what health and rollouts read of it is news. That a report
stays away for as long as one counts wakes the machine's set, as does the next one.

What a LoadBalancer or a machine has recorded of the cloud is input, too: people blank it to have it looked for anew.
So are labels and owners, by which sets and machines are found, and our own finalizers: nobody looks again later whether
they are still there.
"""

from __future__ import annotations

from collections.abc import Mapping

from domain.identity import Key
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, THE_PROJECTS
from domain.loadbalancers.constants import (
    DRIFT_ANNOTATION,
    HEALTH_WINDOW,
    MARKED_AT_ANNOTATION,
    TEMPLATE_HASH_LABEL,
)
from domain.loadbalancers.health import RELEVANT
from domain.resource import parse_timestamp
from engine.kube.json import JsonObject, mapping, sequence, text
from starters.watch.index import Index
from starters.watch.kinds import Watched
from starters.watch.loadbalancer_figures import balancer_figures, machine_figures, set_figures
from starters.watch.projection import Projection, View, generation
from starters.watch.services import facts_for_service, service_of, shown_to_service

AREA = "loadbalancers"


_RECORDED = (
    *("securityGroupID", "portID", "floatingID", "serverGroupID"),
    *("securityGroupName", "portName", "portIP", "floatingName", "serverGroupName"),
    *("openstackReconcileHash", "lastOpenstackReconcile"),
)
_MACHINE_RECORDED = ("serverID", "defaultPortID", "defaultPortName", "defaultPortIP", "lastOpenstackReconcile")


def read_balancer(obj: JsonObject) -> View:
    """A LoadBalancer."""
    status = mapping(obj, "status")
    recorded = tuple(text(status, field) for field in _RECORDED)
    return View(
        fingerprint=(
            _finalizers(obj),
            _annotations(obj),
            recorded,
            shown_to_service(obj),
        ),
        handed=(generation(obj), _drift(obj)),  # its Service's workflow writes its spec, the sweep an annotation
        facts={"group": text(status, "securityGroupID"), **facts_for_service(obj), **balancer_figures(obj)},
    )


def read_set(obj: JsonObject) -> View:
    """A LoadBalancerSet."""
    status = mapping(obj, "status")
    conditions = tuple((text(c, "type"), text(c, "status")) for c in sequence(status, "conditions"))
    # Its own workflow's write, and no news to it; but what leaves the fingerprint as it is reaches no relative either.
    counts = repr((status.get("replicas"), status.get("readyReplicas"), conditions, _labels(obj)))
    owner = _owner(obj, LOAD_BALANCER.name)
    return View(
        fingerprint=(_finalizers(obj), _annotations(obj), counts, owner),
        handed=(generation(obj),),  # its LoadBalancer's workflow scales it
        facts={
            "owner": owner,
            "counts": counts,
            "template": text(obj, "spec", "selector", "matchLabels", TEMPLATE_HASH_LABEL),
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
    recorded = tuple(text(status, field) for field in _MACHINE_RECORDED)
    labels, owner = _labels(obj), _owner(obj, LOAD_BALANCER_SET.name)
    return View(
        fingerprint=(
            generation(obj),
            _finalizers(obj),
            _annotations(obj),
            conditions,
            recorded,
            labels,
            owner,
        ),
        # The sweep writes the one, its set the other, on a machine that may have lost its rights.
        handed=(_drift(obj), text(obj, "metadata", "annotations", MARKED_AT_ANNOTATION)),
        facts={
            "owner": owner,
            "template": text(obj, "metadata", "labels", TEMPLATE_HASH_LABEL),
            "oldest report": _oldest_report(obj),
            "balancer": text(obj, "spec", "loadBalancerRef", "name"),
            "health": repr((conditions, _annotations(obj), labels)),
            **machine_figures(obj),
        },
    )


def balancer_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The Service of a LoadBalancer; its machines, which wait for its security group; for a new one the sweep."""
    concerned = service_of(before, after, index)
    known = after or before
    if known is None or (before and after and before.fact("group") == after.fact("group")):
        return concerned
    machines = index.find(LOAD_BALANCER_MACHINE.name, "balancer", known.key.name)
    found = concerned | {machine.key for machine in machines if machine.key.namespace == known.key.namespace}
    return found if before else {*found, THE_PROJECTS.model_copy(update={"cluster": known.key.cluster})}


def set_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The LoadBalancer of a set."""
    return {
        key
        for side in _news("counts", before, after)
        if side.fact("owner")
        for key in index.keys(LOAD_BALANCER.name, side.key.namespace, [side.fact("owner")])
    }


def machine_dependents(before: Projection | None, after: Projection | None, index: Index) -> set[Key]:
    """The set of a machine."""
    return {key for side in _news("health", before, after) for key in set_of(side, index)}


def _news(fact: str, before: Projection | None, after: Projection | None) -> list[Projection]:
    """What an object was and is, if that is news to its owner, or to one of its owners."""
    sides = [side for side in (before, after) if side is not None]
    shown = {(each.fact(fact), each.fact("owner"), each.deleting) for each in sides}
    return [] if len(sides) > len(shown) else sides


def _owner(obj: JsonObject, kind: str) -> str:
    owners = sequence(obj, "metadata", "ownerReferences")
    return next((text(each, "name") for each in owners if text(each, "kind") == kind), "")


def silent_at(machine: Projection) -> float | None:
    """When the machine's last report will count no more (seconds of the epoch); None if it has never reported."""
    moment = parse_timestamp(machine.fact("oldest report"))
    return (moment + HEALTH_WINDOW).timestamp() + 1 if moment else None


def set_of(machine: Projection, index: Index) -> set[Key]:
    """The set of a machine; of one that nobody owns, those that may have it by its labels."""
    owner, template, namespace = machine.fact("owner"), machine.fact("template"), machine.key.namespace
    if owner:
        return set(index.keys(LOAD_BALANCER_SET.name, namespace, [owner]))
    sets = index.find(LOAD_BALANCER_SET.name, "template", template) if template else ()
    return {each.key for each in sets if each.key.namespace == namespace}


def _oldest_report(obj: JsonObject) -> str:
    beats = [text(c, "lastHeartbeatTime") for c in sequence(obj, "status", "conditions") if text(c, "type") in RELEVANT]
    return min(beats, default="")


def _drift(obj: JsonObject) -> str:
    return text(obj, "metadata", "annotations", DRIFT_ANNOTATION)


def _finalizers(obj: JsonObject) -> tuple[str, ...]:
    return tuple(sorted(str(name) for name in sequence(obj, "metadata", "finalizers")))


def _annotations(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    return _texts(obj, "annotations")


def _labels(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    return _texts(obj, "labels")


def _texts(obj: JsonObject, what: str) -> tuple[tuple[str, str], ...]:
    found: Mapping[str, object] = mapping(obj, "metadata", what)
    return tuple(sorted((name, str(value)) for name, value in found.items()))


WATCHED = (
    Watched(kind=LOAD_BALANCER, read=read_balancer, dependents=balancer_dependents),
    Watched(kind=LOAD_BALANCER_SET, read=read_set, dependents=set_dependents),
    Watched(
        kind=LOAD_BALANCER_MACHINE,
        read=read_machine,
        dependents=machine_dependents,
        silent_at=silent_at,
        told_of_silence=set_of,
    ),
)
