from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.instances import AWS_MACHINE, AWS_MACHINE_POOL
from domain.instances.relations import WatchedNode
from starters.watch.projection_index import Index


def instance_gauges(index: Index) -> Iterator[Metric]:
    machines = GaugeMetricFamily(
        "perdure_instances_machines",
        "AWSMachines by their labels; the value of a missing label is empty.",
        labels=["state", "interruption"],
    )
    nodes = GaugeMetricFamily(
        "perdure_instances_nodes",
        "Nodes on EC2 by their labels, where PERDURE_INSTANCES_NODES serves them.",
        labels=["state", "interruption"],
    )
    served = [each for each in index.all(WatchedNode.kind_of.name) if each.fact("instance")]
    for family, found in ((machines, index.all(AWS_MACHINE.name)), (nodes, served)):
        counts = Counter((each.fact("state"), each.fact("interruption")) for each in found)
        for labels, number in sorted(counts.items()):
            family.add_metric(labels, number)
        yield family
    pools = GaugeMetricFamily("perdure_instances_pools", "AWSMachinePools by their label.", labels=["state"])
    for state, number in sorted(Counter(each.fact("state") for each in index.all(AWS_MACHINE_POOL.name)).items()):
        pools.add_metric([state], number)
    yield pools


GAUGES = instance_gauges
