"""Every step repeated at every moment: exactly one of what it makes, and nothing of what it deletes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TypeVar

import pytest
from os_cloud import SmallCloud, run

from activities.openstack.session import Project
from activities.openstack.steps import await_server, carry_out
from domain.loadbalancers.cloud import steps
from domain.loadbalancers.cloud.folded_results import Brought
from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.steps import Step
from domain.loadbalancers.resources import Flavor, Image, LoadBalancerReference
from engine.errors import Absent, ApiError, Conflict, Denied, Invalid, Pending, Throttled, Unavailable

R = TypeVar("R")

USER_DATA = "#cloud-config\n# a secret of the machine\n"
MARK = "perdure:uid"


def attempt(project: Project, step: Step, number: int = 1) -> Brought:
    return run(lambda: carry_out(project, step, lambda: USER_DATA), number)


def rule(port: int) -> SecurityGroupRule:
    return SecurityGroupRule(
        direction="ingress", ethertype="IPv4", protocol="tcp", port_range_min=port, port_range_max=port
    )


NARROW = rule(80).model_copy(update={"remote_ip_prefix": "10.0.0.0/8"})


def group_of(cloud: SmallCloud) -> str:
    return cloud.put("security-groups", name="other", description="")


def port_of(cloud: SmallCloud) -> str:
    return cloud.put("ports", name="lbs/web", description=MARK, network_id="net")


Making = Callable[[SmallCloud], Step]

MAKING: dict[str, tuple[str, int, Making]] = {
    "security group": (
        "security-groups",
        1,
        lambda cloud: steps.CreateSecurityGroup(name="lbs/web", description=MARK),
    ),
    "rules": (
        "security-group-rules",
        2 + 2,
        lambda cloud: steps.ChangeRules(security_group_id=group_of(cloud), create=(rule(80), rule(443))),
    ),
    "port": (
        "ports",
        1,
        lambda cloud: steps.CreatePort(
            name="lbs/web", description=MARK, network_id="net", security_groups=("sg",), allowed_addresses=("10.0.0.9",)
        ),
    ),
    "floating IP": (
        "floatingips",
        1,
        lambda cloud: steps.CreateFloatingIp(description="lbs/web", network_id="ext", port_id=port_of(cloud)),
    ),
    "server group": ("os-server-groups", 1, lambda cloud: steps.CreateServerGroup(name="lbs/web", policy="affinity")),
    "server": (
        "servers",
        1,
        lambda cloud: steps.CreateServer(
            name="web-1",
            namespace="lbs",
            load_balancer=LoadBalancerReference(name="web", namespace="lbs"),
            virtual_address="10.1.0.5",
            uid="uid",
            flavor=Flavor(id="f"),
            image=Image(id="i"),
            port_id=port_of(cloud),
            network_id="net",
        ),
    ),
}


@pytest.mark.parametrize("trouble", ["before", "after"])
@pytest.mark.parametrize("what", MAKING)
def test_a_disturbed_creation_makes_exactly_one(cloud: SmallCloud, project: Project, what: str, trouble: str) -> None:
    kind, number, making = MAKING[what]
    step = making(cloud)
    cloud.trouble = lambda call: trouble if call.startswith("POST") else ""
    with pytest.raises(Unavailable):
        attempt(project, step)
    cloud.trouble = lambda call: ""
    brought = attempt(project, step, 2)
    assert len(cloud.objects[kind]) == number
    assert ids(brought) <= set(cloud.objects[kind])
    assert ids(brought)


@pytest.mark.parametrize("what", MAKING)
def test_an_empty_answer_to_a_creation_counts_as_lost(cloud: SmallCloud, project: Project, what: str) -> None:
    kind, number, making = MAKING[what]
    step = making(cloud)
    cloud.trouble = lambda call: "unsaid" if call.startswith("POST") else ""
    with pytest.raises(Unavailable, match="cannot be parsed"):
        attempt(project, step)
    cloud.trouble = lambda call: ""
    assert ids(attempt(project, step, 2)) <= set(cloud.objects[kind])
    assert len(cloud.objects[kind]) == number


def test_an_empty_answer_to_a_change_counts_as_lost(cloud: SmallCloud, project: Project) -> None:
    port = port_of(cloud)
    floating = cloud.put("floatingips", description="lbs/web", port_id=None)
    cloud.trouble = lambda call: "unsaid"
    for step in (
        steps.UpdatePort(port_id=port, security_groups=("sg",)),
        steps.UpdateFloatingIp(floating_ip_id=floating, port_id=port),
    ):
        with pytest.raises(Unavailable, match="cannot be parsed"):
            attempt(project, step)


CHANGING: dict[str, tuple[str, Making]] = {
    "security groups": (
        "security_groups",
        lambda cloud: steps.UpdatePort(port_id=port_of(cloud), security_groups=("sg",)),
    ),
    "allowed addresses": (
        "allowed_address_pairs",
        lambda cloud: steps.UpdatePort(port_id=port_of(cloud), allowed_addresses=("10.0.0.9",)),
    ),
    "the port of a floating IP": (
        "port_id",
        lambda cloud: steps.UpdateFloatingIp(floating_ip_id=cloud.put("floatingips"), port_id=port_of(cloud)),
    ),
    "the description of a floating IP": (
        "description",
        lambda cloud: steps.UpdateFloatingIp(floating_ip_id=cloud.put("floatingips"), description="lbs/web"),
    ),
    "rules": ("remote_ip_prefix", lambda cloud: steps.ChangeRules(security_group_id=group_of(cloud), create=(NARROW,))),
    "the port of a new floating IP": ("port_id", MAKING["floating IP"][2]),
    "the policy of a server group": ("policies", MAKING["server group"][2]),
}


@pytest.mark.parametrize("what", CHANGING)
def test_a_change_that_the_cloud_accepts_and_ignores_is_no_success(
    cloud: SmallCloud, project: Project, what: str
) -> None:
    """Else the same step would be wanted again at once, without end."""
    field, making = CHANGING[what]
    step = making(cloud)
    cloud.ignored = {field}
    with pytest.raises(Conflict, match="has no effect"):
        attempt(project, step)
    if isinstance(step, steps.CreateFloatingIp):
        assert cloud.objects["floatingips"] == {}, "nothing proves whose it is"


def test_a_new_floating_ip_stays_although_the_answer_lacks_its_port(cloud: SmallCloud, project: Project) -> None:
    step = MAKING["floating IP"][2](cloud)
    assert isinstance(step, steps.CreateFloatingIp)
    cloud.trouble = lambda call: "curt" if call.startswith("POST") else ""
    floating = attempt(project, step).floating_ip
    assert floating is not None
    assert (floating.port_id, set(cloud.objects["floatingips"])) == (step.port_id, {floating.id})


def test_a_floating_ip_that_is_not_described_as_ours_is_not_deleted(cloud: SmallCloud, project: Project) -> None:
    step = MAKING["floating IP"][2](cloud)
    cloud.ignored = {"port_id", "description"}
    with pytest.raises(Conflict, match="has no effect"):
        attempt(project, step)
    assert len(cloud.objects["floatingips"]) == 1


def test_outdated_rules_stay_while_the_new_ones_have_no_effect(cloud: SmallCloud, project: Project) -> None:
    group = group_of(cloud)
    outdated = tuple(cloud.objects["security-group-rules"])
    cloud.ignored = {"remote_ip_prefix"}
    step = steps.ChangeRules(security_group_id=group, create=(NARROW,), delete=outdated)
    for number in (1, 2):
        with pytest.raises(Conflict, match="has no effect"):
            attempt(project, step, number)
    assert set(outdated) <= set(cloud.objects["security-group-rules"])


@pytest.mark.parametrize("what", MAKING)
def test_the_successor_of_a_killed_process_adopts_what_it_made(cloud: SmallCloud, project: Project, what: str) -> None:
    kind, number, making = MAKING[what]
    step = making(cloud)
    first = attempt(project, step)
    second = attempt(project, step, 2)
    assert ids(first) == ids(second)
    assert len(cloud.objects[kind]) == number


@pytest.mark.parametrize("what", ["rules", "floating IP", "server"])
def test_where_the_cloud_keeps_something_single_the_slower_attempt_adopts_it(
    cloud: SmallCloud, project: Project, what: str
) -> None:
    kind, number, making = MAKING[what]
    step = making(cloud)
    assert ids(attempt(project, step)) == ids(attempt(project, step))
    assert len(cloud.objects[kind]) == number


def ids(brought: Brought) -> set[str]:
    single = (brought.security_group, brought.port, brought.floating_ip, brought.server_group, brought.server)
    return {each.id for each in (*single, *(brought.rules.made if brought.rules else ())) if each is not None}


@pytest.mark.parametrize("what", ["security group", "port"])
def test_another_ones_object_of_the_name_is_not_adopted(cloud: SmallCloud, project: Project, what: str) -> None:
    kind, _, making = MAKING[what]
    theirs = cloud.put(kind, name="lbs/web", description="perdure:another")
    assert ids(attempt(project, making(cloud), 2)).isdisjoint({theirs})


def test_a_floating_ip_of_another_description_is_left_to_its_owner(cloud: SmallCloud, project: Project) -> None:
    step = MAKING["floating IP"][2](cloud)
    assert isinstance(step, steps.CreateFloatingIp)
    cloud.put("floatingips", description="theirs", port_id=step.port_id)
    with pytest.raises(Conflict):
        attempt(project, step)
    with pytest.raises(Conflict):
        attempt(project, step, 2)


def test_a_longer_name_is_another_server(cloud: SmallCloud, project: Project) -> None:
    cloud.put("servers", name="web-10", status="ACTIVE")
    attempt(project, MAKING["server"][2](cloud), 2)
    assert sorted(each["name"] for each in cloud.objects["servers"].values()) == ["web-1", "web-10"]


def test_rules_are_one_call_and_what_is_gone_already_is_done(cloud: SmallCloud, project: Project) -> None:
    group = group_of(cloud)
    egress = list(cloud.objects["security-group-rules"])
    step = steps.ChangeRules(security_group_id=group, create=(rule(80), rule(443)), delete=(egress[0], "gone"))
    change = attempt(project, step).rules
    assert change is not None
    assert cloud.calls.count("POST /v2.0/security-group-rules") == 1
    assert change.gone == step.delete
    assert {each.port_range_min for each in change.made} == {80, 443}
    assert len(cloud.objects["security-group-rules"]) == 3


def test_rules_that_exceed_the_quota_are_created_after_the_outdated_ones_are_gone(
    cloud: SmallCloud, project: Project
) -> None:
    group = group_of(cloud)
    egress = list(cloud.objects["security-group-rules"])
    cloud.most_rules = 2
    step = steps.ChangeRules(security_group_id=group, create=(rule(80), rule(443)), delete=tuple(egress))
    change = attempt(project, step).rules
    assert change is not None
    assert len(change.made) == 2
    assert change.gone == tuple(egress)
    assert sorted(each["port_range_min"] for each in cloud.objects["security-group-rules"].values()) == [80, 443]


def test_as_many_rules_are_created_as_the_quota_allows(cloud: SmallCloud, project: Project) -> None:
    group = group_of(cloud)
    outdated = tuple(cloud.objects["security-group-rules"])
    cloud.most_rules = 2
    step = steps.ChangeRules(security_group_id=group, create=(rule(80), rule(443), rule(8080)), delete=outdated)
    with pytest.raises(Throttled):
        attempt(project, step)
    assert sorted(each["port_range_min"] for each in cloud.objects["security-group-rules"].values()) == [80, 443]
    cloud.most_rules = 3
    change = attempt(project, step, 2).rules
    assert change is not None
    assert {each.port_range_min for each in change.made} == {80, 443, 8080}


def test_rules_that_exceed_the_quota_for_good_leave_the_group_unchanged(cloud: SmallCloud, project: Project) -> None:
    group = group_of(cloud)
    cloud.most_rules = 2
    with pytest.raises(Throttled) as refused:
        attempt(project, steps.ChangeRules(security_group_id=group, create=(rule(80),)))
    assert refused.value.code == "OverQuota"
    assert len(cloud.objects["security-group-rules"]) == 2


def test_a_server_gets_what_its_machine_needs(cloud: SmallCloud, project: Project) -> None:
    step = MAKING["server"][2](cloud).model_copy(
        update={
            "additional_networks": ("n-2",),
            "key_name": "key",
            "server_group_id": "g",
            "availability_zone": "az",
        }
    )
    attempt(project, step)
    body = cloud.bodies[-1]
    assert body["os:scheduler_hints"] == {"group": "g"}
    server = body["server"]
    assert base64.b64decode(server.pop("user_data")).decode() == USER_DATA
    assert server == {
        "name": "web-1",
        "flavorRef": "f",
        "imageRef": "i",
        "networks": [{"uuid": "net", "port": next(iter(cloud.objects["ports"]))}, {"uuid": "n-2"}],
        "metadata": {"perdure-machine": "uid"},
        "availability_zone": "az",
        "key_name": "key",
    }


def test_the_allowed_addresses_of_a_port_are_written_unchanged(cloud: SmallCloud, project: Project) -> None:
    port = port_of(cloud)
    brought = attempt(project, steps.UpdatePort(port_id=port, allowed_addresses=("10.0.0.9",)))
    assert cloud.bodies[-1] == {"port": {"allowed_address_pairs": [{"ip_address": "10.0.0.9"}]}}
    assert brought.port is not None
    assert brought.port.allowed_addresses == ("10.0.0.9",)
    attempt(project, steps.UpdatePort(port_id=port, security_groups=()))
    assert cloud.bodies[-1] == {"port": {"security_groups": []}}


PORT_WITH_ALL = steps.CreatePort(
    name="lbs/web", description=MARK, network_id="net-1", subnet_id="subnet-1", security_groups=("group-1",)
)


@pytest.mark.parametrize(
    ("step", "missing", "field"),
    [
        (PORT_WITH_ALL, "net-1", "networkID"),
        (PORT_WITH_ALL, "subnet-1", "subnetID"),
        (steps.CreateFloatingIp(description="lbs/web", network_id="ext-1", port_id="port-1"), "ext-1", "floatingNetID"),
    ],
)
@pytest.mark.parametrize("number", [1, 2])
def test_a_network_that_does_not_exist_is_named_by_its_field(
    cloud: SmallCloud, project: Project, step: Step, missing: str, field: str, number: int
) -> None:
    cloud.missing = {missing}
    with pytest.raises(Invalid) as refused:
        attempt(project, step, number)
    message = refused.value.message
    assert message.startswith(f"spec.infrastructure.defaultNetwork.{field} is {missing}, which cannot be used.")
    assert "404" in message


def test_a_security_group_that_is_gone_asks_for_another_look(cloud: SmallCloud, project: Project) -> None:
    cloud.missing = {"group-1"}
    with pytest.raises(Absent):
        attempt(project, PORT_WITH_ALL)


def test_a_floating_ip_may_lead_nowhere(cloud: SmallCloud, project: Project) -> None:
    id_ = cloud.put("floatingips", description="lbs/web", port_id=port_of(cloud))
    brought = attempt(project, steps.UpdateFloatingIp(floating_ip_id=id_, port_id=""))
    assert cloud.bodies[-1] == {"floatingip": {"port_id": None}}
    assert brought.floating_ip is not None
    assert brought.floating_ip.port_id == ""


def test_changing_a_deleted_object_is_reported(cloud: SmallCloud, project: Project) -> None:
    with pytest.raises(Absent):
        attempt(project, steps.UpdatePort(port_id="gone", security_groups=()))


DELETING: dict[str, Callable[[str], Step]] = {
    "security-groups": lambda id_: steps.DeleteSecurityGroup(id=id_),
    "ports": lambda id_: steps.DeletePort(id=id_),
    "floatingips": lambda id_: steps.DeleteFloatingIp(id=id_),
    "os-server-groups": lambda id_: steps.DeleteServerGroup(id=id_),
}


@pytest.mark.parametrize("trouble", ["before", "after"])
@pytest.mark.parametrize("kind", DELETING)
def test_a_disturbed_deletion_ends_with_nothing(cloud: SmallCloud, project: Project, kind: str, trouble: str) -> None:
    step = DELETING[kind](cloud.put(kind, name="x", description="", port_id=""))
    cloud.trouble = lambda call: trouble if call.startswith("DELETE") else ""
    with pytest.raises(Unavailable):
        attempt(project, step)
    cloud.trouble = lambda call: ""
    assert attempt(project, step, 2).gone
    assert cloud.objects[kind] == {}


def test_a_group_in_use_stays_and_is_reported(cloud: SmallCloud, project: Project) -> None:
    group = group_of(cloud)
    cloud.put("ports", name="x", security_groups=[group])
    with pytest.raises(Conflict) as refused:
        attempt(project, steps.DeleteSecurityGroup(id=group))
    assert refused.value.code == "SecurityGroupInUse"


def test_a_port_held_by_a_server_is_waited_for_and_reported_at_last(cloud: SmallCloud, project: Project) -> None:
    step = steps.DeletePort(id=cloud.put("ports", name="x", device_id="server-1"))
    with pytest.raises(Pending):
        attempt(project, step)
    with pytest.raises(Denied):
        attempt(project, step, 5)


# Servers.


def server_of(cloud: SmallCloud, **given: object) -> str:
    return cloud.put("servers", name="web-1", status="ACTIVE", **given)


def outcome(effect: Callable[[], object], number: int) -> ApiError | object:
    try:
        return run(effect, number)
    except ApiError as error:
        return error


def test_a_server_is_deleted_once_and_observed_until_it_is_gone(cloud: SmallCloud, project: Project) -> None:
    server = server_of(cloud)
    cloud.deletions_take = 3
    step = steps.DeleteServer(id=server)
    for number in (1, 2, 3):
        with pytest.raises(Pending) as going:
            attempt(project, step, number)
        assert going.value.delay
    assert attempt(project, step, 4).gone == server
    assert cloud.calls.count(f"DELETE /v2.1/servers/{server}") == 1
    assert cloud.objects["servers"] == {}


def test_a_deletion_that_was_lost_is_asked_for_again(cloud: SmallCloud, project: Project) -> None:
    step = steps.DeleteServer(id=server_of(cloud))
    cloud.trouble = lambda call: "before" if call.startswith("DELETE") else ""
    with pytest.raises(Unavailable):
        attempt(project, step)
    cloud.trouble = lambda call: ""
    with pytest.raises(Pending):
        attempt(project, step, 2)
    assert attempt(project, step, 3).gone


def test_a_server_that_stays_deleted_is_deleted_again(cloud: SmallCloud, project: Project) -> None:
    server = server_of(cloud)
    cloud.objects["servers"][server]["status"] = "DELETED"
    with pytest.raises(Pending):
        attempt(project, steps.DeleteServer(id=server, asked=True))
    assert cloud.calls.count(f"DELETE /v2.1/servers/{server}") == 1


def test_a_server_that_is_not_deleted_is_reported(cloud: SmallCloud, project: Project) -> None:
    server = server_of(cloud)
    cloud.objects["servers"][server].update(status="ERROR", fault={"message": "Failed to terminate instance"})
    with pytest.raises(Conflict, match="Failed to terminate instance"):
        attempt(project, steps.DeleteServer(id=server), 5)


def test_a_server_that_never_was_is_gone(cloud: SmallCloud, project: Project) -> None:
    assert attempt(project, steps.DeleteServer(id="never")).gone == "never"


def test_a_server_is_awaited_until_it_is_built(cloud: SmallCloud, project: Project) -> None:
    server = server_of(cloud)
    cloud.objects["servers"][server]["status"] = "BUILD"
    waits = [outcome(lambda: await_server(project, server), number) for number in range(1, 9)]
    delays = [each.delay.total_seconds() for each in waits if isinstance(each, Pending) and each.delay]
    assert len(delays) == 8
    assert sum(delays) > 54  # eight looks for a boot of a minute, a tenth of jitter aside
    cloud.objects["servers"][server].update(status="ERROR", fault={"message": "No valid host was found. "})
    found = run(lambda: await_server(project, server), 9)
    assert found is not None
    assert (found.status, found.fault) == ("ERROR", "No valid host was found.")
    del cloud.objects["servers"][server]
    assert run(lambda: await_server(project, server)) is None
