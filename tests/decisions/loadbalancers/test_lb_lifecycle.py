"""Whole lives of load balancers on paper: everything comes to be once, changes, heals, and goes without a trace."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from lb_objects import (
    INFRASTRUCTURE,
    NOW,
    ago,
    balancer,
    balancer_world,
    healthy,
    machine,
    machine_set,
    machine_world,
    refusal,
    set_world,
)
from lb_project import Project
from lb_world import MINUTE, SPEC, World, started

from domain.decision import Action
from domain.loadbalancers.balancer_lifecycle import Phase, decide_balancer
from domain.loadbalancers.balancer_world import CreateSet, DeleteSets, LookAtBalancer, SeenBalancer
from domain.loadbalancers.cloud.drift_sweep import to_be_compared
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.cloud.objects import CloudPort, FixedIp, LoadBalancerCloud, MachineCloud
from domain.loadbalancers.cloud.observation_due import look_of_balancer
from domain.loadbalancers.cloud.ownership import mark_of
from domain.loadbalancers.cloud.steps import CreatePort, CreateServer, DeletePort, Look
from domain.loadbalancers.cloud.world import LEAVING
from domain.loadbalancers.machine.api_access import SECRET_GONE, access_status
from domain.loadbalancers.machine.lifecycle import MachinePhase, decide_machine
from domain.loadbalancers.machine.world import GrantAccess, LookAtMachine, RevokeAccess, SeenMachine
from domain.loadbalancers.machine_health import is_master
from domain.loadbalancers.patches import combined
from domain.loadbalancers.project import ProjectReference
from domain.loadbalancers.resources import LoadBalancer, LoadBalancerMachine
from domain.loadbalancers.set_lifecycle import decide_set
from domain.loadbalancers.set_world import DeleteMachine, PatchMachine
from domain.loadbalancers.template_hash import template_hash
from domain.refusal import ErrorType
from domain.resource import timestamp
from domain.writes import DropFinalizer, Patch, merge


def phase(world: World) -> Phase:
    seen = balancer_world(world.balancer(), world.project.of_balancer(), world.sets())
    return Phase(decide_balancer(seen, world.now).phase)


def counts(world: World) -> dict[str, int]:
    """What the load balancer has in the project."""
    project = world.project
    kinds = ("groups", "ports", "floating", "server_groups", "servers")
    return {kind: len(getattr(project, kind)) for kind in kinds}


ALL = {"groups": 1, "ports": 3, "floating": 1, "server_groups": 1, "servers": 2}


def change(world: World, **spec: Any) -> None:
    world.objects["lb"]["web--shop"] = merge(world.objects["lb"]["web--shop"], {"spec": spec})  # type: ignore[assignment]


# --- to be ---


def test_a_load_balancer_comes_to_serve_with_one_of_each() -> None:
    world = started()
    assert phase(world) is Phase.READY
    assert counts(world) == ALL
    (only,) = world.sets()
    assert only.template_hash == template_hash(world.balancer())
    assert [each.revision for each in world.machines()] == ["1", "1"]
    status = world.balancer().status
    assert (status.replicas, status.ready_replicas) == (2, 2)
    assert all(each.status.creation_timestamp and each.status.last_openstack_reconcile for each in world.machines())


def test_a_settled_load_balancer_is_left_alone() -> None:
    world = started()
    writes, calls = world.writes, len(world.project.calls)
    world.run(60 * MINUTE)
    assert (world.writes, len(world.project.calls)) == (writes, calls)


def test_the_cloud_is_asked_for_no_more_than_is_made() -> None:
    world = started(replicas=1, options={"serverGroupPolicy": ""})
    assert world.project.calls == [
        "CreateSecurityGroup",
        "ChangeRules",
        "CreatePort",
        "CreateFloatingIp",
        "CreatePort",
        "CreateServer",
    ]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_writes_are_lost_nothing_is_made_twice(seed: int) -> None:
    dice = random.Random(seed)
    world = World(SPEC)
    world.lose = lambda what: dice.random() < 0.4
    for _ in range(60):
        world.round()
        world.now += timedelta(seconds=2)
        world.nova()
    world.lose = lambda what: False
    world.run(6 * MINUTE)
    assert (phase(world), counts(world)) == (Phase.READY, ALL)


def test_a_status_that_was_blanked_comes_back_as_it_was() -> None:
    world = started()
    before, calls = world.balancer().status, len(world.project.calls)
    world.objects["lb"]["web--shop"]["status"] = {}
    world.settle()
    after = world.balancer().status
    assert after.model_copy(update={"last_openstack_reconcile": None}) == before.model_copy(
        update={"last_openstack_reconcile": None}
    )
    assert len(world.project.calls) == calls
    assert counts(world) == ALL


def test_a_blanked_timestamp_requests_an_observation_and_is_written_again() -> None:
    """How people have the cloud looked at; the sweep leaves out who has never had everything."""
    world = started()
    observed, calls = look_of_balancer(world.balancer()), len(world.project.calls)
    for kind in ("lb", "lbm"):
        for body in world.objects[kind].values():
            del body["status"]["lastOpenstackReconcile"]
    assert look_of_balancer(world.balancer()) != observed
    world.settle()
    objects: list[LoadBalancer | LoadBalancerMachine] = [world.balancer(), *world.machines()]
    assert [each.status.last_openstack_reconcile for each in objects] == [timestamp(world.now)] * 3
    assert all(to_be_compared(each) for each in objects)
    assert len(world.project.calls) == calls


# --- to change ---


def test_a_new_port_costs_one_call_and_no_machine() -> None:
    world = started()
    made, calls = list(world.made), len(world.project.calls)
    change(world, ports=[*SPEC["ports"], {"protocol": "UDP", "port": 53, "nodePort": 30053}])
    world.run(MINUTE)
    assert world.project.calls[calls:] == ["ChangeRules"]
    assert world.made == made


def test_a_new_image_replaces_all_machines_without_a_gap() -> None:
    world = started()
    old = {each.metadata.name for each in world.machines()}
    change(world, infrastructure={"image": {"imageID": "alpine-2"}})
    serving = []
    for _ in range(40):
        world.run(timedelta(seconds=15))
        serving.append(sum(bool(each.status.conditions) for each in world.machines()))
    assert min(serving) == 2
    assert len(world.machines()) == 2
    assert not old & {each.metadata.name for each in world.machines()}
    assert (phase(world), counts(world)) == (Phase.READY, ALL)
    assert {each.revision for each in world.machines()} == {"2"} == {world.balancer().revision}


def test_a_new_policy_makes_machines_of_the_new_server_group_only() -> None:
    world = started()
    change(world, options={"serverGroupPolicy": "affinity"})
    world.run(8 * MINUTE)
    (group,) = world.project.server_groups.values()
    assert (phase(world), counts(world), group.policy) == (Phase.READY, ALL, "affinity")
    assert {each.spec.server_group_id for each in world.machines()} == {group.id}
    assert world.made.count("lbm") == 4


def test_former_names_make_no_second_set() -> None:
    world = World(merge(SPEC, {"infrastructure": {"flavor": {"flavor_id": "small", "flavorID": None}}}))  # type: ignore[arg-type]
    world.run(5 * MINUTE)
    assert (phase(world), world.made.count("lbs")) == (Phase.READY, 1)
    assert world.balancer().spec.infrastructure.flavor.id == "small"
    # Also while the write that brings today's names has not arrived.
    former = {"spec": {"infrastructure": {"flavor": {"flavor_id": "small", "flavorID": None}}}}
    world.objects["lb"]["web--shop"] = merge(world.objects["lb"]["web--shop"], former)  # type: ignore[assignment]
    decision = decide_balancer(balancer_world(world.balancer(), world.project.of_balancer(), world.sets()), world.now)
    (write,) = decision.actions
    assert isinstance(write, Patch)
    assert write.patch == {"spec": {"infrastructure": {"flavor": {"flavor_id": None, "flavorID": "small"}}}}


def test_going_back_takes_the_old_set_with_a_new_revision() -> None:
    world = started()
    change(world, infrastructure={"image": {"imageID": "alpine-2"}})
    world.run(8 * MINUTE)
    change(world, infrastructure={"image": {"imageID": "alpine"}})
    world.run(8 * MINUTE)
    assert len(world.sets()) == 2
    assert (phase(world), counts(world)) == (Phase.READY, ALL)
    assert {each.revision for each in world.machines()} == {"3"} == {world.balancer().revision}
    assert sum(map(is_master, world.machines())) == 1


def test_a_late_rollback_keeps_the_serving_set_until_a_new_machine_is_master(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That none of the old set held the address while it was empty says nothing of its new machines."""
    world = started()
    change(world, infrastructure={"image": {"imageID": "alpine-2"}})
    world.run(20 * MINUTE)
    serving = {each.metadata.name: is_master(each) for each in world.machines()}
    (holder,) = (name for name, master in serving.items() if master)
    monkeypatch.setattr(world, "master", lambda: holder)  # the election lasts
    change(world, infrastructure={"image": {"imageID": "alpine"}})
    world.run(8 * MINUTE)
    assert len(world.machines()) == 4
    assert serving.keys() < {each.metadata.name for each in world.machines()}
    monkeypatch.undo()
    world.run(MINUTE)
    assert len(world.machines()) == 4
    world.run(3 * MINUTE)
    assert not serving.keys() & {each.metadata.name for each in world.machines()}
    assert (phase(world), counts(world)) == (Phase.READY, ALL)


