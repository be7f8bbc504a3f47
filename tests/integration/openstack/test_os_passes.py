"""Whole lives of load balancers by their passes: what they cost, what disturbs them, what drifts, who is taken over.

The cloud is asked for everything by name, so objects that no status records are seen as well.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from openstack_lab import Lab
from passes_lab import Passes, nothing, whole
from waiting import until

from activities import replaced_operator
from activities.loadbalancers.machines import RIGHTS
from activities.openstack.session import Api
from domain.loadbalancers import LOAD_BALANCER, LOAD_BALANCER_MACHINE
from domain.loadbalancers.balancer_lifecycle import Phase
from domain.loadbalancers.constants import MARKED_AT_ANNOTATION
from domain.resource import timestamp
from engine.errors import Absent

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(300)]

PORT = {"name": "https", "protocol": "TCP", "port": 8443, "nodePort": 30443}


def test_a_load_balancer_comes_to_its_servers_and_goes_again_with_few_calls(lab: Lab, passes: Passes) -> None:
    """Rows a and b of the area's figures; W18."""
    ports = [{"name": "http", "protocol": "TCP", "port": 8080}, PORT]
    name = passes.create(ports=ports)
    passes.ready(name, 1)
    passes.report(name)
    passes.until(name, lambda: passes.balancer(name).status.ready_replicas == 1, "it is ready")
    ledger = lab.control.ledger()
    assert ledger.calls() <= 22, ledger.by_route()
    assert ledger.tokens() <= 1
    assert passes.has(name) == whole(1)

    def nothing_is_looked_at() -> bool:
        lab.control.reset_ledger()
        passes.round(name)
        return lab.control.ledger().calls() == 0

    passes.until(name, nothing_is_looked_at, "its server is built, and nothing left to look at")
    more = {"name": "more", "protocol": "TCP", "port": 9000, "nodePort": 30900}
    passes.patch(LOAD_BALANCER, name, {"spec": {"ports": [*ports, more]}})
    for _ in range(3):
        passes.round(name)
    ledger = lab.control.ledger()
    assert ledger.calls("neutron", "POST", "/v2.0/security-group-rules") == 1
    assert ledger.calls() <= 3, ledger.by_route()

    lab.control.reset_ledger()
    for _ in range(3):
        passes.round(name)
    assert lab.control.ledger().calls() == 0, "a settled object is not observed"

    passes.patch(LOAD_BALANCER, name, {"spec": {"replicas": 2}})
    passes.ready(name, 2)
    lab.control.reset_ledger()
    passes.delete(name)
    passes.gone(name)
    ledger = lab.control.ledger()
    slow = ledger.calls("nova", "GET") + ledger.calls("neutron", "GET", "/v2.0/ports")
    assert ledger.calls() - max(0, slow - 6) <= 18, ledger.by_route()
    assert passes.has(name) == nothing()


DISTURBANCES: dict[str, dict[str, Any]] = {
    "an error of the server before": {"status": 500},
    "an error of the server afterwards": {"status": 500, "kind": "after"},
    "unavailable before": {"status": 503},
    "unavailable afterwards": {"status": 503, "kind": "after"},
    "an answer that is lost": {"kind": "cut"},
    "a conflict before": {"status": 409},
    "a conflict afterwards": {"status": 409, "kind": "after"},
    "too many calls": {"status": 429},
    "a token that is not taken": {"status": 401},
    "a quota": {"status": 409, "type": "OverQuota", "message": "Quota exceeded for resources"},
}
CALLS = (
    ("neutron", "POST", "/security-groups"),
    ("neutron", "POST", "/security-group-rules"),
    ("neutron", "POST", "/ports"),
    ("neutron", "POST", "/floatingips"),
    ("nova", "POST", "/servers"),
    ("neutron", "GET", "/security-groups"),
    ("neutron", "GET", "/ports"),
    ("neutron", "GET", "/floatingips"),
    ("nova", "GET", "/servers"),
    ("nova", "DELETE", "/servers"),
    ("neutron", "DELETE", "/ports"),
    ("neutron", "DELETE", "/floatingips"),
    ("neutron", "DELETE", "/security-groups"),
)


