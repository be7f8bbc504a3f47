"""What load balancers lack in the cloud, whose things are whose, and the way out."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import NOW, balancer
from lb_project import Project

from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.load_balancer import CloudPlan, plan_cloud, released_status
from domain.loadbalancers.cloud.objects import CloudPort, FixedIp, FloatingIp, SecurityGroup, ServerGroup
from domain.loadbalancers.cloud.ownership import mark_of
from domain.loadbalancers.former_fields import migrated
from domain.loadbalancers.resources import LoadBalancer
from domain.loadbalancers.template_hash import cloud_hash
from domain.resource import timestamp
from domain.writes import merge

NAME = "lbs/web--shop"
NOTHING = dict.fromkeys(
    (
        "floatingID",
        "floatingName",
        "externalIP",
        "portID",
        "portName",
        "portIP",
        "securityGroupID",
        "securityGroupName",
    )
)


def fresh(**spec: Any) -> LoadBalancer:
    """A LoadBalancer that has nothing yet."""
    return balancer(status=NOTHING, spec=spec)


def written(of: LoadBalancer, plan: CloudPlan) -> LoadBalancer:
    return LoadBalancer.model_validate(merge(of.model_dump(mode="json"), plan.status))


def settle(of: LoadBalancer, project: Project) -> tuple[LoadBalancer, CloudPlan]:
    """Carry out plans until nothing is left to do."""
    for _ in range(10):
        plan = plan_cloud(of, project.of_balancer(), NOW)
        of = written(of, plan)
        if not plan.steps:
            return of, plan
        project.carry_out(plan.steps)
    raise AssertionError("it does not settle")


def taken_over() -> tuple[LoadBalancer, Project]:
    """A load balancer as yawol leaves it: no marks, all ids recorded."""
    project = Project()
    of, _ = settle(fresh(), project)
    for group in project.groups.values():
        project.groups[group.id] = group.model_copy(update={"description": ""})
    for port in project.ports.values():
        project.ports[port.id] = port.model_copy(update={"description": ""})
    return of, project


# --- from nothing ---


def test_from_nothing_to_everything_in_four_calls() -> None:
    project = Project()
    of, plan = settle(fresh(), project)
    assert project.calls == ["CreateSecurityGroup", "ChangeRules", "CreatePort", "CreateFloatingIp"]
    (port,) = project.ports.values()
    (group,) = project.groups.values()
    (floating,) = project.floating.values()
    assert plan.settled
    assert (port.name, port.network_id, port.security_groups) == (NAME, "net", (group.id,))
    assert (floating.description, floating.port_id) == (NAME, port.id)
    status = of.status
    assert (status.port_id, status.port_name, status.port_ip) == (port.id, NAME, port.address)
    assert (status.group_id, status.group_name) == (group.id, NAME)
    assert (status.floating_id, status.floating_name, status.external_ip) == (floating.id, NAME, floating.address)
    assert (status.openstack_reconcile_hash, status.last_openstack_reconcile) == (cloud_hash(of), timestamp(NOW))


def test_a_settled_load_balancer_needs_nothing_and_no_write() -> None:
    project = Project()
    of, _ = settle(fresh(), project)
    assert plan_cloud(of, project.of_balancer(), NOW) == CloudPlan(settled=True)


def test_a_foreign_group_that_is_answered_without_an_id_is_not_adopted() -> None:
    project = Project()
    project.groups[""] = SecurityGroup(id="", name=NAME, description=mark_of("another"))
    plan = plan_cloud(fresh(), project.of_balancer(), NOW)
    assert "does not belong to this LoadBalancer" in plan.problem


def test_an_internal_load_balancer_has_no_floating_ip() -> None:
    project = Project()
    of, _ = settle(fresh(options={"internalLB": True}), project)
    assert not project.floating
    assert of.status.external_ip == of.status.port_ip
    assert of.status.floating_id is None


def test_a_policy_makes_a_server_group_before_any_machine() -> None:
    project = Project()
    first = plan_cloud(fresh(options={"serverGroupPolicy": "affinity"}), project.of_balancer(), NOW)
    assert not first.settled
    of, plan = settle(fresh(options={"serverGroupPolicy": "affinity"}), project)
    (group,) = project.server_groups.values()
    assert plan.settled
    assert (group.name, group.policy, of.status.server_group_id, of.status.server_group_name) == (
        NAME,
        "affinity",
        group.id,
        NAME,
    )


@pytest.mark.parametrize("lost", range(1, 5))
def test_whatever_write_of_the_status_is_lost_nothing_is_made_twice(lost: int) -> None:
    project, of = Project(), fresh(options={"serverGroupPolicy": "affinity"})
    for number in range(10):
        plan = plan_cloud(of, project.of_balancer(), NOW)
        if number >= lost:
            of = written(of, plan)
        project.carry_out(plan.steps)
    kinds = (project.groups, project.ports, project.floating, project.server_groups)
    assert [len(each) for each in kinds] == [1, 1, 1, 1]
    assert plan_cloud(of, project.of_balancer(), NOW).settled


# --- drift ---


def test_a_load_balancer_that_is_taken_over_needs_no_call_at_all() -> None:
    of, project = taken_over()
    assert plan_cloud(of, project.of_balancer(), NOW).steps == ()


def test_the_security_groups_of_the_port_are_put_right() -> None:
    of, project = taken_over()
    (port,) = project.ports.values()
    project.ports[port.id] = port.model_copy(update={"security_groups": ("default", *port.security_groups)})
    settle(of, project)
    assert project.ports[port.id].security_groups == port.security_groups
    assert project.calls[-1] == "UpdatePort"


def test_a_floating_ip_that_leads_elsewhere_is_led_back() -> None:
    of, project = taken_over()
    (floating,) = project.floating.values()
    project.floating[floating.id] = floating.model_copy(update={"port_id": "somewhere"})
    settle(of, project)
    assert project.floating[floating.id] == floating


def test_a_floating_ip_that_is_gone_is_replaced_and_reported() -> None:
    """W24."""
    of, project = taken_over()
    project.floating.clear()
    plan = plan_cloud(of, project.of_balancer(), NOW)
    assert "does not exist any more" in plan.notices[0].message
    of, _ = settle(of, project)
    (floating,) = project.floating.values()
    assert of.status.floating_id == floating.id


def test_a_floating_ip_that_is_down_is_left_alone() -> None:
    of, project = taken_over()
    (floating,) = project.floating.values()
    project.floating[floating.id] = floating.model_copy(update={"status": "DOWN"})
    assert plan_cloud(of, project.of_balancer(), NOW).steps == ()


def test_the_address_stays_when_neutron_lists_those_of_the_port_in_another_order() -> None:
    project = Project()
    of, _ = settle(fresh(options={"internalLB": True}), project)
    (port,) = project.ports.values()
    other = FixedIp(address="fd00::5", subnet_id="sub6")
    project.ports[port.id] = port.model_copy(update={"fixed_ips": (other, *port.fixed_ips)})
    assert plan_cloud(of, project.of_balancer(), NOW) == CloudPlan(settled=True)
    project.ports[port.id] = port.model_copy(update={"fixed_ips": (other,)})
    of, _ = settle(of, project)
    assert (of.status.port_ip, of.status.external_ip) == ("fd00::5", "fd00::5")


@pytest.mark.parametrize("gone", ["groups", "ports"])
def test_an_object_deleted_outside_perdure_is_created_again(gone: str) -> None:
    of, project = taken_over()
    getattr(project, gone).clear()
    of, plan = settle(of, project)
    assert plan.settled
    assert len(getattr(project, gone)) == 1
    (port,) = project.ports.values()
    (floating,) = project.floating.values()
    assert (floating.port_id, of.status.port_id) == (port.id, port.id)


def test_a_changed_policy_replaces_the_server_group_and_keeps_its_name() -> None:
    """W11."""
    project = Project()
    of, _ = settle(fresh(options={"serverGroupPolicy": "affinity"}), project)
    changed = LoadBalancer.model_validate(
        merge(of.model_dump(mode="json"), {"spec": {"options": {"serverGroupPolicy": "anti-affinity"}}})
    )
    plan = plan_cloud(changed, project.of_balancer(), NOW)
    assert [type(step).__name__ for step in plan.steps] == ["DeleteServerGroup"]
    assert not plan.settled
    after, _ = settle(changed, project)
    (group,) = project.server_groups.values()
    assert (group.policy, after.status.server_group_id, after.status.server_group_name) == (
        "anti-affinity",
        group.id,
        NAME,
    )


def test_without_a_policy_the_server_group_goes() -> None:
    project = Project()
    of, _ = settle(fresh(options={"serverGroupPolicy": "affinity"}), project)
    changed = LoadBalancer.model_validate(
        merge(of.model_dump(mode="json"), {"spec": {"options": {"serverGroupPolicy": ""}}})
    )
    after, _ = settle(changed, project)
    assert not project.server_groups
    assert (after.status.server_group_id, after.status.server_group_name) == (None, None)


def test_external_becomes_internal_and_external_again() -> None:
    of, project = taken_over()

    def internal(wanted: bool) -> LoadBalancer:
        patch = {"spec": {"options": {"internalLB": wanted}}}
        return LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))

    of, _ = settle(internal(True), project)
    assert not project.floating
    assert of.status.external_ip == of.status.port_ip
    of, _ = settle(internal(False), project)
    (floating,) = project.floating.values()
    assert of.status.external_ip == floating.address


def test_a_floating_ip_that_a_person_keeps_survives_the_change_to_internal() -> None:
    of, project = taken_over()
    (floating,) = project.floating
    changes = {
        "metadata": {"annotations": {"yawol.stackit.cloud/keepFloatingIP": "true"}},
        "spec": {"options": {"internalLB": True}},
    }
    of, _ = settle(LoadBalancer.model_validate(merge(of.model_dump(mode="json"), changes)), project)
    assert [(each.id, each.port_id) for each in project.floating.values()] == [(floating, "")]
    assert (of.status.floating_id, of.status.external_ip) == (None, of.status.port_ip)


def test_a_floating_ip_that_goes_is_remembered_until_it_is_gone() -> None:
    of, project = taken_over()
    patch = {"spec": {"options": {"internalLB": True}}}
    of = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))
    (floating,) = project.floating.values()
    project.floating[floating.id] = floating.model_copy(update={"port_id": ""})
    # Nothing is deleted, as of a cloud that refuses; all that the plan says of the status is written.
    after = written(of, plan_cloud(of, project.of_balancer(), NOW))
    assert (after.status.floating_id, after.status.external_ip) == (floating.id, of.status.port_ip)
    after, _ = settle(after, project)
    assert not project.floating
    assert (after.status.floating_id, after.status.floating_name) == (None, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"networkID": "other"}, "network net and cannot be moved to network other"),
        ({"subnetID": "other"}, "subnet sub and cannot be moved to subnet other"),
    ],
)
def test_the_virtual_address_cannot_move_to_another_network(change: dict[str, str], message: str) -> None:
    """W23."""
    of, project = taken_over()
    patch = {"spec": {"infrastructure": {"defaultNetwork": change}}}
    moved = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))
    plan = plan_cloud(moved, project.of_balancer(), NOW)
    assert message in plan.problem
    assert (plan.steps, plan.settled) == ((), False)


def test_the_case_of_network_and_subnet_ids_does_not_matter() -> None:
    """MySQL, and so Neutron, compares ids without their case, and answers with the stored one."""
    of, project = taken_over()
    patch = {"spec": {"infrastructure": {"defaultNetwork": {"networkID": "NET", "subnetID": "SUB"}}}}
    spelt = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))
    assert plan_cloud(spelt, project.of_balancer(), NOW).settled


# --- the user's floating IP ---


def users_address(port_id: str = "", description: str = "") -> FloatingIp:
    return FloatingIp(id="users", address="198.51.100.9", port_id=port_id, description=description)


def test_the_users_floating_ip_is_led_to_the_port_and_never_deleted() -> None:
    project = Project()
    project.floating["users"] = users_address()
    of, _ = settle(fresh(existingFloatingIP="198.51.100.9"), project)
    assert of.status.external_ip == "198.51.100.9"
    assert "CreateFloatingIp" not in project.calls
    remove_all(of, project)
    assert set(project.floating) == {"users"}
    assert project.floating["users"].port_id == ""


def test_the_users_floating_ip_is_no_address_before_it_leads_to_the_port() -> None:
    project = Project()
    of, _ = settle(fresh(options={"internalLB": True}), project)
    project.floating["users"] = users_address()
    patch = {"spec": {"existingFloatingIP": "198.51.100.9", "options": {"internalLB": False}}}
    of = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))
    # Nothing is attached, as of a cloud that refuses; all that the plan says of the status is written.
    waiting = written(of, plan_cloud(of, project.of_balancer(), NOW))
    assert (waiting.status.floating_id, waiting.status.external_ip) == (None, of.status.port_ip)
    after, _ = settle(waiting, project)
    assert (after.status.floating_id, after.status.external_ip) == ("users", "198.51.100.9")


def test_the_users_floating_ip_is_not_taken_from_another_port() -> None:
    """W24."""
    project = Project()
    project.floating["users"] = users_address(port_id="theirs")
    _, plan = settle(fresh(existingFloatingIP="198.51.100.9"), project)
    assert "already belongs to port theirs" in plan.problem
    assert project.floating["users"].port_id == "theirs"


def test_another_floating_ip_later_is_reported_and_changes_nothing() -> None:
    project = Project()
    project.floating["theirs"] = FloatingIp(id="theirs", address="203.0.113.99", description="web", port_id="")
    of, _ = settle(fresh(), project)
    own = of.status.floating_id
    of = LoadBalancer.model_validate(
        merge(of.model_dump(mode="json"), {"spec": {"existingFloatingIP": "203.0.113.99"}})
    )
    plan = plan_cloud(of, project.of_balancer(), NOW)
    assert (plan.steps, plan.problem, plan.settled) == ((), "", True)
    assert [notice.message for notice in plan.notices] == [
        f"the address is {of.status.external_ip} and cannot be changed to 203.0.113.99: create another LoadBalancer"
    ]
    of, _ = settle(of, project)
    assert of.status.floating_id == own
    remove_all(of, project)
    assert set(project.floating) == {"theirs"}


def test_a_floating_ip_that_does_not_exist_is_waited_for() -> None:
    _, plan = settle(fresh(existingFloatingIP="198.51.100.9"), Project())
    assert plan.problem == "there is no floating IP 198.51.100.9 in the project: create it or correct the address"


def test_a_users_floating_ip_that_looks_like_ours_is_described_otherwise() -> None:
    project = Project()
    project.floating["users"] = users_address(description=NAME)
    settle(fresh(existingFloatingIP="198.51.100.9"), project)
    assert project.floating["users"].description == f"{NAME} (user managed)"


def test_an_internal_load_balancer_lets_go_of_the_users_floating_ip() -> None:
    project = Project()
    project.floating["users"] = users_address()
    of, _ = settle(fresh(existingFloatingIP="198.51.100.9"), project)
    patch = {"spec": {"options": {"internalLB": True}}}
    settle(LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch)), project)
    assert project.floating["users"].port_id == ""


@pytest.mark.parametrize("refused", [False, True])
def test_an_internal_load_balancer_lets_go_of_a_floating_ip_described_otherwise(refused: bool) -> None:
    project = Project()
    project.floating["users"] = users_address()
    of, _ = settle(fresh(existingFloatingIP="198.51.100.9"), project)
    patch = {"spec": {"options": {"internalLB": True}, "existingFloatingIP": None}}
    of = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), patch))
    if refused:  # the status is written while the step waits
        of = written(of, plan_cloud(of, project.of_balancer(), NOW))
    of, _ = settle(of, project)
    assert project.floating["users"].port_id == ""
    assert (of.status.floating_id, of.status.external_ip) == (None, of.status.port_ip)


# --- whose is whose ---


def test_unrecorded_objects_of_our_name_belong_to_others() -> None:
    """W16."""
    project = Project()
    project.groups["theirs"] = SecurityGroup(id="theirs", name=NAME)
    plan = plan_cloud(fresh(), project.of_balancer(), NOW)
    assert plan.problem.startswith("a security group named lbs/web--shop exists that does not belong to")
    assert plan.steps == ()
    assert not remove_load_balancer(fresh(), project.of_balancer()).steps


def test_objects_with_another_clusters_mark_are_not_taken() -> None:
    """W16."""
    project = Project()
    project.groups["theirs"] = SecurityGroup(id="theirs", name=NAME, description=mark_of("other-uid"))
    project.ports["theirs"] = CloudPort(id="theirs", name=NAME, description=mark_of("other-uid"))
    inherited = balancer(status={**NOTHING, "securityGroupName": NAME, "portName": NAME})
    assert plan_cloud(inherited, project.of_balancer(), NOW).problem
    remove_all(inherited, project)
    assert set(project.groups) == {"theirs"}
    assert set(project.ports) == {"theirs"}


def test_an_unmarked_object_is_ours_once_its_name_was_recorded() -> None:
    """As yawol leaves it when it dies between its create and its write of the id."""
    _, project = taken_over()
    named = {**NOTHING, "securityGroupName": NAME, "portName": NAME, "floatingName": NAME}
    of, _ = settle(balancer(status=named), project)
    assert [len(each) for each in (project.groups, project.ports, project.floating)] == [1, 1, 1]
    assert of.status.group_id in project.groups


def test_of_several_unmarked_objects_of_a_recorded_name_none_is_used_or_deleted() -> None:
    """The others may be those of another cluster's LoadBalancer."""
    project = Project()
    for id_ in ("one", "two"):
        project.groups[id_] = SecurityGroup(id=id_, name=NAME)
        project.ports[id_] = CloudPort(id=id_, name=NAME)
        project.floating[id_] = FloatingIp(id=id_, address="203.0.113.99", description=NAME)
    named = balancer(status={**NOTHING, "securityGroupName": NAME, "portName": NAME, "floatingName": NAME})
    plan = plan_cloud(named, project.of_balancer(), NOW)
    assert "a security group named lbs/web--shop exists that does not belong to" in plan.problem
    assert plan.steps == ()
    removal = remove_load_balancer(named, project.of_balancer())
    assert removal.steps == ()
    assert len(removal.retained) == 6


