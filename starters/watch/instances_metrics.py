"""The numbers of AWSMachines and AWSMachinePools by state, from the watcher's index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL
from starters.watch.index import Index


def instance_gauges(index: Index) -> Iterator[Metric]:
    machines = GaugeMetricFamily(
        "perdure_instances_machines",
        "AWSMachines by what their labels tell; without an instance none is told.",
        labels=["state", "interruption"],
    )
    told = ((each.fact("state"), each.fact("interruption")) for each in index.all(AWS_MACHINE.name))
    for labels, number in sorted(Counter(told).items()):
        machines.add_metric(labels, number)
    yield machines
    pools = GaugeMetricFamily("perdure_instances_pools", "AWSMachinePools by what their label tells.", labels=["state"])
    for state, number in sorted(Counter(each.fact("state") for each in index.all(AWS_MACHINE_POOL.name)).items()):
        pools.add_metric([state], number)
    yield pools


GAUGES = instance_gauges
