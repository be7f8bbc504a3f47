"""The metrics of the claims area that workers count; `docs/metrics.md` lists them.

The times until a claim is bound or ready include the time until approval. Timestamps are whole seconds, so a duration
may be up to a second too long.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache

from prometheus_client import Counter

from domain.claims import KINDS
from domain.claims.json_objects import JsonObject, text_at
from domain.resource import parse_timestamp
from engine import metrics
from engine.metrics import Histogram, Listener, Step

APP = "poolboy"

_OURS = frozenset(kind.name for kind in KINDS)

_BOUND = Histogram(
    "perdure_resource_claim_bound_seconds",
    "From a claim's creation, or its lifespan.start if later, until it has a handle.",
    ["pool", "made"],
    buckets=(1, 2, 5, 10, 30, 60, 300, 1800, 7200, 86400),
)
_READY = Histogram(
    "perdure_resource_claim_ready_seconds",
    "From a claim's creation, or its lifespan.start if later, until it is ready for the first time.",
    ["pool"],
    buckets=(1, 2, 5, 10, 30, 60, 300, 900, 1800, 3600, 7200, 14400, 43200, 86400),
)
_LATENESS = Histogram(
    "perdure_resource_expiry_lateness_seconds",
    "From the end of a lifespan to the resulting deletion.",
    ["kind"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 60, 300, 3600),
)
_MISSES = Counter("perdure_resource_bind_misses", "Handles that were chosen for a claim and could not be bound.")
_INVALID = Counter("perdure_resource_claim_validation_failures", "Claims whose spec was refused.", ["provider"])
# Poolboy's metric, with the buckets of its library.
_PROCESS_TIME = Histogram(
    "poolboy_process_time_seconds",
    "Duration of an attempt of an activity.",
    ["method", "status", "app", "cluster_domain"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)


def claim_bound(claim: JsonObject, now: datetime, *, pool: str = "", made: bool = False) -> None:
    """`made`: the handle was created because no free handle matched."""
    since = _could_be_served(claim)
    if since is not None:
        _BOUND.labels(pool, "true" if made else "false").observe(_seconds(since, now))


def claim_ready(claim: JsonObject, now: datetime, *, pool: str = "") -> None:
    since = _could_be_served(claim)
    if since is not None:
        _READY.labels(pool).observe(_seconds(since, now))


def expired(kind: str, end: datetime | None, now: datetime) -> None:
    _LATENESS.labels(kind).observe(_seconds(end or now, now))


def bind_missed() -> None:
    _MISSES.inc()


def validation_failed(provider: str) -> None:
    """Call this once for each refusal, not in each pass of the refused claim."""
    _INVALID.labels(provider).inc()


class ClaimListener(Listener):
    def __init__(self, cluster_domain: str) -> None:
        self._cluster_domain = cluster_domain

    def on_step(self, step: Step) -> None:
        if step.kind in _OURS:
            status = "success" if step.error is None else "error"
            _PROCESS_TIME.labels(step.activity, status, APP, self._cluster_domain).observe(step.seconds)


@cache
def _listener(cluster_domain: str) -> ClaimListener:
    return ClaimListener(cluster_domain)


def listen(cluster_domain: str) -> None:
    metrics.listen(_listener(cluster_domain))


def _could_be_served(claim: JsonObject) -> datetime | None:
    moments = (text_at(claim, "metadata", "creationTimestamp"), text_at(claim, "spec", "lifespan", "start"))
    known = [moment for moment in map(parse_timestamp, moments) if moment is not None]
    return max(known, default=None)


def _seconds(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())
