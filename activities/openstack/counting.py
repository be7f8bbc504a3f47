"""Every call to OpenStack, counted: under the replaced system's name, and what that leaves out under our own.

| metric | counts |
|---|---|
| `yawol_openstack` | each call before it is made, by API (nova, neutron), kind of object and operation; a list that has several pages is one; tokens are none |
| `perdure_openstack_tokens_total` | tokens asked of Keystone |
| `perdure_openstack_refusals_total` | calls that did not do what was asked, by API, kind of object, operation and error |

The first has no `_total` at its end, as dashboards select it, which a counter of Python's client cannot be: hence the
collector. Glance is counted with the others; yawol never asked it.
"""  # noqa: E501 - a table

from __future__ import annotations

import threading
from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import REGISTRY, Counter, Metric
from prometheus_client.registry import Collector

from activities.openstack.errors import Call
from engine.errors import ApiError

TOKENS = Counter("perdure_openstack_tokens", "Tokens asked of Keystone.")
REFUSALS = Counter(
    "perdure_openstack_refusals",
    "Calls to OpenStack that did not do what was asked.",
    ["api", "object", "operation", "error"],
)


class CallCount(Collector):
    """`yawol_openstack`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Tally[tuple[str, str, str]] = Tally()

    def count(self, call: Call) -> None:
        """One call is about to be made."""
        with self._lock:
            self._counts[(call.api, call.object, call.operation)] += 1

    def describe(self) -> Iterable[Metric]:
        """Names that nothing else may take."""
        yield self._family()

    def collect(self) -> Iterable[Metric]:
        """The series at this scrape."""
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
    """A call has failed."""
    REFUSALS.labels(call.api, call.object, call.operation, error.code or error.type.value).inc()
