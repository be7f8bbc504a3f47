"""What is observed of a project: names, what is recorded, and what lists lack; and whole lives by their own plans."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest
from lb_objects import NOW, balancer, machine
from os_cloud import SmallCloud, run

from activities.openstack.images_and_flavors import flavor_id
from activities.openstack.observation import (
    observe_load_balancer,
    observe_machine,
    observe_project,
)
from activities.openstack.session import Project
from activities.openstack.steps import carry_out
from domain.loadbalancers.balancer_lifecycle import decide_balancer
from domain.loadbalancers.balancer_world import BalancerWorld, LookAtBalancer
from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.folded_results import changed
from domain.loadbalancers.cloud.load_balancer import plan_cloud
from domain.loadbalancers.constants import LOAD_BALANCER_FINALIZER
from domain.loadbalancers.resources import Flavor, LoadBalancer, LoadBalancerMachine
from domain.resource import timestamp
from domain.writes import merge
from engine.errors import Conflict, Invalid, Unavailable

R = TypeVar("R")
NAME = "lbs/web--shop"
NOTHING: dict[str, Any] = {"status": None}
DELETED = {"deletionTimestamp": timestamp(NOW)}


def patched(owner: LoadBalancer, patch: Any) -> LoadBalancer:
    return LoadBalancer.model_validate(merge(owner.model_dump(mode="json", by_alias=True), patch))


def settled(project: Project, owner: LoadBalancer) -> LoadBalancer:
    seen = observe_load_balancer(project, owner)
    for _ in range(8):
        plan = plan_cloud(owner, seen, NOW)
        owner = patched(owner, plan.status)
        if plan.settled:
            assert seen == observe_load_balancer(project, owner)
            return owner
        for step in plan.steps:
            seen = changed(seen, run(lambda step=step: carry_out(project, step)))  # type: ignore[misc]
    raise AssertionError(plan)


def removed(project: Project, owner: LoadBalancer) -> None:
    owner = patched(owner, {"metadata": DELETED})
    seen = observe_load_balancer(project, owner)
    while going := remove_load_balancer(owner, seen).steps:
        for step in going:
            seen = changed(seen, run(lambda step=step: carry_out(project, step)))  # type: ignore[misc]


def test_a_load_balancer_comes_with_seven_calls_and_goes_with_seven(cloud: SmallCloud, project: Project) -> None:
    owner = settled(project, balancer(**NOTHING))
    made = cloud.calls[:-3]  # the last look is the test's
    assert made == [
        "GET /v2.0/security-groups",
        "GET /v2.0/ports",
        "GET /v2.0/floatingips",
        "POST /v2.0/security-groups",
        "POST /v2.0/security-group-rules",
        "POST /v2.0/ports",
        "POST /v2.0/floatingips",
    ]
    cloud.calls.clear()
    removed(project, owner)
    assert len(cloud.calls) == 7
    assert not any(cloud.objects[kind] for kind in ("security-groups", "ports", "floatingips", "servers"))


def test_a_server_group_comes_and_goes_with_its_policy(cloud: SmallCloud, project: Project) -> None:
    owner = settled(project, balancer(spec={"options": {"serverGroupPolicy": "soft-affinity"}}, **NOTHING))
    assert [each["policies"] for each in cloud.objects["os-server-groups"].values()] == [["soft-affinity"]]
    owner = settled(project, patched(owner, {"spec": {"options": {"serverGroupPolicy": ""}}}))
    assert cloud.objects["os-server-groups"] == {}
    assert owner.status.server_group_id is None


def test_an_object_that_is_recorded_and_not_listed_is_requested(cloud: SmallCloud, project: Project) -> None:
    port = cloud.put("ports", name="renamed", description="")
    seen = observe_load_balancer(project, balancer(status={"portID": port, "securityGroupID": "gone"}))
    assert [each.id for each in seen.ports] == [port]
    assert seen.security_groups == ()
    assert "GET /v2.0/security-groups/gone" in cloud.calls


def test_an_observation_without_all_answers_is_none(cloud: SmallCloud, project: Project) -> None:
    """W4, W5."""
    cloud.trouble = lambda call: "before" if "floatingips" in call else ""
    with pytest.raises(Unavailable):
        observe_load_balancer(project, balancer(**NOTHING))


@pytest.mark.parametrize(
    "call", ["/security-groups/sg-9", "/ports/p-9", "/floatingips/f-9", "/os-server-groups", "/security-groups"]
)
def test_an_answer_without_the_object_does_not_count_as_absence(cloud: SmallCloud, project: Project, call: str) -> None:
    owner = balancer(
        spec={"options": {"serverGroupPolicy": "affinity"}},
        status={"securityGroupID": "sg-9", "portID": "p-9", "floatingID": "f-9", "serverGroupID": "g-9"},
    )
    cloud.trouble = lambda made: "empty" if made.endswith(call) else ""
    with pytest.raises(Unavailable, match="cannot be parsed"):
        observe_load_balancer(project, owner)


def test_a_server_that_an_empty_answer_describes_does_not_count_as_lost(cloud: SmallCloud, project: Project) -> None:
    cloud.trouble = lambda made: "empty" if made.endswith("/servers/s-9") else ""
    with pytest.raises(Unavailable, match="cannot be parsed"):
        observe_machine(project, machine(spec={"portID": ""}, status={"serverID": "s-9", "defaultPortID": None}))


def test_a_users_floating_ip_is_found_by_its_address(cloud: SmallCloud, project: Project) -> None:
    id_ = cloud.put("floatingips", description="mine", port_id=None)
    address = cloud.objects["floatingips"][id_]["floating_ip_address"]
    seen = observe_load_balancer(project, balancer(spec={"existingFloatingIP": address}, **NOTHING))
    assert [each.id for each in seen.floating_ips] == [id_]


def test_the_users_of_a_group_are_observed_only_before_its_deletion(cloud: SmallCloud, project: Project) -> None:
    owner = settled(project, balancer(**NOTHING))
    group = owner.status.group_id
    user = cloud.put("ports", name="foreign", description="", security_groups=[group, "other"])
    with pytest.raises(Conflict):
        removed(project, owner)
    removed(project, owner)
    assert cloud.objects["security-groups"] == {}
    assert cloud.objects["ports"][user]["security_groups"] == ["other"]


def test_the_users_of_a_group_recorded_under_its_former_name_are_observed(cloud: SmallCloud, project: Project) -> None:
    group = cloud.put("security-groups", name="lbs/web--shop", description="")
    user = cloud.put("ports", name="foreign", description="", security_groups=[group])
    former = {"security_group_id": group, "security_group_name": "lbs/web--shop"}
    going = patched(
        balancer(**NOTHING), {"metadata": {**DELETED, "finalizers": [LOAD_BALANCER_FINALIZER]}, "status": former}
    )
    (look,) = decide_balancer(BalancerWorld(key=going.key, balancer=going), NOW).actions
    assert isinstance(look, LookAtBalancer)
    assert [each.id for each in observe_load_balancer(project, look.balancer).group_users] == [user]


def born(owner: LoadBalancer, **changes: Any) -> LoadBalancerMachine:
    return machine(spec={"portID": owner.status.port_id}, status=None, **changes)


def test_a_machine_is_observed_with_two_calls(cloud: SmallCloud, project: Project) -> None:
    owner = settled(project, balancer(**NOTHING))
    own = born(owner)
    name = f"{own.metadata.namespace}/{own.metadata.name}"
    port = cloud.put("ports", name=name, description=f"perdure:{own.metadata.uid}")
    server = cloud.put("servers", name=own.metadata.name, status="ACTIVE", metadata={"perdure-machine": "u"})
    cloud.put("servers", name=f"{own.metadata.name}-2", status="ACTIVE")
    cloud.calls.clear()
    seen = observe_machine(project, own)
    assert [each.id for each in seen.ports] == [port]
    assert [(each.id, each.uid) for each in seen.servers] == [(server, "u")]
    assert seen.virtual_port is not None
    assert seen.virtual_port.id == owner.status.port_id
    assert cloud.calls == ["GET /v2.0/ports", "GET /v2.1/servers/detail"]


def test_an_address_on_another_ones_port_is_asked_for_by_its_id(cloud: SmallCloud, project: Project) -> None:
    port = cloud.put("ports", name="elsewhere", description="")
    seen = observe_machine(project, machine(spec={"portID": port}, status=None))
    assert seen.virtual_port is not None
    assert seen.virtual_port.id == port
    assert seen.ports == ()


def test_a_project_is_observed_by_five_calls_as_each_object_is(cloud: SmallCloud, project: Project) -> None:
    owners = [settled(project, balancer(metadata={"name": f"web-{n}", "uid": f"uid-{n}"}, **NOTHING)) for n in range(3)]
    machines = [born(owner, metadata={"name": f"m-{n}", "uid": f"m-{n}"}) for n, owner in enumerate(owners)]
    for own in machines:
        cloud.put("ports", name=f"{own.metadata.namespace}/{own.metadata.name}", description="")
        cloud.put("servers", name=own.metadata.name, status="ACTIVE")
    cloud.calls.clear()
    whole = observe_project(project)
    assert len(cloud.calls) == 5
    for owner, own in zip(owners, machines, strict=True):
        going = patched(owner, {"metadata": DELETED})
        assert whole.of_load_balancer(owner) == observe_load_balancer(project, owner)
        assert whole.of_load_balancer(going).ports == observe_load_balancer(project, going).ports
        virtual = whole.of_machine(own).virtual_port
        assert virtual is not None
        seen = observe_machine(project, own.model_copy(update={"spec": own.spec}))
        assert (whole.of_machine(own).ports, whole.of_machine(own).servers) == (seen.ports, seen.servers)


def test_two_hundred_load_balancers_cost_no_more_calls_than_one(cloud: SmallCloud, project: Project) -> None:
    """Row c: each with two machines."""
    for number in range(200):
        name = f"lbs/web-{number}"
        group = cloud.put("security-groups", name=name, description="")
        port = cloud.put("ports", name=name, description="", security_groups=[group])
        cloud.put("floatingips", description=name, port_id=port)
        for each in range(2):
            cloud.put("ports", name=f"{name}-{each}", description="", security_groups=[group])
            cloud.put("servers", name=f"web-{number}-{each}", status="ACTIVE")
    cloud.calls.clear()
    whole = observe_project(project)
    assert len(cloud.calls) == 5
    assert (len(whole.security_groups), len(whole.ports), len(whole.servers)) == (200, 600, 400)


def test_a_flavor_that_is_named_by_id_costs_no_call(cloud: SmallCloud, project: Project) -> None:
    assert flavor_id(project, Flavor(id="f")) == "f"
    assert flavor_id(project, Flavor(former_id="g")) == "g"
    with pytest.raises(Invalid):
        flavor_id(project, Flavor())
    assert cloud.calls == []


@pytest.mark.parametrize(
    ("flavor", "found"),
    [(Flavor(name="small"), "1"), (Flavor(search="tin"), "2"), (Flavor(search="l"), ""), (Flavor(name="tin"), "")],
    ids=["by name", "by a part", "too many", "none"],
)
def test_a_flavor_is_found_by_name_or_not_at_all(
    cloud: SmallCloud, project: Project, flavor: Flavor, found: str
) -> None:
    """W21."""
    cloud.objects["flavors"] = {"1": {"id": "1", "name": "small"}, "2": {"id": "2", "name": "tiny-l"}}
    if found:
        assert flavor_id(project, flavor) == found
        return
    with pytest.raises(Invalid) as refused:
        flavor_id(project, flavor)
    assert refused.value.code == "NoSuchFlavor"