def test_a_floating_ip_of_our_name_that_leads_to_another_cluster_is_not_taken() -> None:
    project = Project()
    project.floating["theirs"] = FloatingIp(id="theirs", address="203.0.113.99", description=NAME, port_id="their-port")
    of, _ = settle(fresh(), project)
    assert of.status.floating_id != "theirs"
    remove_all(of, project)
    assert set(project.floating) == {"theirs"}


def test_a_retained_floating_ip_is_reported_and_adopted_when_it_is_named() -> None:
    """A LoadBalancer with keepFloatingIP has left it; another one of its name is made."""
    project = Project()
    project.floating["kept"] = FloatingIp(id="kept", address="203.0.113.99", description=NAME)
    of, plan = fresh(), CloudPlan()
    while not any(type(step).__name__ == "CreateFloatingIp" for step in plan.steps):
        project.carry_out(plan.steps)
        plan = plan_cloud(of, project.of_balancer(), NOW)
    message = f"floating IP 203.0.113.99 has the description {NAME}, but may have another owner: it is not used"
    assert [notice.message for notice in plan.notices] == [message]
    of, _ = settle(fresh(existingFloatingIP="203.0.113.99"), project)
    assert (of.status.floating_id, list(project.floating)) == ("kept", ["kept"])


def test_of_several_the_recorded_one_stays_and_marked_duplicates_go() -> None:
    project = Project()
    of, _ = settle(fresh(), project)
    mark = mark_of("lb-uid")
    project.ports["double"] = CloudPort(
        id="double", name=NAME, description=mark, fixed_ips=(FixedIp(address="10.1.0.99"),)
    )
    project.groups["double"] = SecurityGroup(id="double", name=NAME, description=mark)
    after, _ = settle(of, project)
    assert after.status == of.status
    assert "double" not in project.ports
    assert "double" not in project.groups


