"""What blocks a pass, and when it tries again."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from lb_objects import NOW, balancer, balancer_world, machine, machine_set, machine_world, refusal

from activities.openstack.call_limits import SILENT
from domain.decision import Action
from domain.loadbalancers.balancer_lifecycle import Phase, decide_balancer
from domain.loadbalancers.balancer_world import CreateSet, LookAtBalancer, PatchSet, WriteStatus
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.cloud.machine import ServedBalancer
from domain.loadbalancers.cloud.objects import CloudPort, FixedIp, LoadBalancerCloud, MachineCloud, Server
from domain.loadbalancers.cloud.observation_due import look_of_balancer, look_of_machine, look_of_rules
from domain.loadbalancers.cloud.ownership import mark_of
from domain.loadbalancers.cloud.steps import CreatePort, DeletePort, DeleteServer, Step
from domain.loadbalancers.constants import BOOTS_SINCE_ANNOTATION, DRIFT_ANNOTATION, OUTAGE_ANNOTATION, QUOTA_ANNOTATION
from domain.loadbalancers.machine.lifecycle import MachinePhase, decide_machine
from domain.loadbalancers.machine.world import LookAtMachine, MachineWorld, RevokeAccess, SeenMachine
from domain.loadbalancers.machine_health import HealthState, health_of
from domain.loadbalancers.refused_calls import BUSY, SPENT, Blocker, Nature, overdue, with_pause
from domain.loadbalancers.refused_calls import QUOTA as OVER_QUOTA
from domain.loadbalancers.resources import LoadBalancerMachine
from domain.refusal import AREA_PAUSED, WORKER_SHUTDOWN, ErrorType, Refusal
from domain.resource import parse_timestamp
from domain.writes import DropFinalizer, Patch, Written, merge

SILENCE = refusal(ErrorType.UNAVAILABLE, "Neutron does not answer")
OUTAGE = Blocker.of(SILENCE)
QUOTA = Blocker.of(refusal(ErrorType.THROTTLED, "no more servers", OVER_QUOTA))
GOING = Blocker.of(refusal(ErrorType.PENDING, "server s is being deleted"))
FINALIZED = {"metadata": {"finalizers": ["yawol.stackit.cloud/controller2"]}}
FINALIZED_MACHINE = {"metadata": {"finalizers": ["yawol.stackit.cloud/controller4"]}}


@pytest.mark.parametrize(
    ("type_", "quota", "first", "longest"),
    [
        (ErrorType.PENDING, False, 3, 30),
        (ErrorType.UNAVAILABLE, False, 1, 60),
        (ErrorType.THROTTLED, False, 1, 60),
        (ErrorType.THROTTLED, True, 10, 300),
        (ErrorType.DENIED, False, 15, 600),
        (ErrorType.INVALID, False, 15, 600),
    ],
)
def test_pauses_grow_with_the_number_of_refusals(type_: ErrorType, quota: bool, first: int, longest: int) -> None:
    found = refusal(type_, "why", OVER_QUOTA if quota else "")
    pauses = [with_pause(found.model_copy(update={"attempts": each})).pause for each in (1, 2, 20)]
    assert pauses == [timedelta(seconds=each) for each in (first, 2 * first, longest)]


def test_the_other_side_is_left_alone_for_as_long_as_it_asks() -> None:
    found = refusal(ErrorType.THROTTLED, "why").model_copy(update={"asked": timedelta(minutes=7)})
    assert with_pause(found).retry_at == found.at + timedelta(minutes=7)


def test_a_blocker_that_should_have_passed_is_reported_when_it_lasts() -> None:
    began = NOW - timedelta(minutes=10)
    assert (
        overdue(GOING, NOW - timedelta(minutes=9), NOW) == overdue(GOING, None, NOW) == overdue(None, began, NOW) == ()
    )
    assert overdue(QUOTA, began, NOW) == (), "that was reported at once"
    (reported,) = overdue(GOING, began, NOW)
    assert (reported.type, reported.reason, reported.message) == (
        "Warning",
        "Failed",
        "server s is being deleted; this has lasted for more than ten minutes",
    )


def test_a_blocker_for_a_person_is_shown_before_a_passing_one() -> None:
    denied = Blocker.of(refusal(ErrorType.DENIED, "no rights"))
    assert max([GOING, denied, OUTAGE], key=lambda each: each.weight) == denied
    assert max([GOING, OUTAGE], key=lambda each: each.weight) == OUTAGE


@pytest.mark.parametrize(("code", "ours"), [(BUSY, True), (SPENT, True), (SILENT, False), ("", False)])
def test_only_a_limit_of_this_process_is_its_own(code: str, ours: bool) -> None:
    assert Blocker.of(refusal(ErrorType.THROTTLED, "why", code)).ours is ours


def test_a_call_limit_is_shown_in_the_phase_without_an_event() -> None:
    busy = Blocker.of(refusal(ErrorType.THROTTLED, "16 calls are under way", BUSY))
    assert busy.weight < OUTAGE.weight
    shop, one = balancer(**FINALIZED), machine(**FINALIZED_MACHINE)
    for blocker, reported in ((busy, ()), (OUTAGE, ("Neutron does not answer",))):
        code = BUSY if blocker.ours else ""
        waiting = decide_balancer(balancer_world(shop, refusal=refusal(ErrorType.UNAVAILABLE, blocker.why, code)), NOW)
        decision = decide_machine(unseen(one, ErrorType.UNAVAILABLE, blocker.why, code), NOW)
        assert (waiting.phase, waiting.why) == (Phase.WAITING, blocker.why)
        assert (decision.phase, decision.why) == (MachinePhase.WAITING, blocker.why)
        for line in (decision, waiting):
            assert tuple(notice.message for notice in line.notices) == reported


def test_a_blocker_that_ends_by_itself_is_no_problem() -> None:
    assert (GOING.problem, OUTAGE.problem, QUOTA.nature) == ("", OUTAGE.why, Nature.QUOTA)


# --- a LoadBalancer ---


def test_with_an_outage_machines_are_scaled_all_the_same_and_nothing_is_forgotten() -> None:
    """W4."""
    of = balancer(spec={"replicas": 3}, **FINALIZED)
    name = f"web--shop-{_hash(of)}"
    decision = decide_balancer(balancer_world(of, None, [machine_set(name)], SILENCE), NOW)
    assert decision.phase == Phase.WAITING
    (change,) = (each for each in decision.actions if isinstance(each, PatchSet))
    assert change.patch == {"spec": {"replicas": 3}}
    assert not [each for each in decision.actions if isinstance(each, Step | CreateSet)]
    statuses = [each.patch["status"] for each in decision.actions if isinstance(each, WriteStatus)]
    assert all("securityGroupID" not in each for each in statuses)  # type: ignore[operator]


def test_with_an_outage_no_new_set_is_made() -> None:
    world = balancer_world(balancer(**FINALIZED), None, [machine_set("web--shop-zzzz")], SILENCE)
    assert not [each for each in decide_balancer(world, NOW).actions if isinstance(each, CreateSet | PatchSet)]


def test_a_load_balancer_that_goes_drops_no_finalizer_unseen() -> None:
    """W4: what could not be looked at is not gone."""
    of = balancer(**merge(FINALIZED, {"metadata": {"deletionTimestamp": "2026-05-01T12:00:00Z"}}))  # type: ignore[arg-type]
    for refused_look in (SILENCE, None):
        unseen_world = balancer_world(of, None, (), refused_look).learn(settled="")
        decision = decide_balancer(unseen_world, NOW)
        assert decision.phase == Phase.DELETING
        assert [each.slot for each in decision.actions] == [LookAtBalancer.activity]
    seen = balancer_world(of, LoadBalancerCloud())
    (status,) = decide_balancer(seen, NOW).actions
    assert isinstance(status, WriteStatus)
    assert status.patch["status"]["portID"] is None  # type: ignore[index]
    (drop,) = decide_balancer(status.fold(seen, Written()), NOW).actions
    assert isinstance(drop, DropFinalizer)


def _hash(of: object) -> str:
    from domain.loadbalancers.resources import LoadBalancer
    from domain.loadbalancers.template_hash import template_hash

    assert isinstance(of, LoadBalancer)
    return template_hash(of)


# --- a machine ---


def refused(world: MachineWorld, *refusals: tuple[Action | type[Action], ErrorType, str, str]) -> MachineWorld:
    """The world after these actions were refused."""
    for action, type_, message, code in refusals:
        slot = action.slot if isinstance(action, Action) else action.activity
        failed = Refusal(type=type_, message=message, code=code, at=NOW)
        world = world.model_copy(update={"refusals": {**world.refusals, slot: failed}})
    return world


def unseen(of: LoadBalancerMachine, type_: ErrorType, message: str, code: str = "") -> MachineWorld:
    """The cloud does not let itself be looked at."""
    world = machine_world(of, balancer())
    return refused(world.learn(settled=""), (LookAtMachine, type_, message, code))


def annotated(world: MachineWorld, now: datetime) -> dict[str, object]:
    """What is written on the machine itself."""
    writes = [each for each in decide_machine(world, now).actions if isinstance(each, Patch) and not each.subresource]
    assert len(writes) <= 1
    return writes[0].patch if writes else {}


def with_server(of: LoadBalancerMachine, status: str = "BUILD") -> MachineWorld:
    virtual = CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),))
    server = Server(id="s", name=of.metadata.name, status=status)
    return machine_world(of, balancer(), MachineCloud(servers=(server,), virtual_port=virtual))


def test_a_machine_that_waits_for_a_quota_says_so_and_begins_to_boot_with_its_server() -> None:
    fresh = machine(**FINALIZED_MACHINE, status={"serverID": None})
    virtual = CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),))
    seen = MachineCloud(virtual_port=virtual)
    no_more = (CreatePort, ErrorType.THROTTLED, QUOTA.why, OVER_QUOTA)
    patch = annotated(refused(machine_world(fresh, balancer(), seen), no_more), NOW)
    assert patch == {"metadata": {"annotations": {QUOTA_ANNOTATION: QUOTA.why}}}
    marked = {**FINALIZED_MACHINE["metadata"], "annotations": {QUOTA_ANNOTATION: "x"}}
    waiting = machine(metadata=marked, status={"serverID": None})
    later = NOW + timedelta(hours=5)
    assert health_of(waiting, later).state is HealthState.BOOTING
    assert annotated(refused(machine_world(waiting, balancer(), seen), no_more), later) == {}

    annotations = {QUOTA_ANNOTATION: None, BOOTS_SINCE_ANNOTATION: "2026-05-01T17:00:00Z"}
    assert annotated(with_server(waiting), later) == {"metadata": {"annotations": annotations}}
    begun = machine(metadata={"annotations": {BOOTS_SINCE_ANNOTATION: "2026-05-01T17:00:00Z"}})
    assert health_of(begun, later + timedelta(minutes=9)).state is HealthState.BOOTING
    assert health_of(begun, later + timedelta(minutes=11)).state is HealthState.MARKED


def test_an_outage_of_openstack_does_not_count_against_the_boot_time() -> None:
    of = machine(**FINALIZED_MACHINE, status={"serverID": None})
    patch = annotated(unseen(of, ErrorType.UNAVAILABLE, OUTAGE.why), NOW)
    waiting = machine(**merge(FINALIZED_MACHINE, patch), status={"serverID": None})  # type: ignore[arg-type]
    later = NOW + timedelta(hours=5)
    assert health_of(waiting, later).state is HealthState.BOOTING
    assert annotated(unseen(waiting, ErrorType.UNAVAILABLE, OUTAGE.why), later) == {}

    over = annotated(with_server(waiting), later)
    begun = machine(**merge(merge(FINALIZED_MACHINE, patch), over))  # type: ignore[arg-type]
    assert health_of(begun, later + timedelta(minutes=9)).state is HealthState.BOOTING
    assert health_of(begun, later + timedelta(minutes=11)).state is HealthState.MARKED


def test_a_refusal_after_an_outage_counts_against_the_boot_time() -> None:
    marked = {**FINALIZED_MACHINE["metadata"], "annotations": {OUTAGE_ANNOTATION: OUTAGE.why}}
    waiting = machine(metadata=marked, status={"serverID": None})
    over = annotated(unseen(waiting, ErrorType.INVALID, "no such flavor"), NOW)
    begun = machine(metadata=merge(marked, over["metadata"]), status={"serverID": None})
    assert health_of(begun, NOW + timedelta(minutes=11)).state is HealthState.MARKED


@pytest.mark.parametrize("server", ["s", None])
def test_only_a_machine_without_a_server_records_an_outage(server: str | None) -> None:
    of = machine(**FINALIZED_MACHINE, status={"serverID": server})
    for code in (BUSY, WORKER_SHUTDOWN, AREA_PAUSED):
        assert annotated(unseen(of, ErrorType.THROTTLED, "a limit of this process", code), NOW) == {}
    assert bool(annotated(unseen(of, ErrorType.UNAVAILABLE, OUTAGE.why), NOW)) is (server is None)


@pytest.mark.parametrize(
    ("type_", "code", "pauses"),
    [
        (ErrorType.UNAVAILABLE, "", [1, 2, 4, 8, 16, 32, 60, 60]),
        (ErrorType.THROTTLED, OVER_QUOTA, [10, 20, 40, 80, 160, 300]),
        (ErrorType.CONFLICT, "", [3, 6, 12, 24, 30, 30]),
        (ErrorType.DENIED, "", [15, 30, 60, 120, 240, 480, 600, 600]),
    ],
)
def test_a_refused_step_is_tried_again_after_the_pauses_of_its_hindrance(
    type_: ErrorType, code: str, pauses: list[int]
) -> None:
    step = CreatePort(name="p", description="", network_id="n", security_groups=())
    world = machine_world(machine(**FINALIZED_MACHINE), balancer(), MachineCloud())
    for number, pause in enumerate(pauses, 1):
        world = step.refuse(world, Refusal(type=type_, message="no", code=code, at=NOW, attempts=number))
        assert world.refusals[step.slot].retry_at == NOW + timedelta(seconds=pause)
    assert world.stale


def test_after_a_failed_step_the_cloud_is_observed_when_its_pause_is_over() -> None:
    fresh = machine(**FINALIZED_MACHINE, status={"serverID": None})
    virtual = CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),))
    world = machine_world(fresh, balancer(), MachineCloud(virtual_port=virtual))
    (step,) = decide_machine(world, NOW).actions
    lost = step.refuse(world, Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW))
    assert step in decide_machine(lost, NOW).actions, "it waits for its pause"
    again = machine_world(fresh, balancer()).learn(settled="").recall(lost)
    assert [type(each) for each in decide_machine(again, NOW).actions if each.slot != "kube.write"] == [LookAtMachine]


def test_objects_that_a_cancelled_step_may_have_left_are_searched_at_once() -> None:
    going = machine(metadata={**FINALIZED_MACHINE["metadata"], **DELETED}, status={"serverID": None})
    world = machine_world(going, None, MachineCloud())
    assert [type(each) for each in decide_machine(world, NOW).actions] == [RevokeAccess]
    step = CreatePort(name="p", description="", network_id="n", security_groups=())
    lost = step.refuse(world, Refusal(type=ErrorType.UNAVAILABLE, message="no answer", at=NOW))
    assert [type(each) for each in decide_machine(lost, NOW).actions] == [LookAtMachine]


# --- a machine that goes ---

DELETED = {"deletionTimestamp": "2026-05-01T12:00:00Z"}


def leaving(**status: object) -> LoadBalancerMachine:
    return machine(metadata={**FINALIZED_MACHINE["metadata"], **DELETED}, status=status)


def test_a_deleted_machine_loses_its_recorded_server_before_any_observation() -> None:
    going = leaving(serverID="s")
    world = machine_world(going).learn(settled="")
    (requested,) = decide_machine(world, NOW).actions
    assert isinstance(requested, DeleteServer)
    assert (requested.id, requested.asked) == ("s", False)
    gone = requested.fold(world, Brought(gone="s"))
    (look,) = decide_machine(gone, NOW).actions
    assert isinstance(look, LookAtMachine)
    assert look.machine.status.server_id is None, "it is not asked for by its id again"
    port = CloudPort(id="p", description=mark_of(going.metadata.uid))
    seen = look.fold(gone, SeenMachine(cloud=MachineCloud(ports=(port,)), at=NOW))
    (freed,) = decide_machine(seen, NOW).actions
    assert isinstance(freed, DeletePort)
    free = freed.fold(seen, Brought(gone="p"))
    (revoke,) = decide_machine(free, NOW).actions
    assert isinstance(revoke, RevokeAccess)
    (drop,) = decide_machine(revoke.fold(free, None), NOW).actions
    assert isinstance(drop, DropFinalizer)
    assert drop.patch == {"metadata": {"finalizers": []}}


def test_a_server_on_its_way_out_is_only_waited_for() -> None:
    going = leaving(serverID=None)
    server = Server(id="s", name=going.metadata.name, status="ACTIVE", deleting=True)
    (requested,) = decide_machine(machine_world(going, None, MachineCloud(servers=(server,))), NOW).actions
    assert isinstance(requested, DeleteServer)
    assert requested.asked


def test_a_machine_that_cannot_be_observed_keeps_its_finalizer() -> None:
    world = machine_world(leaving(serverID=None)).learn(settled="")
    for type_ in (ErrorType.UNAVAILABLE, ErrorType.DENIED, ErrorType.PENDING):
        blocked = refused(world, (LookAtMachine, type_, "no", ""))
        wanted = {type(each) for each in decide_machine(blocked, NOW).actions}
        assert LookAtMachine in wanted
        assert not wanted & {RevokeAccess, DropFinalizer}


def test_a_server_that_takes_long_to_delete_is_reported_after_ten_minutes() -> None:
    world = machine_world(leaving(serverID="s"))
    began = parse_timestamp(DELETED["deletionTimestamp"])
    assert began is not None
    decision = decide_machine(world, NOW)
    assert (decision.deadline, decision.at_deadline) == (
        began + timedelta(minutes=10),
        "report that the deletion takes long",
    )
    (reported,) = decide_machine(world, began + timedelta(minutes=10)).notices
    assert reported.about is None
    assert reported.message == "delete server s; this has lasted for more than ten minutes"


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
def test_a_change_that_does_not_concern_the_cloud_asks_for_no_observation(change: dict[str, object]) -> None:
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
def test_a_change_that_concerns_the_cloud_asks_for_an_observation(change: dict[str, object]) -> None:
    assert look_of_balancer(balancer(**change)) != look_of_balancer(balancer())


def test_a_change_of_ports_observes_the_security_group_alone() -> None:
    less = balancer(spec={"ports": []})
    assert look_of_balancer(less) == look_of_balancer(balancer())
    assert look_of_rules(less) != look_of_rules(balancer())


def test_a_machine_is_observed_for_its_group_and_not_for_its_reports() -> None:
    from lb_objects import healthy

    its, other = ServedBalancer.of(balancer()), ServedBalancer.of(balancer(status={"securityGroupID": "sg-2"}))
    assert look_of_machine(machine(conditions=healthy()), its) == look_of_machine(machine(), its)
    assert look_of_machine(machine(), other) != look_of_machine(machine(), its)