def test_three_templates_in_a_row_end_with_the_last_one_only() -> None:
    world = started()
    for image in ("alpine-2", "alpine-3", "alpine-4"):
        change(world, infrastructure={"image": {"imageID": image}})
        world.run(timedelta(seconds=30))
        assert len(world.machines()) <= 6
    world.run(10 * MINUTE)
    assert (phase(world), counts(world)) == (Phase.READY, ALL)
    assert {each.spec.infrastructure.image.id for each in world.machines()} == {"alpine-4"}


@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_replicas_are_followed_up_and_down(replicas: int) -> None:
    world = started()
    change(world, replicas=replicas)
    world.run(5 * MINUTE)
    assert (len(world.machines()), len(world.project.servers)) == (replicas, replicas)
    assert phase(world) is Phase.READY


def test_a_network_that_cannot_change_costs_no_machine() -> None:
    world = started()
    made = list(world.made)
    change(world, infrastructure={"defaultNetwork": {"networkID": "other"}})
    world.run(20 * MINUTE)
    assert (world.made, phase(world), counts(world)) == (made, Phase.WAITING, ALL)
    change(world, infrastructure={"defaultNetwork": {"networkID": "net"}})
    world.run(MINUTE)
    assert (world.made, phase(world)) == (made, Phase.READY)


