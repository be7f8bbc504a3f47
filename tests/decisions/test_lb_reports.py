"""What is read of all machines together: each version of a machine once, however many sets ask."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import NOW, ago, healthy, machine

from activities.loadbalancers import reports as module
from activities.loadbalancers.reports import Reports
from domain.loadbalancers.fleet import Fleet, fleet_of, report_of
from domain.loadbalancers.health import DEFAULT_TIMINGS
from domain.loadbalancers.resources import LoadBalancerMachine

Json = dict[str, Any]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The machines that were read, by name."""
    names: list[str] = []

    def counted(found: LoadBalancerMachine) -> Any:
        names.append(found.metadata.name)
        return report_of(found)

    monkeypatch.setattr(module, "report_of", counted)
    return names


def document(name: str, version: int, **beat: float) -> Json:
    found = machine(name, healthy(beat=ago(**beat)) if beat else [], metadata={"resourceVersion": str(version)})
    return found.model_dump(mode="json", by_alias=True)


def fleet(reports: Reports, machines: list[Json]) -> Fleet:
    """As it is found, which is as if every machine had been read anew."""
    found = reports.fleet(iter(machines), NOW, DEFAULT_TIMINGS)
    assert found == fleet_of(map(LoadBalancerMachine.model_validate, machines), NOW)
    return found


def test_a_machine_is_read_again_when_it_has_changed_and_only_then(read: list[str]) -> None:
    reports, machines = Reports(), [document("a", 1, hours=1), document("b", 2, hours=2), document("c", 3)]
    assert fleet(reports, machines).silent
    assert fleet(reports, machines).silent
    assert read == ["a", "b", "c"]
    machines[1] = document("b", 4, seconds=5)
    assert fleet(reports, machines).reporting == 1
    assert read == ["a", "b", "c", "b"]


def test_a_machine_that_goes_or_is_made_anew_counts_no_more(read: list[str]) -> None:
    reports, machines = Reports(), [document("a", 1, hours=1), document("b", 2, hours=2)]
    assert fleet(reports, machines).reported == 2
    assert fleet(reports, machines[:1]).reported == 1
    anew = document("b", 5)
    anew["metadata"]["uid"] = "another"
    leaving = document("a", 6, hours=1)
    leaving["metadata"]["deletionTimestamp"] = ago(seconds=1)
    assert fleet(reports, [leaving, anew]) == Fleet()
    assert len(reports._read) == 2