def test_an_unmarked_object_of_another_cluster_is_not_deleted() -> None:
    project = Project()
    of, _ = settle(fresh(), project)
    project.ports["theirs"] = CloudPort(id="theirs", name=NAME)
    project.groups["theirs"] = SecurityGroup(id="theirs", name=NAME)
    assert plan_cloud(of, project.of_balancer(), NOW).steps == ()
    remove_all(of, project)
    assert project.left == ["theirs", "theirs"]


def test_a_server_group_with_foreign_servers_is_not_adopted() -> None:
    project = Project()
    project.server_groups["theirs"] = ServerGroup(id="theirs", name=NAME, policy="affinity", members=("server",))
    of, _ = settle(fresh(options={"serverGroupPolicy": "affinity"}), project)
    assert of.status.server_group_id not in (None, "theirs")
    remove_all(of, project)
    assert set(project.server_groups) == {"theirs"}


# --- the way out ---


def remove_all(of: LoadBalancer, project: Project) -> list[str]:
    before = len(project.calls)
    for _ in range(10):
        removal = remove_load_balancer(of, project.of_balancer())
        if not removal.steps:
            return project.calls[before:]
        project.carry_out(removal.steps)
    raise AssertionError("it does not end")


def test_everything_goes_in_order_and_its_absence_is_seen() -> None:
    project = Project()
    of, _ = settle(fresh(options={"serverGroupPolicy": "affinity"}), project)
    assert remove_all(of, project) == [
        "DeleteServerGroup",
        "DeleteFloatingIp",
        "DeletePort",
        "DeleteSecurityGroup",
    ]
    assert project.left == []


