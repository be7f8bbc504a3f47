"""What stands in a pass's way, and when it tries again."""

from __future__ import annotations

from datetime import timedelta

import pytest
from lb_objects import NOW, balancer, machine, machine_set

from activities.loadbalancers.ground import _hindrance as hindrance_of
from activities.openstack.guard import BUSY, SILENT, SPENT
from domain.loadbalancers.balancer import Phase, work_for_balancer
from domain.loadbalancers.cloud.changes import Brought, machine_changed
from domain.loadbalancers.cloud.looks import look_of_balancer, look_of_machine, look_of_rules
from domain.loadbalancers.cloud.objects import LoadBalancerCloud, MachineCloud, Server
from domain.loadbalancers.cloud.steps import DeleteServer
from domain.loadbalancers.constants import BOOTS_SINCE_ANNOTATION, DRIFT_ANNOTATION, OUTAGE_ANNOTATION, QUOTA_ANNOTATION
from domain.loadbalancers.health import Standing, health_of
from domain.loadbalancers.hindrances import Hindrance, Nature, overdue, worst
from domain.loadbalancers.machine.access import REMOVED
from domain.loadbalancers.machine.lifecycle import MachinePhase, next_look, work_for_machine
from domain.refusal import ErrorType
from domain.writes import merge
from engine.errors import Throttled

OUTAGE = Hindrance.of(ErrorType.UNAVAILABLE, "Neutron does not answer")
QUOTA = Hindrance.of(ErrorType.THROTTLED, "no more servers", quota=True)
GOING = Hindrance.of(ErrorType.PENDING, "server s is being deleted")
FINALIZED = {"metadata": {"finalizers": ["yawol.stackit.cloud/controller2"]}}
FINALIZED_MACHINE = {"metadata": {"finalizers": ["yawol.stackit.cloud/controller4"]}}


@pytest.mark.parametrize(
    ("type_", "quota", "first", "after_an_hour"),
    [
        (ErrorType.PENDING, False, 3, 30),
        (ErrorType.UNAVAILABLE, False, 1, 60),
        (ErrorType.THROTTLED, False, 1, 60),
        (ErrorType.THROTTLED, True, 10, 300),
        (ErrorType.DENIED, False, 15, 600),
        (ErrorType.INVALID, False, 15, 600),
    ],
)
def test_pauses_grow_with_the_time_that_a_hindrance_has_lasted(
    type_: ErrorType, quota: bool, first: int, after_an_hour: int
) -> None:
    found = Hindrance.of(type_, "why", quota=quota)
    assert found.until(NOW, NOW) == NOW + timedelta(seconds=first)
    assert found.until(NOW - timedelta(hours=1), NOW) == NOW + timedelta(seconds=after_an_hour)


def test_the_other_side_is_left_alone_for_as_long_as_it_asks() -> None:
    found = Hindrance.of(ErrorType.THROTTLED, "why", asked=timedelta(minutes=7))
    assert found.until(NOW, NOW) == NOW + timedelta(minutes=7)


def test_what_should_have_ended_by_itself_is_told_when_it_lasts() -> None:
    began = NOW - timedelta(minutes=10)
    assert (
        overdue(GOING, NOW - timedelta(minutes=9), NOW) == overdue(GOING, None, NOW) == overdue(None, began, NOW) == ()
    )
    assert overdue(QUOTA, began, NOW) == (), "that was told at once"
    (told,) = overdue(GOING, began, NOW)
    assert (told.type, told.reason, told.message) == (
        "Warning",
        "Failed",
        "server s is being deleted; this has lasted for more than ten minutes",
    )


def test_what_a_person_has_to_mend_is_shown_before_what_passes() -> None:
    denied = Hindrance.of(ErrorType.DENIED, "no rights")
    assert worst([GOING, denied, OUTAGE]) == denied
    assert worst([GOING, OUTAGE]) == OUTAGE
    assert worst([]) is None


@pytest.mark.parametrize(("code", "ours"), [(BUSY, True), (SPENT, True), (SILENT, False), ("", False)])
def test_only_a_limit_of_this_process_is_its_own(code: str, ours: bool) -> None:
    assert hindrance_of(Throttled("why", code=code)).ours is ours


def test_a_turn_that_comes_is_shown_and_nobody_is_told_of_it() -> None:
    busy = Hindrance.of(ErrorType.THROTTLED, "16 calls are under way", ours=True)
    assert worst([busy, OUTAGE]) == worst([OUTAGE, busy]) == OUTAGE
    shop, one = balancer(**FINALIZED), machine(**FINALIZED_MACHINE)
    for hindrance, told in ((busy, ()), (OUTAGE, ("Neutron does not answer",))):
        waiting = work_for_balancer(shop, LoadBalancerCloud(), (), NOW, hindrance)
        unseen = work_for_machine(one, shop, None, REMOVED, NOW, hindrance=hindrance)
        assert (waiting.phase, waiting.why) == (Phase.WAITING, hindrance.why)
        assert (unseen.phase, unseen.why) == (MachinePhase.WAITING, hindrance.why)
        assert tuple(each.message for each in waiting.notices) == tuple(each.message for each in unseen.notices) == told


