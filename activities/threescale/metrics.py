"""The 3scale area's metrics that workers update at each pass, call and sweep; `docs/metrics.md` lists them.

`controller_runtime_*` and `threescale_version_info` have the replaced operator's names and labels; `controller` is the
kind in lower case.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.metadata import version

from prometheus_client import Counter, Gauge

from domain.decision import Decision, Outcome
from domain.threescale.observed import Phase
from engine.errors import ApiError
from engine.metrics import Histogram, Request, requesting

NO_ANSWER = "none"

# As in controller-runtime.
_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
_PASSES = Counter("controller_runtime_reconcile", "Passes by their result.", ["controller", "result"])
_ERRORS = Counter("controller_runtime_reconcile_errors", "Passes that broke off or ended as Failed.", ["controller"])
_TIME = Histogram("controller_runtime_reconcile_time_seconds", "Duration of a pass.", ["controller"], buckets=_SECONDS)
_ACTIVE = Gauge("controller_runtime_active_workers", "Passes under way.", ["controller"])
_CALLS = Counter("perdure_threescale_calls", "Calls of 3scale's API.", ["kind", "method", "status"])
_CALL_TIME = Histogram(
    "perdure_threescale_call_seconds",
    "Duration of a call of 3scale's API.",
    ["method"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_REFUSALS = Counter("perdure_threescale_refusals", "Calls that were refused or had no answer.", ["kind", "type"])
_DRIFT = Gauge("perdure_threescale_drift", "Objects that differed at the last sweep.", ["tenant"])
_LOST = Gauge("perdure_threescale_without_owner", "Entries with the operator's mark, but no object.", ["tenant"])
_SWEPT = Gauge("perdure_threescale_swept_timestamp_seconds", "When a tenant was last swept without error.", ["tenant"])
_VERSION = Gauge(
    "threescale_version_info",
    "The version of Perdure; the metric has the name that the 3scale operator gave it.",
    ["operator_version", "version"],
)
_VERSION.labels(version("perdure"), version("perdure")).set(1)


@contextmanager
def passing(kind: str) -> Iterator[None]:
    controller, began = kind.lower(), time.perf_counter()
    _ACTIVE.labels(controller).inc()
    try:
        yield
    except BaseException:
        _PASSES.labels(controller, "error").inc()
        _ERRORS.labels(controller).inc()
        raise
    finally:
        _ACTIVE.labels(controller).dec()
        _TIME.labels(controller).observe(time.perf_counter() - began)


def passed(kind: str, decision: Decision) -> None:
    controller = kind.lower()
    failed = decision.phase == Phase.FAILED.value
    if failed:
        _ERRORS.labels(controller).inc()
    again = decision.deadline is not None and decision.outcome is not Outcome.GONE
    _PASSES.labels(controller, "error" if failed else "requeue_after" if again else "success").inc()


@contextmanager
def calling(method: str, tenant: str) -> Iterator[Request]:
    try:
        with requesting(method, tenant, f"3scale {method}") as request:
            yield request
    finally:
        _CALLS.labels(request.kind, method, str(request.status or NO_ANSWER)).inc()
        _CALL_TIME.labels(method).observe(request.seconds)


def refused(kind: str, error: ApiError) -> None:
    _REFUSALS.labels(kind, error.type.value).inc()


def swept(tenant: str, moment: datetime, *, differing: int, without_owner: int) -> None:
    _DRIFT.labels(tenant).set(differing)
    _LOST.labels(tenant).set(without_owner)
    _SWEPT.labels(tenant).set(moment.timestamp())