# A quarter of a minute each: a default run has those that differ most.
EACH_RUN = ("an answer that is lost", "unavailable before", "a quota")


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, id=name, marks=() if name in EACH_RUN else pytest.mark.slow)
        for name, how in DISTURBANCES.items()
    ],
)
def test_every_call_may_fail_once_and_nothing_is_doubled_or_left(lab: Lab, passes: Passes, how: dict[str, Any]) -> None:
    """W4, W5, W25: one fails at a time, before or after its effect, over creation, growth and deletion."""
    for service, method, path in CALLS:
        lab.control.fault(service, method, f"{path}(/[^/]*|/detail)?$", count=1, **how)
    name = passes.create()
    passes.ready(name, 1)
    assert passes.has(name) == whole(1)
    passes.patch(LOAD_BALANCER, name, {"spec": {"replicas": 2}})
    passes.ready(name, 2)
    assert passes.has(name) == whole(2)
    passes.delete(name)
    passes.gone(name)
    struck = sum(fault.hits for service in ("neutron", "nova") for fault in lab.control.faults(service))
    assert struck == len(CALLS), "every one of them has failed once"
    assert passes.has(name) == nothing()


def test_a_quota_is_shown_waited_for_and_no_failed_boot(lab: Lab, passes: Passes) -> None:
    """W9: no storm of machines."""
    lab.control.fault("nova", "POST", "/servers$", status=403, message="Quota exceeded for instances: Requested 1")
    name = passes.create()
    passes.until(name, lambda: any(_quota(each) for each in passes.machines(name)), "the machine waits for the quota")
    for _ in range(3):
        passes.round(name)
    assert len(passes.machines(name)) == 1
    assert passes.has(name)["servers"] == 0
    lab.control.clear()
    passes.ready(name, 1)
    passes.round(name)
    (machine,) = passes.machines(name)
    assert not _quota(machine)
    assert "perdure.dev/boots-since" in machine.metadata.annotations
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def _quota(machine: object) -> bool:
    return "perdure.dev/waits-for-quota" in machine.metadata.annotations  # type: ignore[attr-defined]


def test_an_outage_does_not_stop_scaling_and_loses_no_id(lab: Lab, passes: Passes) -> None:
    """W4: an error is no absence."""
    name = passes.create()
    passes.ready(name, 1)
    before = passes.balancer(name).status
    lab.control.fault("neutron", status=503)
    passes.patch(LOAD_BALANCER, name, {"metadata": {"annotations": {"a": "b"}}})
    passes.patch(LOAD_BALANCER, name, {"spec": {"replicas": 2}})
    passes.until(name, lambda: len(passes.machines(name)) == 2, "a second machine is asked for")
    assert passes.balancer(name).status.model_copy(update={"replicas": 1}) == before.model_copy(update={"replicas": 1})
    assert any(world.decision.phase == Phase.WAITING for world in passes.worlds.values())
    lab.control.clear()
    passes.ready(name, 2)
    assert passes.has(name) == whole(2)
    passes.delete(name)
    passes.gone(name)


def test_a_machine_that_is_about_to_be_given_up_gets_its_rights_again(lab: Lab, passes: Passes) -> None:
    """Without its Role it cannot report, though it serves; what it still has stays as it is."""
    name = passes.create()
    passes.ready(name, 1)
    (machine,) = passes.machines(name)
    own = machine.metadata
    secret = lab.kube.get(RIGHTS["Secret"], own.namespace, own.name)
    passes.remove(RIGHTS["Role"], own.name)
    passes.look(machine.key)
    with pytest.raises(Absent):
        lab.kube.get(RIGHTS["Role"], own.namespace, own.name)
    mark = {MARKED_AT_ANNOTATION: timestamp(passes.now)}
    passes.patch(LOAD_BALANCER_MACHINE, own.name, {"metadata": {"annotations": mark}})
    passes.look(machine.key)
    lab.kube.get(RIGHTS["Role"], own.namespace, own.name)
    assert lab.kube.get(RIGHTS["Secret"], own.namespace, own.name)["metadata"] == secret["metadata"]
    passes.delete(name)
    passes.gone(name)