def test_what_ends_by_itself_is_no_problem() -> None:
    assert (GOING.problem, OUTAGE.problem, QUOTA.nature) == ("", OUTAGE.why, Nature.QUOTA)


# --- a LoadBalancer ---


def test_with_an_outage_machines_are_scaled_all_the_same_and_nothing_is_forgotten() -> None:
    """W4."""
    of = balancer(spec={"replicas": 3}, **FINALIZED)
    name = f"web--shop-{_hash(of)}"
    work = work_for_balancer(of, None, [machine_set(name)], NOW, OUTAGE)
    assert work.phase is Phase.WAITING
    assert (work.steps, work.create_set) == ((), {})
    assert [each.patch for each in work.set_patches] == [{"spec": {"replicas": 3}}]
    assert "securityGroupID" not in work.status.get("status", {})  # type: ignore[operator]


def test_with_an_outage_no_new_set_is_made() -> None:
    work = work_for_balancer(balancer(**FINALIZED), None, [machine_set("web--shop-zzzz")], NOW, OUTAGE)
    assert (work.create_set, work.set_patches) == ({}, ())


def test_a_load_balancer_that_goes_drops_no_finalizer_unseen() -> None:
    """W4: what could not be looked at is not gone."""
    of = balancer(**merge(FINALIZED, {"metadata": {"deletionTimestamp": "2026-05-01T12:00:00Z"}}))  # type: ignore[arg-type]
    for cloud, hindrance in ((None, OUTAGE), (None, None), (LoadBalancerCloud(), OUTAGE)):
        work = work_for_balancer(of, cloud, [], NOW, hindrance)
        assert (work.phase, work.drop_finalizer) == (Phase.DELETING, False)
    assert work_for_balancer(of, LoadBalancerCloud(), [], NOW).drop_finalizer


def _hash(of: object) -> str:
    from domain.loadbalancers.hashes import template_hash
    from domain.loadbalancers.resources import LoadBalancer

    assert isinstance(of, LoadBalancer)
    return template_hash(of)


# --- a machine ---


def test_a_machine_that_waits_for_a_quota_says_so_and_begins_to_boot_with_its_server() -> None:
    of = machine(**FINALIZED_MACHINE)
    work = work_for_machine(of, balancer(), None, set(), NOW, hindrance=QUOTA)
    assert work.patch == {"metadata": {"annotations": {QUOTA_ANNOTATION: QUOTA.why}}}
    annotated = {**FINALIZED_MACHINE["metadata"], "annotations": {QUOTA_ANNOTATION: "x"}}
    waiting = machine(metadata=annotated, status={"serverID": None})
    later = NOW + timedelta(hours=5)
    assert health_of(waiting, later).standing is Standing.BOOTING
    assert work_for_machine(waiting, balancer(), None, set(), later, hindrance=QUOTA).patch == {}

    there = MachineCloud(servers=(Server(id="s", name=waiting.metadata.name, status="BUILD"),), servers_only=True)
    work = work_for_machine(waiting, balancer(), there, set(), later)
    annotations = {QUOTA_ANNOTATION: None, BOOTS_SINCE_ANNOTATION: "2026-05-01T17:00:00Z"}
    assert work.patch == {"metadata": {"annotations": annotations}}
    begun = machine(metadata={"annotations": {BOOTS_SINCE_ANNOTATION: "2026-05-01T17:00:00Z"}})
    assert health_of(begun, later + timedelta(minutes=9)).standing is Standing.BOOTING
    assert health_of(begun, later + timedelta(minutes=11)).standing is Standing.MARKED


def test_an_outage_of_openstack_does_not_count_against_the_boot_time() -> None:
    of = machine(**FINALIZED_MACHINE, status={"serverID": None})
    work = work_for_machine(of, balancer(), None, set(), NOW, hindrance=OUTAGE)
    waiting = machine(**merge(FINALIZED_MACHINE, work.patch), status={"serverID": None})  # type: ignore[arg-type]
    later = NOW + timedelta(hours=5)
    assert health_of(waiting, later).standing is Standing.BOOTING
    assert work_for_machine(waiting, balancer(), None, set(), later, hindrance=OUTAGE).patch == {}

    there = MachineCloud(servers=(Server(id="s", name=waiting.metadata.name, status="BUILD"),), servers_only=True)
    over = work_for_machine(waiting, balancer(), there, set(), later).patch
    begun = machine(**merge(merge(FINALIZED_MACHINE, work.patch), over))  # type: ignore[arg-type]
    assert health_of(begun, later + timedelta(minutes=9)).standing is Standing.BOOTING
    assert health_of(begun, later + timedelta(minutes=11)).standing is Standing.MARKED


