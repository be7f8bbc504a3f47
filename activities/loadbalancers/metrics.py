"""The results of the sweep over OpenStack projects, exported by the worker that made the last sweep.

A value expires after two sweep intervals: by then another worker has a newer value, or no sweeps are made any more. An
orphan counts only if two consecutive sweeps of this process find it, so that objects being created do not count.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta

from prometheus_client import REGISTRY, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from domain.loadbalancers.cloud.drift_sweep import Orphan
from domain.model import Model

SWEEPS_SHOWN = 2


class Swept(Model):
    differing: int = 0
    orphans: tuple[Orphan, ...] = ()


class SweepCount(Collector):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: Mapping[str, Swept] = {}
        self._found: Mapping[str, Swept] = {}
        self._until = 0.0

    def swept(self, found: Mapping[str, Swept], interval: timedelta) -> None:
        self._before, self._found = self._found, dict(found)
        self._until = self._clock() + SWEEPS_SHOWN * interval.total_seconds()

    def describe(self) -> Iterable[Metric]:
        return self._families({})

    def collect(self) -> Iterable[Metric]:
        return self._families(self._found if self._clock() < self._until else {})

    def _families(self, found: Mapping[str, Swept]) -> Iterable[Metric]:
        drift = GaugeMetricFamily(
            "perdure_openstack_drift", "Objects that differed at the last sweep.", labels=["project"]
        )
        orphans = GaugeMetricFamily(
            "perdure_openstack_orphans",
            "Objects with Perdure's mark, but without an owner, at the last sweep.",
            labels=["project", "kind"],
        )
        for project, swept in sorted(found.items()):
            drift.add_metric([project], swept.differing)
            known = set(self._before.get(project, Swept()).orphans)
            for kind, count in sorted(Counter(each.kind for each in swept.orphans if each in known).items()):
                orphans.add_metric([project, kind], count)
        return drift, orphans


SWEEPS = SweepCount()
REGISTRY.register(SWEEPS)
