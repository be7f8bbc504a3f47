"""Which rows `perdure bench claims` knows, and how it counts."""

from __future__ import annotations

import pytest

from localcloud.bench.claims import ON_REQUEST
from localcloud.bench.claims_growth import numbers
from localcloud.bench.claims_telling import beyond_idle
from localcloud.bench.command import Benchmark, selected_work


def test_growth_runs_only_when_asked_for() -> None:
    assert {"j", "x"} < ON_REQUEST
    by_default = len(selected_work(Benchmark.CLAIMS, "", {}))
    assert len(selected_work(Benchmark.CLAIMS, "w,x", {"growth_claims": 100})) == 2
    assert len(selected_work(Benchmark.CLAIMS, "a,e,f,g,h,r,w", {})) == by_default


@pytest.mark.parametrize(
    ("most", "tried"),
    [(10, (10,)), (100, (100,)), (300, (100, 300)), (10_000, (100, 1000, 10_000))],
)
def test_growth_is_measured_for_powers_of_ten_up_to_the_most(most: int, tried: tuple[int, ...]) -> None:
    assert numbers(most) == tried


def test_cpu_of_idle_services_does_not_count() -> None:
    assert beyond_idle({"worker": 3.0, "etcd": 0.5}, {"worker": 0.1, "etcd": 0.1}, 10.0) == {"worker": 2.0, "etcd": 0.0}