def test_a_refusal_after_an_outage_counts_against_the_boot_time() -> None:
    annotated = {**FINALIZED_MACHINE["metadata"], "annotations": {OUTAGE_ANNOTATION: OUTAGE.why}}
    waiting = machine(metadata=annotated, status={"serverID": None})
    refused = Hindrance.of(ErrorType.INVALID, "no such flavor")
    over = work_for_machine(waiting, balancer(), None, set(), NOW, hindrance=refused).patch
    begun = machine(metadata=merge(annotated, over["metadata"]), status={"serverID": None})
    assert health_of(begun, NOW + timedelta(minutes=11)).standing is Standing.MARKED


@pytest.mark.parametrize("server", ["s", None])
def test_only_a_machine_without_a_server_records_an_outage(server: str | None) -> None:
    of = machine(**FINALIZED_MACHINE, status={"serverID": server})
    busy = Hindrance.of(ErrorType.THROTTLED, "16 calls are under way", ours=True)
    assert work_for_machine(of, balancer(), None, set(), NOW, hindrance=busy).patch == {}
    assert bool(work_for_machine(of, balancer(), None, set(), NOW, hindrance=OUTAGE).patch) is (server is None)


def test_a_server_on_its_way_out_is_not_asked_again_and_keeps_its_machine() -> None:
    going = machine(metadata={**FINALIZED_MACHINE["metadata"], "deletionTimestamp": "2026-05-01T12:00:00Z"})
    server = Server(id="s", name=going.metadata.name, status="ACTIVE", deleting=True)
    work = work_for_machine(going, None, MachineCloud(servers=(server,)), set(), NOW)
    assert (work.phase, work.steps, work.drop_finalizer) == (MachinePhase.DELETING, (), False)
    asked = work_for_machine(
        going, None, MachineCloud(servers=(server.model_copy(update={"deleting": False}),)), set(), NOW
    )
    assert asked.steps == (DeleteServer(id="s"),)
    assert work_for_machine(going, None, MachineCloud(), set(), NOW).drop_finalizer


def test_a_server_that_is_gone_after_a_look_at_it_alone_proves_nothing_about_its_port() -> None:
    """Between the look and its deletion Nova has taken it away: the port has to be looked for yet."""
    going = machine(metadata={**FINALIZED_MACHINE["metadata"], "deletionTimestamp": "2026-05-01T12:00:00Z"})
    there = MachineCloud(servers=(Server(id="s", name=going.metadata.name, status="DELETED"),), servers_only=True)
    gone = machine_changed(there, Brought(gone="s"))
    work = work_for_machine(going, None, gone, set(REMOVED), NOW)
    assert (work.steps, work.remove, work.drop_finalizer) == ((), (), False)
    assert "its ports are checked next" in work.why


# --- when to look ---


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"endpoints": [{"name": "another", "addresses": ["10.9.9.9"]}]}},
        {"spec": {"replicas": 5}},
        {"status": {"readyReplicas": 1}},
        {"metadata": {"resourceVersion": "99"}},
    ],
)
def test_what_the_cloud_knows_nothing_of_asks_for_no_look(change: dict[str, object]) -> None:
    assert look_of_balancer(balancer(**change)) == look_of_balancer(balancer())


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"existingFloatingIP": "203.0.113.9"}},
        {"spec": {"infrastructure": {"defaultNetwork": {"networkID": "other"}}}},
        {"status": {"portID": None}},
        {"metadata": {"annotations": {DRIFT_ANNOTATION: "2026-05-01T12:00:00Z"}}},
    ],
)
def test_what_the_cloud_rests_on_asks_for_a_look(change: dict[str, object]) -> None:
    assert look_of_balancer(balancer(**change)) != look_of_balancer(balancer())


def test_a_change_of_ports_asks_for_a_look_at_the_security_group_alone() -> None:
    less = balancer(spec={"ports": []})
    assert look_of_balancer(less) == look_of_balancer(balancer())
    assert look_of_rules(less) != look_of_rules(balancer())


def test_a_machine_is_looked_at_for_its_group_and_not_for_its_reports() -> None:
    from lb_objects import healthy

    assert look_of_machine(machine(conditions=healthy()), balancer()) == look_of_machine(machine(), balancer())
    other = balancer(status={"securityGroupID": "sg-2"})
    assert look_of_machine(machine(), other) != look_of_machine(machine(), balancer())


def test_a_server_that_takes_a_minute_is_looked_at_ten_times_at_most() -> None:
    """Row b: two calls to look, two to make its port and its server, and these."""
    age, looks = timedelta(seconds=2), 0
    while age < timedelta(seconds=62):
        age += next_look(age)
        looks += 1
    assert looks <= 10
    assert age < timedelta(seconds=62 * 4 / 3)