def test_a_load_balancer_whose_status_was_blanked_leaves_nothing_behind() -> None:
    project = Project()
    settle(fresh(), project)
    remove_all(fresh(), project)
    assert project.left == []


def test_doubles_that_are_not_known_to_be_ours_stay_and_are_named() -> None:
    of, project = taken_over()
    project.ports["double"] = CloudPort(id="double", name=NAME)
    project.groups["double"] = SecurityGroup(id="double", name=NAME)
    project.floating["double"] = FloatingIp(id="double", address="203.0.113.99", description=NAME)
    remove_all(of, project)
    assert project.left == ["double", "double", "double"]
    assert remove_load_balancer(of, project.of_balancer()).retained == (
        "port double (same name, maybe another owner)",
        "security group double (same name, maybe another owner)",
        "floating IP 203.0.113.99 (same description, maybe another owner)",
    )


def test_users_of_the_security_group_are_detached_first() -> None:
    of, project = taken_over()
    (group,) = project.groups
    project.ports["theirs"] = CloudPort(id="theirs", name="x", security_groups=("default", group), device_id="vm")
    others = CloudPort(id="others", name="y", security_groups=("default",))
    project.ports["others"] = others
    assert "UpdatePort" in remove_all(of, project)
    assert project.ports == {
        "theirs": CloudPort(id="theirs", name="x", security_groups=("default",), device_id="vm"),
        "others": others,
    }


