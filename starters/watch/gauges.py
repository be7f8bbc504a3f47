"""Gauges computed from the projections at each scrape, while this watcher leads.

An area joins by defining `GAUGES` in its module: a function that returns metric families for the index. A standby
exports no gauges, because sums over all replicas would count objects twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from starters.watch import areas
from starters.watch.projection_index import Index

Gauges = Callable[[Index], Iterable[Metric]]

logger = logging.getLogger(__name__)


@cache
def gauges_of_areas() -> tuple[Gauges, ...]:
    return tuple(module.GAUGES for module in areas.modules() if hasattr(module, "GAUGES"))


def lifecycles(phases: Mapping[tuple[str, str], int]) -> Metric:
    family = GaugeMetricFamily(
        "perdure_lifecycles", "Objects with a lifecycle, by the phase that they show.", labels=["kind", "phase"]
    )
    for labels, number in sorted(phases.items()):
        family.add_metric(labels, number)
    return family


@contextmanager
def published(index: Index, registry: CollectorRegistry = REGISTRY) -> Iterator[None]:
    collector = _Projected(index)
    registry.register(collector)
    try:
        yield
    finally:
        registry.unregister(collector)


class _Projected(Collector):
    def __init__(self, index: Index) -> None:
        self._index = index

    def describe(self) -> Iterable[Metric]:
        """The families without samples, which reserve the names in the registry."""
        return families(Index())

    def collect(self) -> Iterable[Metric]:
        return families(self._index)


def families(index: Index) -> Iterable[Metric]:
    families: dict[str, Metric] = {}
    for gauges in gauges_of_areas():
        try:
            for family in list(gauges(index)):
                if family.name in families:
                    families[family.name].samples += family.samples
                else:
                    families[family.name] = family
        except Exception:
            logger.exception("an area's gauges cannot be computed")
    return families.values()
