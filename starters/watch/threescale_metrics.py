from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from domain.resource import parse_timestamp
from domain.threescale import CUSTOM_KINDS
from starters.watch.gauges import lifecycles
from starters.watch.projection import Projection
from starters.watch.projection_index import Index


def threescale_gauges(index: Index) -> Iterator[Metric]:
    objects = [each for kind in CUSTOM_KINDS for each in index.all(kind.name)]
    yield lifecycles(Counter((each.key.kind, each.fact("phase")) for each in objects))
    yield _oldest(objects)


def _oldest(objects: Iterable[Projection]) -> Metric:
    family = GaugeMetricFamily(
        "perdure_threescale_oldest_orphan_timestamp",
        "Start of the longest current wait for a referenced object, in seconds since 1970.",
        labels=["kind"],
    )
    since: defaultdict[str, list[float]] = defaultdict(list)
    for each in objects:
        moment = parse_timestamp(each.fact("waits since"))
        if moment is not None:
            since[each.key.kind].append(moment.timestamp())
    for kind, moments in sorted(since.items()):
        family.add_metric([kind], min(moments))
    return family


GAUGES = threescale_gauges