@pytest.mark.parametrize("other", [{"projectID": "other"}, {"authSecretRef": {"name": "other"}}])
def test_another_project_costs_no_object_and_is_reported(other: dict[str, object]) -> None:
    world = started()
    made, home = list(world.made), world.project
    change(world, infrastructure=other)
    world.project = Project()
    world.settle()
    assert (world.made, phase(world), world.project.calls) == (made, Phase.WAITING, [])
    (stalled,) = world.balancer().status.conditions
    assert stalled.message.startswith(f"port {world.balancer().status.port_id} is not in the project")
    assert stalled.message in world.events
    change(world, infrastructure=dict.fromkeys(other) | {"authSecretRef": INFRASTRUCTURE["authSecretRef"]})
    world.project = home
    world.run(MINUTE)
    assert (world.made, phase(world), counts(world)) == (made, Phase.READY, ALL)


def test_a_project_that_is_only_written_otherwise_is_accepted() -> None:
    world = started()
    change(world, infrastructure={"projectID": "the one of the Secret"})
    world.run(8 * MINUTE)
    assert (phase(world), counts(world), len(world.sets())) == (Phase.READY, ALL, 2)


def test_another_project_is_looked_at_again_because_its_secret_may_be_corrected() -> None:
    moved = balancer(metadata=BALANCERS, spec={"infrastructure": {"authSecretRef": {"name": "other"}}})
    world = balancer_world(moved, sets=[machine_set()]).with_cloud(LoadBalancerCloud(), NOW)
    waits = decide_balancer(world, NOW)
    assert (waits.phase, waits.deadline) == (Phase.WAITING, NOW + timedelta(seconds=15))
    assert isinstance(decide_balancer(balancer_world(moved, sets=[machine_set()]).recall(world), NOW).actions[-1], Look)


