"""The numbers that the claims area counts where things happen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import REGISTRY

from activities.claims import metrics
from engine.errors import Unavailable
from engine.metrics import Step

BORN = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def claim(**lifespan: str) -> dict[str, Any]:
    return {"metadata": {"creationTimestamp": "2026-11-21T12:00:00Z"}, "spec": {"lifespan": lifespan}}


def value_of(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def more(say: Callable[[], None], name: str, **labels: str) -> float:
    """By how much a series grows when this is said."""
    before = value_of(name, **labels)
    say()
    return value_of(name, **labels) - before


def test_a_claim_is_bound_so_long_after_its_creation() -> None:
    grown = more(
        lambda: metrics.claim_bound(claim(), BORN + timedelta(seconds=7), pool="warm"),
        "perdure_resource_claim_bound_seconds_sum",
        pool="warm",
        made="false",
    )
    assert grown == 7


def test_a_claim_that_starts_later_is_counted_from_its_start() -> None:
    started = claim(start="2026-11-21T12:30:00Z")
    grown = more(
        lambda: metrics.claim_bound(started, BORN + timedelta(minutes=30, seconds=2), made=True),
        "perdure_resource_claim_bound_seconds_sum",
        pool="",
        made="true",
    )
    assert grown == 2


def test_a_clock_that_is_behind_gives_no_negative_duration() -> None:
    grown = more(
        lambda: metrics.claim_ready(claim(), BORN - timedelta(seconds=1)),
        "perdure_resource_claim_ready_seconds_bucket",
        pool="",
        le="1",
    )
    assert grown == 1


def test_an_expiry_is_late_by_the_time_since_its_end() -> None:
    grown = more(
        lambda: metrics.expired("ResourceHandle", BORN, BORN + timedelta(seconds=0.2)),
        "perdure_resource_expiry_lateness_seconds_bucket",
        kind="ResourceHandle",
        le="0.25",
    )
    assert grown == 1


def test_a_missed_handle_and_a_refused_claim_are_counted() -> None:
    assert more(metrics.bind_missed, "perdure_resource_bind_misses_total") == 1
    name = "perdure_resource_claim_validation_failures_total"
    assert more(lambda: metrics.validation_failed("lab"), name, provider="lab") == 1


@pytest.mark.parametrize(("error", "status"), [(None, "success"), (Unavailable("gone"), "error")])
def test_attempts_of_the_area_are_timed_under_poolboys_name(error: Exception | None, status: str) -> None:
    labels = {"method": "claims.pass_claim", "status": status, "app": "poolboy", "cluster_domain": ""}
    step = Step("ResourceClaim", "claims.pass_claim", 0.5, error)
    assert more(lambda: metrics.ClaimListener("").on_step(step), "poolboy_process_time_seconds_sum", **labels) == 0.5


def test_attempts_of_other_areas_are_not() -> None:
    labels = {"method": "accounts.observe", "status": "success", "app": "poolboy", "cluster_domain": ""}
    step = Step("Account", "accounts.observe", 0.5, None)
    assert more(lambda: metrics.ClaimListener("").on_step(step), "poolboy_process_time_seconds_count", **labels) == 0
