"""What `perdure bench loadbalancers` measures when it is asked for some rows."""

from __future__ import annotations

import pytest
import typer

from localcloud.bench import loadbalancers, loadbalancers_traffic
from localcloud.bench.command import Benchmark, _work


def measured(only: str) -> list[object]:
    return [each.func for each in _work(Benchmark.LOAD_BALANCERS, only, {})]  # type: ignore[attr-defined]


def test_rows_of_one_deployment_are_measured_together() -> None:
    assert measured("a,d") == [loadbalancers.calls]
    assert measured("b,h") == [loadbalancers.calls, loadbalancers.disturbed]
    assert measured("f,j") == [loadbalancers_traffic.traffic]
    assert measured("") == [
        *(loadbalancers.calls, loadbalancers.silent, loadbalancers.disturbed),
        loadbalancers_traffic.traffic,
    ]


def test_a_row_that_is_not_measured_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="knows a, b, d, f1, f2, g, h, j"):
        measured("c")


def test_every_kind_of_call_is_lost_and_refused() -> None:
    struck = {(service, method) for service, method, _, _ in loadbalancers.FAULTS}
    assert struck == {(service, method) for service in ("neutron", "nova") for method in ("POST", "DELETE")}
    assert len(set(loadbalancers.FAULTS)) == len(loadbalancers.FAULTS) == 16