def test_a_deleted_port_is_created_again_although_other_credentials_are_named() -> None:
    world = started()
    change(world, infrastructure={"authSecretRef": {"name": "renewed"}})
    port = world.balancer().status.port_id
    del world.project.ports[port or ""]
    for _ in range(5):
        world.round()
    assert world.balancer().status.port_id not in (port, None)
    assert phase(world) is Phase.ROLLING_OUT


@pytest.mark.parametrize("other", [{"projectID": "other"}, {"authSecretRef": {"name": "other"}}])
def test_a_load_balancer_with_another_project_is_deleted_in_its_own(other: dict[str, object]) -> None:
    world = started()
    change(world, infrastructure=other)
    world.delete("lb", "web--shop")
    world.settle()
    assert (world.objects, world.project.left) == ({"lb": {}, "lbs": {}, "lbm": {}}, [])
    moved = balancer(metadata={**BALANCERS, "deletionTimestamp": ago(minutes=1)}, spec={"infrastructure": other})
    (write,) = decide_balancer(balancer_world(moved, sets=[machine_set()]), NOW).actions
    assert isinstance(write, Patch)
    former = {"projectID": None, "authSecretRef": {"name": "cloud"}}
    assert write.patch == {"spec": {"infrastructure": {field: former[field] for field in other}}}


# --- to heal ---


def test_a_machine_that_a_person_deletes_is_replaced() -> None:
    world = started()
    gone = world.machines()[0].metadata.name
    world.delete("lbm", gone)
    world.run(5 * MINUTE)
    assert world.made.count("lbm") == 3
    assert (phase(world), counts(world)) == (Phase.READY, ALL)


def test_a_server_that_disappears_is_replaced_with_its_machine() -> None:
    world = started()
    lost = world.machines()[0]
    del world.project.servers[str(lost.status.server_id)]
    world.run(5 * MINUTE)
    assert lost.metadata.uid not in {each.metadata.uid for each in world.machines()}
    assert (phase(world), counts(world)) == (Phase.READY, ALL)


def test_a_machine_that_falls_silent_is_replaced_after_five_minutes() -> None:
    world = started()
    silent = world.machines()[0]
    server = world.project.servers[str(silent.status.server_id)]
    world.project.servers[server.id] = server.model_copy(update={"status": "SHUTOFF"})
    world.run(4 * MINUTE)
    assert silent.metadata.uid in {each.metadata.uid for each in world.machines()}
    world.run(5 * MINUTE)
    assert silent.metadata.uid not in {each.metadata.uid for each in world.machines()}
    assert (phase(world), counts(world)) == (Phase.READY, ALL)


def test_machines_that_never_boot_are_made_more_and_more_seldom() -> None:
    world = World(merge(SPEC, {"replicas": 1}))  # type: ignore[arg-type]
    world.boots_in = None
    world.run(180 * MINUTE)
    # 12 minutes for each and pauses of 0, 1, 2, 4, 8, 16 and 30 minutes: the ninth would be made after 187.
    assert world.made.count("lbm") == 8
    assert counts(world)["servers"] <= 1
    world.boots_in = MINUTE
    world.run(45 * MINUTE)
    assert phase(world) is Phase.READY
    (only,) = world.sets()
    assert "perdure.dev/boot-failures" not in only.metadata.annotations


