"""Counts calls to OpenStack under yawol's metric name, and tokens and refusals under ours (`docs/metrics.md`).

Dashboards select `yawol_openstack`. The Prometheus client would add `_total` to a counter's name, so a collector
exports the counts. A call is counted before it is made; a list of several pages is one call. Unlike yawol, Perdure also
calls Glance; these calls are counted, too.
"""

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import REGISTRY, Counter, Metric
from prometheus_client.registry import Collector

from activities.openstack.errors import Call
from engine.errors import ApiError

TOKENS = Counter("perdure_openstack_tokens", "Tokens requested from Keystone.")
REFUSALS = Counter(
    "perdure_openstack_refusals",
    "Calls to OpenStack that were refused or had no answer.",
    ["api", "object", "operation", "error"],
)


class CallCount(Collector):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Tally[tuple[str, str, str]] = Tally()

    def count(self, call: Call) -> None:
        with self._lock:
            self._counts[(call.api, call.object, call.operation)] += 1

    def describe(self) -> Iterable[Metric]:
        yield self._family()

    def collect(self) -> Iterable[Metric]:
        family = self._family()
        with self._lock:
            counts = sorted(self._counts.items())
        for (api, what, operation), count in counts:
            family.add_sample("yawol_openstack", {"api": api, "object": what, "operation": operation}, count)
        yield family

    @staticmethod
    def _family() -> Metric:
        return Metric("yawol_openstack", "Calls to OpenStack by API, object and operation.", "unknown")


CALLS = CallCount()
REGISTRY.register(CALLS)


def refused(call: Call, error: ApiError) -> None:
    REFUSALS.labels(call.api, call.object, call.operation, error.code or error.type.value).inc()
