"""What `perdure bench loadbalancers` measures when it is asked for some rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import typer
from lb_objects import healthy, machine

from domain.loadbalancers.machine_health import HealthState, health_of, is_master
from domain.loadbalancers.resources import LoadBalancerMachine
from localcloud.bench import loadbalancers, loadbalancers_crowds, loadbalancers_reports, loadbalancers_traffic
from localcloud.bench.command import Benchmark, selected_work


def measured(only: str) -> list[object]:
    return [each.func for each in selected_work(Benchmark.LOAD_BALANCERS, only, {})]  # type: ignore[attr-defined]


def test_rows_of_one_deployment_are_measured_together() -> None:
    assert measured("a,d") == [loadbalancers.calls]
    assert measured("b,h") == [loadbalancers.calls, loadbalancers.disturbed]
    assert measured("f,j") == [loadbalancers_traffic.traffic]
    assert measured("i,e") == [loadbalancers_crowds.at_once]
    assert measured("") == [
        *(loadbalancers.calls, loadbalancers.silent, loadbalancers.disturbed),
        loadbalancers_traffic.traffic,
        *(loadbalancers_crowds.at_once, loadbalancers_crowds.settled),
    ]


def test_a_row_that_is_not_measured_is_refused() -> None:
    with pytest.raises(typer.BadParameter, match="knows a, b, c, d, e, f1, f2, g, h, i, j"):
        measured("k")


def test_every_kind_of_call_is_lost_and_refused() -> None:
    struck = {(service, method) for service, method, _, _ in loadbalancers.FAULTS}
    assert struck == {(service, method) for service in ("neutron", "nova") for method in ("POST", "DELETE")}
    assert len(set(loadbalancers.FAULTS)) == len(loadbalancers.FAULTS) == 16


def test_a_played_report_is_a_serving_machines_and_keeps_when_it_began() -> None:
    young = read(reported(machine().model_dump(mode="json", by_alias=True), master=True))
    assert health_of(young, datetime.now(UTC)).state is HealthState.READY
    assert is_master(young)
    long_ago = machine(conditions=healthy(master=True))
    again = read(reported(long_ago.model_dump(mode="json", by_alias=True), master=True))
    since = {each.type: each.last_transition_time for each in long_ago.status.conditions}
    assert {each.type: each.last_transition_time for each in again.status.conditions} == since
    lost = read(reported(long_ago.model_dump(mode="json", by_alias=True), master=False))
    assert not is_master(lost)


def reported(body: Any, *, master: bool) -> Any:
    return {**body, "status": {**body["status"], "conditions": loadbalancers_reports.conditions(body, master=master)}}


def read(body: Any) -> LoadBalancerMachine:
    return LoadBalancerMachine.model_validate(body)


def test_one_machine_of_each_set_has_the_address() -> None:
    machines = [
        {"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": owner}]}}
        for name, owner in (("b", "one"), ("a", "one"), ("c", "two"))
    ]
    assert loadbalancers_reports.first_of_each(machines) == {"a", "c"}