def test_when_all_reports_stop_and_come_back_no_machine_is_lost() -> None:
    world = started()
    names = {each.metadata.name for each in world.machines()}
    booted, world.boots_in = world.boots_in, None
    world.run(30 * MINUTE)
    assert names <= {each.metadata.name for each in world.machines()}
    assert len(world.machines()) <= 3
    world.boots_in = booted
    world.run(10 * MINUTE)
    assert (phase(world), len(world.machines())) == (Phase.READY, 2)


# --- to go ---


def test_a_deleted_load_balancer_leaves_nothing_behind() -> None:
    world = started()
    world.delete("lb", "web--shop")
    world.settle()
    assert world.objects == {"lb": {}, "lbs": {}, "lbm": {}}
    assert world.project.left == []
    # Kubernetes itself takes the Secret away with its ServiceAccount.
    assert all(left <= {"Secret"} for left in world.rights.values())
    order = world.project.calls[-8:]
    assert order.index("DeleteServerGroup") > max(i for i, call in enumerate(order) if call == "DeleteServer")
    assert order[-1] == "DeleteSecurityGroup"


@pytest.mark.parametrize("rounds", range(1, 12))
def test_a_load_balancer_deleted_at_any_moment_leaves_nothing_behind(rounds: int) -> None:
    world = World(SPEC)
    for _ in range(rounds):
        world.round()
    world.delete("lb", "web--shop")
    world.settle()
    assert (world.objects, world.project.left) == ({"lb": {}, "lbs": {}, "lbm": {}}, [])


# --- single looks ---


def test_the_finalizer_comes_before_the_first_step() -> None:
    bare = balancer(
        metadata={"finalizers": None}, spec={"infrastructure": {"flavor": {"flavor_id": "f", "flavorID": None}}}
    )
    new = decide_balancer(balancer_world(bare, LoadBalancerCloud()), NOW)
    (adopted,) = new.actions
    assert isinstance(adopted, Patch)
    assert (new.phase, adopted.patch["metadata"]) == (Phase.NEW, {"finalizers": ["yawol.stackit.cloud/controller2"]})
    assert "spec" in adopted.patch
    fresh = machine_world(machine(metadata={"finalizers": ["x"]}), balancer(), MachineCloud(), granted=False)
    first = decide_machine(fresh, NOW)
    (write,) = first.actions
    assert isinstance(write, Patch)
    assert (first.phase, write.patch) == (
        MachinePhase.NEW,
        {"metadata": {"finalizers": ["x", "yawol.stackit.cloud/controller4"]}},
    )
    adopted = decide_set(set_world(machine_set()), NOW)
    (write,) = adopted.actions
    assert isinstance(write, Patch)
    assert write.patch["metadata"] == {"finalizers": ["stackit.cloud/loadbalancermachine"]}
    create, status = adopted.planned
    assert create.startswith("create LoadBalancerMachine web--shop-aaaa-")
    assert status == "write its status"


BALANCERS = {"finalizers": ["yawol.stackit.cloud/controller2"]}
OURS = {"finalizers": ["yawol.stackit.cloud/controller4"]}
CLOUD = ProjectReference(namespace="lbs", secret="")

A = TypeVar("A", bound=Action)


def test_a_machine_whose_load_balancer_is_gone_waits() -> None:
    decision = decide_machine(machine_world(machine(metadata=OURS)), NOW)
    assert (decision.phase, decision.why) == (MachinePhase.WAITING, "LoadBalancer lbs/web--shop does not exist")
    assert decision.actions == ()


def of(actions: Iterable[Action], kind: type[A]) -> list[A]:
    return [each for each in actions if isinstance(each, kind)]


def test_a_machine_whose_server_is_lost_is_given_up() -> None:
    lost = decide_machine(machine_world(machine(metadata=OURS), balancer(), MachineCloud()), NOW)
    assert lost.phase == MachinePhase.GIVEN_UP
    (notice,) = lost.notices
    assert notice.message == lost.why == "its server does not exist any more"


