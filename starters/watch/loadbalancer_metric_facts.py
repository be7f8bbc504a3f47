"""Facts about load balancers that only metrics use. As in yawol, a label value that is not set is `nil`.

- `info` of a LoadBalancer: the label values of `loadbalancer_info`, a JSON list;
- `cloud` of a LoadBalancer or machine: the label values of its metric `..._openstack_info`, a JSON list;
- `replicas`, `current`, `ready` of a LoadBalancer or set: `spec.replicas`, `status.replicas`, `status.readyReplicas`;
- `served` of a set or machine: the LoadBalancer's name in its spec;
- `owner` of a set: the LoadBalancer's name in its owner references;
- `boot failures` of a set: the number of consecutive failed boots;
- `conditions` of a machine: type, reason and status of each condition, a JSON list;
- `measured` of a machine: its agent's measurements, a JSON object by type;
- `reported` of a machine: its agent's last report, in seconds since 1970;
- `deleted`: the deletion timestamp, in seconds since 1970.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping

from domain import control_annotations
from domain.loadbalancers import LOAD_BALANCER
from domain.loadbalancers.constants import (
    BOOT_FAILURES_ANNOTATION,
    GIVEN_UP_ANNOTATION,
    MARKED_AT_ANNOTATION,
    QUOTA_ANNOTATION,
)
from domain.loadbalancers.go_formats import format_duration, parse_duration
from domain.loadbalancers.machine_health import MARKED, RELEVANT, TRUE
from domain.loadbalancers.services.service_status import MISCONFIGURED
from domain.resource import parse_timestamp
from engine.kube.json import JsonObject, at, flag, mapping, sequence, text

NIL = "nil"


def balancer_figures(obj: JsonObject) -> dict[str, str]:
    spec, status = mapping(obj, "spec"), mapping(obj, "status")
    options = mapping(spec, "options")
    info = (
        _word(flag(options, "internalLB")),
        _word(flag(options, "tcpProxyProtocol")),
        _set(status, "externalIP"),
        _duration(options, "tcpIdleTimeout"),
        _duration(options, "udpIdleTimeout"),
        _word(flag(options, "logForward", "enabled")),
    )
    group = text(status, "securityGroupID") or text(status, "security_group_id")
    cloud = (_set(status, "portID"), _set(status, "floatingID"), group or NIL, _flavor(spec))
    counts = _counts(obj)
    return {
        "info": json.dumps(info),
        "cloud": json.dumps(cloud),
        "phase": _phase(obj, _served_phase(counts) if text(status, "externalIP") else "Provisioning"),
        "deleted": _moment(obj, "metadata", "deletionTimestamp"),
        **counts,
    }


def set_figures(obj: JsonObject) -> dict[str, str]:
    counts = _counts(obj)
    failures = text(obj, "metadata", "annotations", BOOT_FAILURES_ANNOTATION)
    owners = sequence(obj, "metadata", "ownerReferences")
    return {
        "served": text(obj, "spec", "template", "spec", "loadBalancerRef", "name"),
        "owner": next((text(each, "name") for each in owners if text(each, "kind") == LOAD_BALANCER.name), ""),
        "boot failures": str(len([uid for uid in failures.split(",") if uid])),
        "phase": _phase(obj, _served_phase(counts)),
        "deleted": _moment(obj, "metadata", "deletionTimestamp"),
        **counts,
    }


def machine_figures(obj: JsonObject) -> dict[str, str]:
    spec, status = mapping(obj, "spec"), mapping(obj, "status")
    # The API server allows duplicate conditions, a metric allows no duplicate series: the last condition counts.
    conditions = {text(each, "type"): each for each in sequence(status, "conditions")}
    shown = [(type_, text(each, "reason"), text(each, "status")) for type_, each in sorted(conditions.items())]
    beats = [beat for each in conditions.values() if (beat := _moment(each, "lastHeartbeatTime"))]
    image = text(spec, "infrastructure", "image", "imageID") or text(spec, "infrastructure", "image", "image_id")
    port = text(status, "defaultPortID") or text(status, "portID")
    return {
        "served": text(spec, "loadBalancerRef", "name"),
        "cloud": json.dumps((port or NIL, _set(status, "serverID"), _flavor(spec), image or NIL)),
        "conditions": json.dumps(shown),
        "measured": json.dumps(_measured(sequence(status, "metrics"))),
        "reported": max(beats, key=float, default=""),
        "phase": _phase(obj, _machine_phase(obj, {type_: state for type_, _, state in shown})),
        "deleted": _moment(obj, "metadata", "deletionTimestamp"),
    }


def service_figures(obj: JsonObject) -> dict[str, str]:
    conditions = {text(each, "type"): text(each, "reason") for each in sequence(obj, "status", "conditions")}
    served = "Ready" if sequence(obj, "status", "loadBalancer", "ingress") else "Waiting"
    return {"phase": _phase(obj, conditions.get(MISCONFIGURED) or served)}


# --- phases ---


def _phase(obj: JsonObject, otherwise: str) -> str:
    if text(obj, "metadata", "deletionTimestamp"):
        return "Deleting"
    return "Paused" if control_annotations.is_paused(mapping(obj, "metadata", "annotations")) else otherwise


def _served_phase(counts: Mapping[str, str]) -> str:
    wanted, ready = int(counts["replicas"]), int(counts["ready"] or 0)
    if not wanted:
        return "Empty"
    return "Ready" if ready >= wanted else "Degraded" if ready else "NotReady"


def _machine_phase(obj: JsonObject, states: Mapping[str, str]) -> str:
    annotations = mapping(obj, "metadata", "annotations")
    if GIVEN_UP_ANNOTATION in annotations:
        return "GivenUp"
    if QUOTA_ANNOTATION in annotations:
        return "WaitsForQuota"
    if MARKED_AT_ANNOTATION in annotations or states.get(MARKED) == TRUE:
        return "Marked"
    if not states:
        return "Booting" if text(obj, "status", "serverID") else "Provisioning"
    return "Ready" if all(states.get(each) == TRUE for each in RELEVANT) else "NotReady"


# --- values ---


def _counts(obj: JsonObject) -> dict[str, str]:
    """Replica counts as text. An absent `spec.replicas` is 1; the other counts are empty if absent."""
    wanted = _number(obj, "spec", "replicas") or "1"
    current, ready = _number(obj, "status", "replicas"), _number(obj, "status", "readyReplicas")
    return {"replicas": wanted, "current": current, "ready": ready}


def _number(obj: JsonObject, *path: str) -> str:
    value = at(obj, *path)
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _measured(metrics: Iterable[object]) -> dict[str, float]:
    found: dict[str, float] = {}
    for each in metrics:
        try:
            value = float(text(each, "value"))
        except ValueError:
            continue
        if math.isfinite(value):
            found[text(each, "type")] = value
    return found


def _moment(obj: object, *path: str) -> str:
    moment = parse_timestamp(text(obj, *path))
    return f"{moment.timestamp():.0f}" if moment else ""


def _duration(options: Mapping[str, object], name: str) -> str:
    written = text(options, name)
    duration = parse_duration(written) if written else None
    return format_duration(duration) if duration is not None else NIL


def _flavor(spec: Mapping[str, object]) -> str:
    flavor = mapping(spec, "infrastructure", "flavor")
    return text(flavor, "flavorID") or text(flavor, "flavor_id") or NIL


def _set(status: Mapping[str, object], name: str) -> str:
    return text(status, name) or NIL


def _word(holds: bool) -> str:
    return "true" if holds else "false"