@pytest.mark.parametrize(
    ("annotation", "retained"),
    [("keepFloatingIP", "floating"), ("keepPort", "ports"), ("keepSecurityGroup", "groups")],
)
def test_resources_that_a_person_wants_to_keep_stay(annotation: str, retained: str) -> None:
    """W28: the security group as well, whatever the status calls it."""
    of, project = taken_over()
    meta = {"metadata": {"annotations": {f"yawol.stackit.cloud/{annotation}": "true"}}}
    keeping = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), meta))
    remove_all(keeping, project)
    left = {name for name in ("floating", "ports", "groups") if getattr(project, name)}
    assert left == {retained}
    assert len(remove_load_balancer(keeping, project.of_balancer()).retained) == 1


@pytest.mark.parametrize("retained", [True, False])
def test_a_group_under_its_former_name_stays_or_goes_like_any_other(retained: bool) -> None:
    """W28."""
    of, project = taken_over()
    former = {"security_group_id": of.status.group_id, "security_group_name": of.status.group_name}
    annotations = {"yawol.stackit.cloud/keepSecurityGroup": str(retained).lower()}
    changes = {
        "metadata": {"annotations": annotations},
        "status": {**former, "securityGroupID": None, "securityGroupName": None},
    }
    old = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), changes))
    remove_all(migrated(old), project)
    assert bool(project.groups) is retained


def test_a_floating_ip_that_is_described_otherwise_is_never_deleted() -> None:
    of, project = taken_over()
    (floating,) = project.floating.values()
    project.floating[floating.id] = floating.model_copy(update={"description": "ours for ten years"})
    remove_all(of, project)
    assert set(project.floating) == {floating.id}


def test_deleted_objects_are_forgotten_in_one_patch() -> None:
    of, _ = taken_over()
    forgotten = released_status(of.status)
    after = LoadBalancer.model_validate(merge(of.model_dump(mode="json"), forgotten))
    assert after.status.floating_id is after.status.port_id is after.status.group_id is after.status.external_ip is None
    assert released_status(after.status) == {}