def test_a_machine_gets_its_rights_beside_its_port_and_names_them_afterwards() -> None:
    fresh = machine(metadata=OURS, status={"serverID": None})
    seen = MachineCloud(virtual_port=CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),)))
    before = decide_machine(machine_world(fresh, balancer(), seen, granted=False), NOW)
    assert [type(each) for each in before.actions] == [GrantAccess, CreatePort]
    (grant,) = of(before.actions, GrantAccess)
    assert [each["kind"] for each in grant.objects] == ["ServiceAccount", "Secret", "Role", "RoleBinding"]
    there = machine_world(machine(metadata=OURS), balancer())
    (write,) = of(decide_machine(there, NOW).actions, Patch)
    assert set(write.patch["status"]) == {"serviceAccountName", "serviceAccountSecretName", "roleName"}  # type: ignore[call-overload]


def test_a_server_is_made_only_for_a_machine_with_rights() -> None:
    fresh = machine(metadata=OURS, status={"serverID": None})
    virtual = CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),))
    own = CloudPort(
        id="own", description=mark_of(fresh.metadata.uid), security_groups=("sg-1",), allowed_addresses=("10.1.0.5",)
    )
    seen = MachineCloud(ports=(own,), virtual_port=virtual)
    without = decide_machine(machine_world(fresh, balancer(), seen, granted=False), NOW)
    assert [type(each) for each in without.actions] == [GrantAccess]
    (create,) = decide_machine(machine_world(fresh, balancer(), seen), NOW).actions
    assert isinstance(create, CreateServer)
    assert (create.port_id, create.virtual_address, create.project) == ("own", "10.1.0.5", CLOUD)


@pytest.mark.parametrize("named", [False, True])
def test_a_secret_that_is_gone_before_the_server_exists_is_created_again(named: bool) -> None:
    fresh = machine(metadata=OURS, status={"serverID": None})
    if named:
        fresh = LoadBalancerMachine.model_validate(merge(fresh.model_dump(mode="json"), access_status(fresh)))
    own = CloudPort(
        id="own", description=mark_of(fresh.metadata.uid), security_groups=("sg-1",), allowed_addresses=("10.1.0.5",)
    )
    virtual = CloudPort(id="port-1", fixed_ips=(FixedIp(address="10.1.0.5"),))
    world = machine_world(fresh, balancer(), MachineCloud(ports=(own,), virtual_port=virtual))
    (create,) = of(decide_machine(world, NOW).actions, CreateServer)
    refused = create.refuse(world, refusal(ErrorType.ABSENT, "no Secret", SECRET_GONE))
    (grant,) = of(decide_machine(refused, NOW).actions, GrantAccess)
    assert of(decide_machine(grant.fold(refused, None), NOW).actions, GrantAccess) == []


def test_a_machine_is_looked_for_in_the_cloud_when_it_is_not_what_it_was() -> None:
    settled = machine_world(machine(metadata=OURS), balancer())
    assert of(decide_machine(settled, NOW).actions, LookAtMachine) == []
    drifted = machine(metadata={**OURS, "annotations": {"perdure.dev/drift-seen-at": "2026-05-01T11:59:00Z"}})
    changed = settled.model_copy(update={"machine": drifted})
    (look,) = of(decide_machine(changed, NOW).actions, LookAtMachine)
    assert look.reads
    ended = changed.brought(Brought())
    assert look.fold(ended, SeenMachine(cloud=MachineCloud(), at=NOW)) == ended, "a step has ended meanwhile"
    assert look.fold(changed, SeenMachine(cloud=MachineCloud(), at=NOW)).cloud == MachineCloud()