@pytest.mark.slow
def test_one_sweep_of_the_project_finds_drift_and_wakes_no_other(lab: Lab, passes: Passes) -> None:
    """Row c; W24: a floating IP deleted behind our back comes again, a machine's port gets its group back."""
    names = [passes.create() for _ in range(3)]
    for name in names:
        passes.ready(name, 1)

    def settled() -> bool:
        lab.control.reset_ledger()
        for name in names:
            passes.round(name)
        return lab.control.ledger().calls() == 0

    until(settled, "no pass observes a server that was being built any more")
    world = passes.sweep()
    assert lab.control.ledger().calls() <= 5, lab.control.ledger().by_route()
    assert ", 0 of " in world.decision.why, world.decision.why

    project, changed = lab.project(), passes.balancer(names[1])
    project.delete(Api.NEUTRON, "floatingip", f"/floatingips/{changed.status.floating_id}", what="test")
    (machine,) = passes.machines(names[2])
    lost: dict[str, object] = {"port": {"security_groups": []}}
    project.put(Api.NEUTRON, "port", f"/ports/{machine.status.default_port_id}", lost, what="test", holds="port")
    world = passes.sweep()
    assert ", 2 of " in world.decision.why, world.decision.why
    lab.control.reset_ledger()
    passes.round(names[0])
    assert lab.control.ledger().calls() == 0
    for name in names[1:]:
        passes.round(name)
    assert passes.has(names[1]) == whole(1)
    assert passes.balancer(names[1]).status.floating_id != changed.status.floating_id
    assert ", 0 of " in passes.sweep().decision.why
    assert not any("perdure.dev/drift-seen-at" in passes.balancer(name).metadata.annotations for name in names)
    for name in names:
        passes.delete(name)
        passes.gone(name)


def test_a_machine_whose_server_fails_or_is_lost_is_replaced(lab: Lab, passes: Passes) -> None:
    name = passes.create()
    passes.ready(name, 1)
    (first,) = passes.machines(name)
    lab.project().delete(Api.NOVA, "server", f"/servers/{first.status.server_id}", what="test")
    passes.until(name, lambda: _swept_away(passes, name, first.metadata.name), "it is replaced")
    assert passes.has(name) == whole(1)
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def _swept_away(passes: Passes, name: str, former: str) -> bool:
    passes.sweep()
    now = [each.metadata.name for each in passes.machines(name)]
    return former not in now and passes.serves(name, 1)


def test_objects_left_by_yawol_are_adopted_without_a_change_in_the_cloud(lab: Lab, passes: Passes) -> None:
    """Row i: no mark of ours is anywhere; ids, names and hash are recorded as yawol records them."""
    name = passes.create()
    passes.ready(name, 1)
    passes.round(name)
    project, balancer = lab.project(), passes.balancer(name)
    (machine,) = passes.machines(name)
    group, port = balancer.status.group_id, balancer.status.port_id
    unmarked = {"description": ""}
    project.put(
        Api.NEUTRON,
        "group",
        f"/security-groups/{group}",
        {"security_group": unmarked},
        what="test",
        holds="security_group",
    )
    for id_ in (port, machine.status.default_port_id):
        project.put(Api.NEUTRON, "port", f"/ports/{id_}", {"port": unmarked}, what="test", holds="port")
    former = {"portID": machine.status.default_port_id, "defaultPortID": None}
    passes.patch(LOAD_BALANCER_MACHINE, machine.metadata.name, {"status": former}, status=True)
    passes.forget()
    lab.control.reset_ledger()
    for _ in range(3):
        passes.round(name)
    assert lab.control.ledger().mutating() == 0, lab.control.ledger().by_route()
    (left,) = passes.machines(name)
    assert left.metadata.uid == machine.metadata.uid
    assert left.status.default_port_id == machine.status.default_port_id
    assert ", 0 of " in passes.sweep().decision.why
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


