"""Whole lives of load balancers and machines by their own plans, and how many calls they take.

What the passes show as well (`test_os_passes.py`) is left to the slow run.
"""

from __future__ import annotations

import pytest
from openstack_lab import Lab

from activities.openstack.observation import observe_load_balancer, observe_machine, observe_project
from domain.loadbalancers.cloud.deletion import remove_load_balancer
from domain.loadbalancers.cloud.objects import LoadBalancerCloud
from domain.loadbalancers.cloud.steps import UpdatePort
from engine.errors import Conflict

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.timeout(240)]


def unordered(cloud: LoadBalancerCloud) -> LoadBalancerCloud:
    """Neutron gives rules in any order, and brings a floating IP's status up to date later."""
    groups = (
        each.model_copy(update={"rules": tuple(sorted(each.rules, key=lambda rule: rule.id))})
        for each in cloud.security_groups
    )
    floating = (each.model_copy(update={"status": ""}) for each in cloud.floating_ips)
    return cloud.model_copy(update={"security_groups": tuple(groups), "floating_ips": tuple(floating)})


@pytest.mark.slow
def test_a_load_balancer_and_its_machine_come_and_go_with_few_calls(lab: Lab) -> None:
    balancer, cloud = lab.settle(lab.balancer())
    machine, _ = lab.boot(balancer, lab.machine(balancer))
    ledger = lab.control.ledger()
    assert ledger.calls() <= 22, ledger.by_route()
    assert ledger.tokens() <= 1

    assert unordered(cloud) == unordered(observe_load_balancer(lab.project(), balancer))
    assert cloud.floating_ips[0].port_id == cloud.ports[0].id
    assert cloud.ports[0].security_groups == (cloud.security_groups[0].id,)
    assert len(cloud.security_groups[0].rules) == 10
    assert balancer.status.external_ip == cloud.floating_ips[0].address

    seen = observe_machine(lab.project(), machine)
    assert seen.virtual_port is not None
    assert seen.ports[0].allowed_addresses == (seen.virtual_port.address,)
    assert seen.servers[0].uid == machine.metadata.uid
    assert seen.servers[0].created_at is not None

    lab.control.reset_ledger()
    lab.remove_machine(machine)
    lab.remove(balancer)
    ledger = lab.control.ledger()
    assert ledger.calls() <= 14, ledger.by_route()
    assert not remove_load_balancer(balancer, lab.left(balancer)).steps
    left = observe_machine(lab.project(), machine)
    assert (left.ports, left.servers, left.virtual_port) == ((), (), None)


@pytest.mark.slow
def test_a_settled_load_balancer_is_unchanged(lab: Lab) -> None:
    balancer, _ = lab.settle(lab.balancer())
    lab.control.reset_ledger()
    again, _ = lab.settle(balancer)
    assert again == balancer
    assert lab.control.ledger().mutating() == 0
    assert lab.control.ledger().calls() == 3
    lab.remove(balancer)


@pytest.mark.slow
def test_a_port_added_is_one_call(lab: Lab) -> None:
    balancer, _ = lab.settle(lab.balancer())
    spec = {"ports": [{"name": "dns", "protocol": "UDP", "port": 53}]}
    more = type(balancer).model_validate(
        {**balancer.model_dump(by_alias=True), "spec": {**balancer.spec.model_dump(by_alias=True), **spec}}
    )
    lab.control.reset_ledger()
    more, cloud = lab.settle(more)
    assert lab.control.ledger().calls("neutron", "POST", "/v2.0/security-group-rules") == 1
    assert {rule.port_range_min for rule in cloud.security_groups[0].rules if rule.protocol == "udp"} == {53}
    assert not any(rule.protocol == "tcp" for rule in cloud.security_groups[0].rules)
    lab.remove(more)


@pytest.mark.parametrize("policy", [pytest.param("anti-affinity", marks=pytest.mark.slow), "soft-anti-affinity"])
def test_machines_are_placed_by_a_server_group(lab: Lab, policy: str) -> None:
    """W22."""
    balancer, cloud = lab.settle(lab.balancer(spec={"options": {"serverGroupPolicy": policy}}))
    assert cloud.server_groups[0].policy == policy
    machine, seen = lab.boot(balancer, lab.machine(balancer))
    grouped = observe_load_balancer(lab.project(), balancer).server_groups[0]
    assert grouped.members == (seen.servers[0].id,)
    lab.remove_machine(machine)
    lab.remove(balancer)
    assert lab.left(balancer).server_groups == ()


def test_an_internal_load_balancer_has_no_floating_ip(lab: Lab) -> None:
    balancer, cloud = lab.settle(lab.balancer(spec={"options": {"internalLB": True}}))
    assert cloud.floating_ips == ()
    assert balancer.status.external_ip == cloud.ports[0].address
    lab.remove(balancer)


@pytest.mark.slow
def test_a_project_is_observed_by_five_calls_as_each_of_its_load_balancers_is(lab: Lab) -> None:
    lives = []
    for _ in range(3):
        balancer, _ = lab.settle(lab.balancer())
        machine, _ = lab.boot(balancer, lab.machine(balancer))
        lives.append((balancer, machine))
    lab.control.reset_ledger()
    whole = observe_project(lab.project())
    assert lab.control.ledger().calls() == 5
    assert lab.control.ledger().tokens() == 0
    for balancer, machine in lives:
        seen = observe_load_balancer(lab.project(), balancer)
        assert unordered(whole.of_load_balancer(balancer)) == unordered(seen)
        assert whole.of_machine(machine) == observe_machine(lab.project(), machine)
        lab.remove_machine(machine)
        lab.remove(balancer)


def test_ports_that_use_a_group_are_found_and_freed_before_its_deletion(lab: Lab) -> None:
    balancer, cloud = lab.settle(lab.balancer())
    foreign = lab.balancer()
    other, others = lab.settle(foreign)
    groups = (others.security_groups[0].id, cloud.security_groups[0].id)
    lab.carry_out(UpdatePort(port_id=others.ports[0].id, security_groups=groups))
    with pytest.raises(Conflict) as refused:
        lab.remove(balancer)
    assert refused.value.code == "SecurityGroupInUse"
    lab.remove(balancer)
    assert lab.left(balancer).security_groups == ()
    assert observe_load_balancer(lab.project(), other).ports[0].security_groups == groups[:1]
    lab.remove(other)
