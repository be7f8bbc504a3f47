"""The load balancers area's gauges, under yawol's names, computed from the watcher's index.

Labels are yawol's, including the literal `nil` for unset values, so that dashboards keep working. Unlike yawol, this
module exports the deletion timestamp of an object that is being deleted, and 0 as its `replicas`. Measurements are
exported without yawol's delay of five minutes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET, SERVICE
from starters.watch.gauges import lifecycles
from starters.watch.projection import Projection
from starters.watch.projection_index import Index

_BALANCER = ("lb", "namespace")
_SET = ("lb", "lbs", "namespace")
_MACHINE = ("lb", "lbm", "namespace")
_INFO = ("isInternal", "tcpProxyProtocol", "externalIP", "tcpIdleTimeout", "udpIdleTimeout", "lokiEnabled")
_BALANCER_CLOUD = ("portID", "floatingID", "securityGroupID", "flavorID")
_MACHINE_CLOUD = ("portID", "serverID", "flavorID", "imageID")
_COUNTS = {
    "replicas": ("replicas", "Desired number of machines (spec.replicas); 0 while the object is being deleted."),
    "replicas_current": ("current", "Desired number of machines when Perdure last wrote status.replicas."),
    "replicas_ready": ("ready", "Machines that are ready."),
}
_DELETED = "When the object's deletion was requested, in seconds since 1970."


def balancer_gauges(index: Index) -> Iterator[Metric]:
    balancers = list(index.all(LOAD_BALANCER.name))
    sets = list(index.all(LOAD_BALANCER_SET.name))
    machines = list(index.all(LOAD_BALANCER_MACHINE.name))
    yield from _of_balancers(balancers)
    yield from _of_sets(sets)
    yield from _of_machines(machines)
    services = (each for each in index.all(SERVICE.name) if each.fact("concerns us"))
    yield lifecycles(Counter((each.key.kind, each.fact("phase")) for each in (*services, *balancers, *sets, *machines)))
    yield _rollouts(balancers, sets)


GAUGES = balancer_gauges


def _of_balancers(balancers: Sequence[Projection]) -> Iterator[Metric]:
    info = _family("loadbalancer_info", "The options of a LoadBalancer.", _BALANCER, _INFO)
    cloud = _family("loadbalancer_openstack_info", "A LoadBalancer's objects in OpenStack.", _BALANCER, _BALANCER_CLOUD)
    for balancer in balancers:
        info.add_metric([*_labels(balancer), *_values(balancer, "info")], 1)
        cloud.add_metric([*_labels(balancer), *_values(balancer, "cloud")], 1)
    yield info
    yield cloud
    yield from _counted("loadbalancer", _BALANCER, [(_labels(each), each) for each in balancers])


def _of_sets(sets: Sequence[Projection]) -> Iterator[Metric]:
    labelled = [([each.fact("served"), each.key.name, each.key.namespace], each) for each in sets]
    yield from _counted("loadbalancerset", _SET, labelled)
    failures = _family("perdure_loadbalancerset_boot_failures", "Consecutive machines that did not boot.", _SET)
    for labels, each in labelled:
        failures.add_metric(labels, float(each.fact("boot failures") or 0))
    yield failures


def _of_machines(machines: Sequence[Projection]) -> Iterator[Metric]:
    measured = GaugeMetricFamily(
        "loadbalancermachine", "A measurement that a machine's agent reports.", labels=["type", *_MACHINE]
    )
    conditions = _family(
        "loadbalancermachine_condition",
        "A condition that a machine's agent reports.",
        _MACHINE,
        ("condition", "reason", "status"),
    )
    cloud = _family("loadbalancermachine_openstack_info", "A machine's objects in OpenStack.", _MACHINE, _MACHINE_CLOUD)
    deleted = _family("loadbalancermachine_deletion_timestamp", _DELETED, _MACHINE)
    reported = _family(
        "perdure_loadbalancermachine_report_timestamp_seconds",
        "Time of the agent's latest report, in seconds since 1970.",
        _MACHINE,
    )
    for machine in machines:
        labels = [machine.fact("served"), machine.key.name, machine.key.namespace]
        for type_, value in json.loads(machine.fact("measured") or "{}").items():
            measured.add_metric([type_, *labels], value)
        for found in json.loads(machine.fact("conditions") or "[]"):
            conditions.add_metric([*labels, *found], 1)
        cloud.add_metric([*labels, *_values(machine, "cloud")], 1)
        _add(deleted, labels, machine.fact("deleted"))
        _add(reported, labels, machine.fact("reported"))
    yield from (measured, conditions, cloud, deleted, reported)


def _counted(
    prefix: str, labels: Iterable[str], objects: Sequence[tuple[list[str], Projection]]
) -> Iterator[GaugeMetricFamily]:
    for name, (fact, meaning) in _COUNTS.items():
        family = _family(f"{prefix}_{name}", meaning, labels)
        for values, each in objects:
            _add(family, values, "0" if each.deleting and fact == "replicas" else each.fact(fact))
        yield family
    deleted = _family(f"{prefix}_deletion_timestamp", _DELETED, labels)
    for values, each in objects:
        _add(deleted, values, each.fact("deleted"))
    yield deleted


def _rollouts(balancers: Sequence[Projection], sets: Sequence[Projection]) -> Metric:
    with_machines = Counter(
        (each.key.namespace, each.fact("owner"))
        for each in sets
        if int(each.fact("replicas") or 0) and not each.deleting
    )
    family = _family("perdure_loadbalancer_rolling_out", "1 while machines of two templates exist.", _BALANCER)
    for balancer in balancers:
        family.add_metric(_labels(balancer), float(with_machines[balancer.name] > 1))
    return family


def _family(name: str, meaning: str, labels: Iterable[str], more: Iterable[str] = ()) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=[*labels, *more])


def _add(family: GaugeMetricFamily, labels: Sequence[str], value: str) -> None:
    if value:
        family.add_metric(labels, float(value))


def _labels(balancer: Projection) -> list[str]:
    return [balancer.key.name, balancer.key.namespace]


def _values(known: Projection, fact: str) -> list[str]:
    return [str(value) for value in json.loads(known.fact(fact) or "[]")]