def test_a_frozen_rollout_is_reported() -> None:
    odd = {"metadata": {"annotations": {"loadbalancer.yawol.stackit.cloud/revision": "newest"}, **BALANCERS}}
    decision = decide_balancer(balancer_world(balancer(**odd)), NOW)
    assert of(decision.actions, CreateSet) == []
    assert [(each.type, each.message) for each in decision.notices] == [("Warning", decision.why)]
    assert "not a revision" in decision.why
    assert decide_balancer(balancer_world(balancer(metadata=BALANCERS)), NOW).notices == ()


def test_a_machine_that_cannot_get_its_server_is_reported() -> None:
    fresh = machine(metadata=OURS, status={"serverID": None})
    world = machine_world(fresh, balancer(), MachineCloud())
    decision = decide_machine(world, NOW)
    (notice,) = decision.notices
    assert (notice.type, notice.message, notice.each_time) == ("Warning", decision.why, False)
    assert notice.about is not None
    assert notice.about.kind == "LoadBalancer"
    assert "port-1 with the virtual address does not exist" in decision.why
    assert decision.deadline == NOW + timedelta(seconds=15)


def test_a_machine_whose_rights_are_refused_says_so_and_is_reported() -> None:
    fresh = machine(metadata=OURS, status={"serverID": None})
    refused = refusal(ErrorType.DENIED, "create Role lbs/a: attempting to grant permissions not currently held")
    world = machine_world(fresh, balancer(), granted=False)
    decision = decide_machine(world.model_copy(update={"refusals": {GrantAccess.activity: refused}}), NOW)
    assert (decision.phase, decision.why) == ("Waiting", refused.message)
    assert [type(each) for each in decision.actions] == [GrantAccess]
    assert [(each.message, each.about and each.about.kind) for each in decision.notices] == [
        (refused.message, "LoadBalancer")
    ]


def test_a_machine_whose_rights_cannot_be_deleted_says_so_and_is_reported() -> None:
    leaving = machine(metadata={**OURS, "deletionTimestamp": ago(minutes=1)}, status={"serverID": None})
    refused = refusal(ErrorType.DENIED, "delete ServiceAccount lbs/a: a policy protects it")
    world = machine_world(leaving).learn(settled=LEAVING)
    decision = decide_machine(world.model_copy(update={"refusals": {RevokeAccess.activity: refused}}), NOW)
    assert (decision.phase, decision.why) == ("Deleting", refused.message)
    assert [type(each) for each in decision.actions] == [RevokeAccess]
    assert [each.message for each in decision.notices] == [refused.message]


def test_a_deleted_load_balancer_whose_set_cannot_be_deleted_says_so_and_is_reported() -> None:
    refused = refusal(ErrorType.DENIED, "delete LoadBalancerSet lbs/a: a policy protects it")
    finalizers = ["yawol.stackit.cloud/controller2"]
    leaving = balancer(metadata={"finalizers": finalizers, "deletionTimestamp": ago(minutes=1)})
    world = balancer_world(leaving, sets=[machine_set("a")])
    decision = decide_balancer(world.model_copy(update={"refusals": {DeleteSets.activity: refused}}), NOW)
    assert (decision.phase, decision.why) == ("Deleting", refused.message)
    assert [type(each) for each in decision.actions] == [DeleteSets]
    assert [each.message for each in decision.notices] == [refused.message]


def test_a_machine_that_goes_is_not_written_before() -> None:
    two = (machine("a", healthy()), machine("b", healthy()))
    revised = {"loadbalancer.yawol.stackit.cloud/revision": "2"}
    newer = machine_set(metadata={"annotations": revised, "finalizers": ["stackit.cloud/loadbalancermachine"]})
    actions = decide_set(set_world(newer, *two), NOW).actions
    assert [each.name for each in of(actions, DeleteMachine)] == ["a"]
    assert [each.name for each in of(actions, PatchMachine)] == ["b"]


