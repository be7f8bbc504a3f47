"""What is read of all machines together: each version of a machine once, however many sets ask."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import NOW, ago, fleet_of, healthy, machine
from lb_pass_context import context_on
from memory_kube import MemoryKube
from temporalio.testing import ActivityEnvironment

from activities.loadbalancers import machine_heartbeats as module
from domain.loadbalancers import LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET
from domain.loadbalancers.fleet_silence import AskFleet, Fleet, report_of
from domain.loadbalancers.machine_health import DEFAULT_TIMINGS
from domain.loadbalancers.resources import LoadBalancerMachine
from engine.kube.reflector import Followed

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
    owner = {"kind": "LoadBalancerSet", "name": f"set-of-{name}"}
    meta = {"resourceVersion": str(version), "ownerReferences": [owner]}
    found = machine(name, healthy(beat=ago(**beat)) if beat else [], metadata=meta)
    return found.model_dump(mode="json", exclude_none=True)


def fleet(reports: module.Reports, machines: list[Json]) -> Fleet:
    """As it is found, which is as if every machine had been read again."""
    found = reports.fleet(iter(machines), NOW, DEFAULT_TIMINGS)
    assert found == fleet_of(map(LoadBalancerMachine.model_validate, machines), NOW)
    return found


def test_a_machine_is_read_again_when_it_has_changed_and_only_then(read: list[str]) -> None:
    reports, machines = module.Reports(), [document("a", 1, hours=1), document("b", 2, hours=2), document("c", 3)]
    assert fleet(reports, machines).silent
    assert fleet(reports, machines).silent
    assert read == ["a", "b", "c"]
    machines[1] = document("b", 4, seconds=5)
    assert fleet(reports, machines).reporting == 1
    assert read == ["a", "b", "c", "b"]


def test_a_machine_that_was_deleted_or_replaced_counts_no_more(read: list[str]) -> None:
    reports, machines = module.Reports(), [document("a", 1, hours=1), document("b", 2, hours=2)]
    assert fleet(reports, machines).reported == 2
    assert fleet(reports, machines[:1]).reported == 1
    again = document("b", 5)
    again["metadata"]["uid"] = "another"
    leaving = document("a", 6, hours=1)
    leaving["metadata"]["deletionTimestamp"] = ago(seconds=1)
    assert fleet(reports, [leaving, again]) == Fleet()
    assert read == ["a", "b", "a", "b"]
    assert fleet(reports, machines).reported == 2
    assert read == ["a", "b", "a", "b", "a", "b"], "what is gone is not remembered"


async def test_a_set_that_a_person_has_paused_is_no_scout() -> None:
    kube = MemoryKube()
    ground = context_on(kube)
    for kind in (LOAD_BALANCER_MACHINE, LOAD_BALANCER_SET):
        kube.follow(Followed(kind)).listed = True
    for body in (document("a", 1, hours=2), document("b", 2, hours=1)):
        await kube.create(LOAD_BALANCER_MACHINE, body, "lbs")
    for name in ("set-of-a", "set-of-b"):
        await kube.create(LOAD_BALANCER_SET, {"metadata": {"name": name}}, "lbs")
    assert (await ActivityEnvironment().run(ground.ask_fleet, AskFleet())).scout == "lbs/set-of-a"
    held = {"metadata": {"annotations": {"perdure.dev/paused": "true"}}}
    await kube.patch(LOAD_BALANCER_SET, "lbs", "set-of-a", held)
    assert (await ActivityEnvironment().run(ground.ask_fleet, AskFleet())).scout == "lbs/set-of-b"
