"""Which changes of load balancers, sets and machines wake their own lifecycles.

`domain/loadbalancers/relations.py` says which other lifecycles they wake. Agents write a machine's status every half
minute, so the watcher compares only the fields that decisions read. They include recorded cloud ids, because people
clear these to force an observation.
"""

from __future__ import annotations

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.constants import DRIFT_ANNOTATION, MARKED_AT_ANNOTATION, SERVICE_NAME_ANNOTATION
from domain.loadbalancers.machine_health import DEFAULT_TIMINGS, RELEVANT
from domain.loadbalancers.relations import RELATIONS
from domain.resource import reckonable_timestamp
from engine.kube.json import JsonObject, mapping, sequence, text
from engine.kube.reflector import Followed
from starters.watch.loadbalancer_metric_facts import balancer_figures, machine_figures, set_figures
from starters.watch.projection import Projection, View, generation
from starters.watch.watched_kinds import Watched

AREA = "loadbalancers"

_RECORDED = (
    *("securityGroupID", "portID", "floatingID", "serverGroupID"),
    *("securityGroupName", "portName", "portIP", "floatingName", "serverGroupName"),
    *("openstackReconcileHash", "lastOpenstackReconcile"),
)
_MACHINE_RECORDED = ("serverID", "defaultPortID", "defaultPortName", "defaultPortIP", "lastOpenstackReconcile")


def read_balancer(obj: JsonObject) -> View:
    status = mapping(obj, "status")
    recorded = tuple(text(status, field) for field in _RECORDED)
    return View(
        fingerprint=(_finalizers(obj), _annotations(obj), recorded),
        handed=(generation(obj), _drift(obj)),  # written by the Service's workflow (spec) and the drift sweep
        facts={"service": text(obj, "metadata", "annotations", SERVICE_NAME_ANNOTATION), **balancer_figures(obj)},
    )


def read_set(obj: JsonObject) -> View:
    return View(
        fingerprint=(_finalizers(obj), _annotations(obj)),
        handed=(generation(obj),),  # its LoadBalancer's workflow scales it
        facts=set_figures(obj),
    )


def read_machine(obj: JsonObject) -> View:
    recorded = tuple(text(obj, "status", field) for field in _MACHINE_RECORDED)
    return View(
        fingerprint=(generation(obj), _finalizers(obj), recorded),
        # The drift sweep writes the drift annotation. The set's workflow marks an unhealthy machine for deletion; the
        # machine's workflow then restores the machine's access objects, which may be lost.
        handed=(_drift(obj), text(obj, "metadata", "annotations", MARKED_AT_ANNOTATION)),
        facts={"oldest report": _oldest_report(obj), **machine_figures(obj)},
    )


def silent_at(machine: Projection) -> float | None:
    """When the oldest relevant heartbeat expires, in seconds since 1970; None without a heartbeat."""
    if not (oldest := machine.fact("oldest report")):
        return None
    moment = reckonable_timestamp(oldest)
    return (moment + DEFAULT_TIMINGS.window).timestamp() + 1 if moment else 0.0


def _oldest_report(obj: JsonObject) -> str:
    beats = [text(c, "lastHeartbeatTime") for c in sequence(obj, "status", "conditions") if text(c, "type") in RELEVANT]
    return min(beats, default="")


def _drift(obj: JsonObject) -> str:
    return text(obj, "metadata", "annotations", DRIFT_ANNOTATION)


def _finalizers(obj: JsonObject) -> tuple[str, ...]:
    return tuple(sorted(str(name) for name in sequence(obj, "metadata", "finalizers")))


def _annotations(obj: JsonObject) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in mapping(obj, "metadata", "annotations").items()))


WATCHED = (
    Watched(Followed(LOAD_BALANCER), read=read_balancer, relations=RELATIONS),
    Watched(Followed(LOAD_BALANCER_SET), read=read_set, relations=RELATIONS),
    Watched(Followed(LOAD_BALANCER_MACHINE), read=read_machine, relations=RELATIONS, silent_at=silent_at),
)