def test_an_object_that_released_everything_asks_for_nothing() -> None:
    deleting = {"deletionTimestamp": "2026-05-01T11:00:00Z"}
    let_go = decide_balancer(balancer_world(balancer(metadata=deleting), LoadBalancerCloud()), NOW)
    assert (let_go.gone, let_go.actions) == (True, ())
    released = decide_machine(machine_world(machine(metadata=deleting)), NOW)
    assert (released.gone, released.actions) == (True, ())
    gone = decide_set(set_world(machine_set(metadata=deleting), machine()), NOW)
    assert (gone.gone, gone.actions) == (True, ())


def test_patches_are_combined_with_their_nulls() -> None:
    assert combined({"a": {"b": 1, "c": None}}, {"a": {"b": None, "d": 2}}, {}) == {"a": {"b": None, "c": None, "d": 2}}
    assert combined({"a": 1}, {"a": {"b": 1}}) == {"a": {"b": 1}}


LOST = refusal(ErrorType.UNAVAILABLE, "no answer")
GOING = {"deletionTimestamp": ago(minutes=1)}
CREATION = CreatePort(name="p", description="d", network_id="n", security_groups=())


def test_a_creation_without_an_answer_is_looked_for_before_a_load_balancer_goes() -> None:
    world = balancer_world(balancer(metadata={**BALANCERS, **GOING}, status=None), LoadBalancerCloud())
    world = CREATION.refuse(world, LOST).with_cloud(LoadBalancerCloud(), NOW)
    waits = decide_balancer(world, NOW)
    assert (waits.phase, waits.actions, waits.deadline) == (Phase.DELETING, (), NOW + MINUTE)
    (look,) = decide_balancer(world, NOW + MINUTE).actions
    late = LoadBalancerCloud(ports=(CloudPort(id="late", description=mark_of("lb-uid")),))
    found = look.fold(world, SeenBalancer(cloud=late, at=NOW + MINUTE))
    assert [type(each) for each in decide_balancer(found, NOW + MINUTE).actions] == [DeletePort]
    gone = look.fold(world, SeenBalancer(cloud=LoadBalancerCloud(), at=NOW + MINUTE))
    assert [type(each) for each in decide_balancer(gone, NOW + MINUTE).actions] == [DropFinalizer]


def test_a_creation_without_an_answer_is_looked_for_before_a_machine_goes() -> None:
    leaving = machine(metadata={**OURS, **GOING}, status={"serverID": None})
    world = machine_world(leaving, cloud=MachineCloud(), granted=False)
    world = CREATION.refuse(world, LOST).with_cloud(MachineCloud(), NOW)
    waits = decide_machine(world, NOW)
    assert (waits.phase, waits.actions, waits.deadline) == (MachinePhase.DELETING, (), NOW + MINUTE)
    (look,) = decide_machine(world, NOW + MINUTE).actions
    found = look.fold(world, SeenMachine(cloud=MachineCloud(), at=NOW + MINUTE))
    assert [type(each) for each in decide_machine(found, NOW + MINUTE).actions] == [RevokeAccess]


@pytest.mark.parametrize("code", ["serviceUnavailable", "HTTP 503"])
def test_no_deletion_waits_for_a_creation_that_openstack_has_not_begun(code: str) -> None:
    leaving = machine_world(machine(metadata={**OURS, **GOING}, status={"serverID": None}), granted=False)
    world = CREATION.refuse(leaving, LOST.model_copy(update={"code": code})).with_cloud(MachineCloud(), NOW)
    assert [type(each) for each in decide_machine(world, NOW).actions] == [RevokeAccess]


def test_a_cancelled_step_may_have_taken_effect() -> None:
    world = CREATION.cancelled(balancer_world(balancer(metadata=BALANCERS), LoadBalancerCloud()))
    (look,) = decide_balancer(world, NOW).actions
    assert isinstance(look, LookAtBalancer)


def test_an_observation_for_a_deletion_counts_although_the_cloud_has_a_problem() -> None:
    leaving = machine_world(machine(metadata={**OURS, **GOING}), granted=False)
    seen = leaving.learn(blocked_since=NOW).with_cloud(MachineCloud(), NOW)
    assert leaving.recall(seen).current is not None