@pytest.mark.slow
def test_nothing_is_observed_or_made_while_yawol_still_leads(
    lab: Lab, passes: Passes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row i: each kind has its controller's lease."""
    monkeypatch.setattr(replaced_operator, "ASKED_EVERY_SECONDS", 0.0)
    passes.lead(LOAD_BALANCER)
    name = passes.create()
    lab.control.reset_ledger()
    passes.round(name)
    (held,) = [world for key, world in passes.worlds.items() if key.name == name]
    assert "yawol still leads" in held.hold
    assert held.decision.deadline is not None, "no wake says when it has gone"
    assert "yawol still leads" in passes.sweep().decision.why
    assert lab.control.ledger().calls() == 0
    passes.lead(None)
    passes.ready(name, 1)
    passes.lead(LOAD_BALANCER_MACHINE)
    passes.delete(name)
    passes.until(name, lambda: passes.machines(name)[0].metadata.deleting, "its set lets the machine go")
    passes.round(name)
    assert passes.has(name) == whole(1), "the machine's server is its own controller's to delete"
    passes.lead(None)
    passes.gone(name)
    assert passes.has(name) == nothing()


def test_a_load_balancer_without_credentials_waits_for_them(lab: Lab, passes: Passes) -> None:
    lab.put_secret("other", {"auth": {**lab.cloud["auth"], "password": "wrong"}})
    infrastructure = {**lab.infrastructure(), "authSecretRef": {"name": "other", "namespace": "lbs"}}
    name = passes.create(infrastructure=infrastructure)
    for _ in range(3):
        passes.round(name)
    decisions = [world.decision for world in passes.worlds.values() if world.key.name == name]
    assert [each.phase for each in decisions] == [Phase.WAITING]
    assert "Keystone" in decisions[0].why
    assert decisions[0].deadline is not None
    lab.put_secret("other")
    passes.ready(name, 1)
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def test_a_load_balancer_that_never_reached_its_project_goes_without_its_secret(lab: Lab, passes: Passes) -> None:
    infrastructure = {**lab.infrastructure(), "authSecretRef": {"name": "never-made", "namespace": "lbs"}}
    name = passes.create(infrastructure=infrastructure)
    passes.round(name)
    (condition,) = passes.balancer(name).status.conditions
    assert (condition.type, condition.status) == ("Stalled", "True")
    assert "never-made" in str(condition.message)
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def test_a_load_balancer_with_cloud_objects_waits_for_its_secret_to_delete_them(lab: Lab, passes: Passes) -> None:
    infrastructure = {**lab.infrastructure(), "authSecretRef": {"name": "late", "namespace": "lbs"}}
    name = passes.create(infrastructure=infrastructure)
    passes.round(name)
    lab.put_secret("late")
    passes.round(name)
    assert passes.has(name) != nothing()
    lab.remove_secret("late")
    passes.delete(name)
    for _ in range(3):
        passes.round(name)
    assert passes.exists(name)
    lab.put_secret("late")
    passes.gone(name)
    assert passes.has(name) == nothing()


@pytest.mark.parametrize("field", ["networkID", "subnetID", "floatingNetID"])
def test_a_network_that_does_not_exist_is_named_at_once_and_waits_for_an_edit(
    lab: Lab, passes: Passes, field: str
) -> None:
    missing = str(uuid4())
    right = lab.infrastructure()
    wrong = {**right, "defaultNetwork": {**right["defaultNetwork"], field: missing}}
    name = passes.create(infrastructure=wrong)
    passes.round(name)
    (decisions,) = [world.decision for world in passes.worlds.values() if world.key.name == name]
    assert decisions.phase == Phase.WAITING
    assert f"spec.infrastructure.defaultNetwork.{field}" in decisions.why
    assert missing in decisions.why
    (condition,) = passes.balancer(name).status.conditions
    assert (condition.type, condition.reason) == ("Stalled", "Refused")
    assert f"spec.infrastructure.defaultNetwork.{field}" in str(condition.message)
    assert missing in str(condition.message)
    corrected = {field: right["defaultNetwork"].get(field)}
    passes.patch(LOAD_BALANCER, name, {"spec": {"infrastructure": {"defaultNetwork": corrected}}})
    passes.ready(name, 1)
    assert passes.balancer(name).status.conditions == ()
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


@pytest.mark.slow
def test_a_rollout_waits_for_the_address_to_move_and_goes_back_with_a_new_revision(lab: Lab, passes: Passes) -> None:
    """W6: the machines of the old template get the new revision, and with it the address."""
    name = passes.create()
    passes.ready(name, 1)
    (first,) = passes.machines(name)
    serve(passes, name, first.metadata.name)
    assert passes.balancer(name).revision == "1"

    passes.patch(LOAD_BALANCER, name, {"spec": {"infrastructure": {"availabilityZone": "nova"}}})
    passes.ready(name, 2)
    (second,) = [each for each in passes.machines(name) if each.metadata.name != first.metadata.name]
    passes.report(name, first.metadata.name)
    for _ in range(3):
        passes.round(name)
    assert passes.has(name) == whole(2), "the old one serves on"
    passes.ahead += timedelta(minutes=1)
    passes.report(name, second.metadata.name)
    passes.round(name)
    passes.ahead += timedelta(minutes=2, seconds=30)
    passes.report(name, second.metadata.name)
    passes.until(name, lambda: passes.has(name) == whole(1), "the old one goes")
    assert [each.metadata.name for each in passes.machines(name)] == [second.metadata.name]
    assert passes.balancer(name).revision == second.revision == "2"

    passes.patch(LOAD_BALANCER, name, {"spec": {"infrastructure": {"availabilityZone": ""}}})
    passes.ready(name, 2)
    assert passes.balancer(name).revision == "3"
    (third,) = [each for each in passes.machines(name) if each.metadata.name != second.metadata.name]
    assert third.revision == "3"
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def serve(passes: Passes, name: str, master: str) -> None:
    """The load balancer is ready, and has been for long."""
    passes.report(name, master)
    passes.until(name, lambda: passes.balancer(name).status.ready_replicas == 1, "it is ready")
    passes.ahead += timedelta(minutes=20)
    passes.report(name, master)
    passes.round(name)


@pytest.mark.slow
def test_a_machine_that_falls_silent_is_replaced_before_it_goes(lab: Lab, passes: Passes) -> None:
    """W8: the replacement waits for no deletion."""
    name = passes.create(2)
    passes.ready(name, 2)
    names = [each.metadata.name for each in passes.machines(name)]
    passes.report(name, names[0])
    passes.round(name)
    silent, alive = names
    passes.ahead += timedelta(minutes=4)
    beat(passes, name, alive)
    passes.round(name)
    passes.ahead += timedelta(minutes=2, seconds=5)
    beat(passes, name, alive)
    passes.until(name, lambda: len(passes.machines(name)) == 3, "its replacement is made beside it")
    passes.until(name, lambda: silent not in [each.metadata.name for each in passes.machines(name)], "it goes")
    beat(passes, name, alive)
    passes.ready(name, 2)
    assert passes.has(name) == whole(2)
    passes.delete(name)
    passes.gone(name)
    assert passes.has(name) == nothing()


def beat(passes: Passes, name: str, alive: str) -> None:
    """One machine's agent reports."""
    passes.report(name, alive, only=alive)
