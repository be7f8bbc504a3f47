"""The rules of security groups: which are wanted, and what differs."""

from __future__ import annotations

from typing import Any

import pytest
from lb_objects import balancer

from domain.loadbalancers.cloud.objects import SecurityGroupRule
from domain.loadbalancers.cloud.security_group_rules import changed_rules, wanted_rules

HTTP = {"protocol": "TCP", "port": 80, "nodePort": 30080}
DNS = {"protocol": "UDP", "port": 53, "nodePort": 30053}


def lines(**spec: Any) -> list[str]:
    """The wanted rules, one line each."""
    rules = wanted_rules(balancer(spec=spec), "sg-1").rules
    return [
        f"{r.direction} {r.ethertype} {r.protocol or 'any'} {r.port_range_min}-{r.port_range_max} "
        f"{r.remote_ip_prefix or r.remote_group_id or 'any'}"
        for r in rules
    ]


BASIC = [
    "egress IPv4 any None-None any",
    "ingress IPv4 vrrp None-None sg-1",
    "ingress IPv4 icmp 1-8 any",
    "egress IPv6 any None-None any",
    "ingress IPv6 vrrp None-None sg-1",
    "ingress IPv6 ipv6-icmp 1-8 any",
]


def test_each_port_is_open_to_everybody_in_both_families() -> None:
    assert lines(ports=[HTTP, DNS]) == [
        *BASIC,
        "ingress IPv4 tcp 80-80 0.0.0.0/0",
        "ingress IPv6 tcp 80-80 ::/0",
        "ingress IPv4 udp 53-53 0.0.0.0/0",
        "ingress IPv6 udp 53-53 ::/0",
    ]


def test_each_port_is_open_to_the_source_ranges_only() -> None:
    assert lines(ports=[HTTP], options={"loadBalancerSourceRanges": ["10.1.2.3/8", "fd00::/8"]}) == [
        *BASIC,
        "ingress IPv4 tcp 80-80 10.0.0.0/8",
        "ingress IPv6 tcp 80-80 fd00::/8",
    ]


def test_a_bad_range_is_left_out_and_reported_and_only_bad_ones_admit_no_client() -> None:
    of = balancer(
        spec={"ports": [HTTP], "options": {"loadBalancerSourceRanges": ["all", "fe80::%1/64", "192.0.2.0/24"]}}
    )
    wanted = wanted_rules(of, "sg-1")
    assert wanted.rules[-1].remote_ip_prefix == "192.0.2.0/24"
    found = [notice.message for notice in wanted.notices]
    assert found == [f"Could not parse LoadBalancerSourceRange: {bad}" for bad in ("all", "fe80::%1/64")]
    assert lines(ports=[HTTP], options={"loadBalancerSourceRanges": ["all"]}) == BASIC


def test_every_rule_says_whose_it_is() -> None:
    assert {rule.description for rule in wanted_rules(balancer(), "sg-1").rules} == {"lbs/web--shop"}


@pytest.mark.parametrize(
    "changes",
    [
        {"spec": {"debugSettings": {"enabled": True}}},
        {"metadata": {"annotations": {"yawol.stackit.cloud/adHocDebug": "true"}}},
    ],
)
def test_debugging_opens_ssh_to_everybody_and_says_so(changes: Any) -> None:
    wanted = wanted_rules(balancer(**changes), "sg-1")
    assert [(r.port_range_min, r.remote_ip_prefix) for r in wanted.rules[-2:]] == [(22, "0.0.0.0/0"), (22, "::/0")]
    assert [n.message for n in wanted.notices] == ["DebugSettings are enabled, Port 22 is open to all IP ranges."]


@pytest.mark.parametrize("protocol", ["TCP", "UDP"])
def test_debugging_opens_no_port_that_the_service_uses(protocol: str) -> None:
    ports = [{"protocol": protocol, "port": 22, "nodePort": 30022}]
    of = balancer(
        spec={
            "ports": ports,
            "debugSettings": {"enabled": True},
            "options": {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
        }
    )
    wanted = wanted_rules(of, "sg-1")
    assert [r.remote_ip_prefix for r in wanted.rules if r.port_range_min == 22] == ["10.0.0.0/8"]
    assert "already in use" in wanted.notices[0].message


def test_two_spellings_of_a_range_make_one_rule() -> None:
    ranges = ["10.0.0.0/8", "10.9.9.9/8", "0.0.0.0/0"]
    found = lines(ports=[HTTP], options={"loadBalancerSourceRanges": ranges})[len(BASIC) :]
    assert found == ["ingress IPv4 tcp 80-80 10.0.0.0/8", "ingress IPv4 tcp 80-80 0.0.0.0/0"]


def stored(**spec: Any) -> list[SecurityGroupRule]:
    """The wanted rules as Neutron has them."""
    rules = wanted_rules(balancer(spec=spec), "sg-1").rules
    return [rule.model_copy(update={"id": f"rule-{number}"}) for number, rule in enumerate(rules)]


def test_a_group_with_all_rules_is_left_alone() -> None:
    assert changed_rules("sg-1", wanted_rules(balancer(), "sg-1").rules, stored()) is None


@pytest.mark.parametrize(
    "spelling",
    [
        {"protocol": "6"},
        {"protocol": "TCP"},
        {"description": "changed by hand"},
        {"remote_ip_prefix": ""},
        {"ethertype": "ipv4"},
    ],
)
def test_neutrons_spelling_of_a_rule_changes_nothing(spelling: Any) -> None:
    present = stored()
    index = next(i for i, rule in enumerate(present) if rule.remote_ip_prefix == "0.0.0.0/0")
    present[index] = present[index].model_copy(update=spelling)
    assert changed_rules("sg-1", wanted_rules(balancer(), "sg-1").rules, present) is None


@pytest.mark.parametrize(("name", "number"), [("vrrp", "112"), ("icmp", "1"), ("ipv6-icmp", "icmpv6")])
def test_protocols_are_known_by_all_their_names(name: str, number: str) -> None:
    present = [r.model_copy(update={"protocol": number}) if r.protocol == name else r for r in stored()]
    assert changed_rules("sg-1", wanted_rules(balancer(), "sg-1").rules, present) is None


def test_new_and_unwanted_rules_go_in_one_change() -> None:
    before = stored(ports=[HTTP])
    wanted = wanted_rules(balancer(spec={"ports": [DNS]}), "sg-1").rules
    change = changed_rules("sg-1", wanted, before)
    assert change is not None
    assert [(rule.protocol, rule.port_range_min) for rule in change.create] == [("udp", 53), ("udp", 53)]
    assert change.delete == ("rule-6", "rule-7")


def test_a_double_of_a_rule_goes() -> None:
    present = stored()
    double = present[-1].model_copy(update={"id": "double"})
    change = changed_rules("sg-1", wanted_rules(balancer(), "sg-1").rules, [*present, double])
    assert change is not None
    assert (change.create, change.delete) == ((), ("double",))


def test_a_new_group_keeps_neutrons_own_two_rules() -> None:
    own = [SecurityGroupRule(id=each, direction="egress", ethertype=each) for each in ("IPv4", "IPv6")]
    change = changed_rules("sg-1", wanted_rules(balancer(), "sg-1").rules, own)
    assert change is not None
    assert change.delete == ()
    assert len(change.create) == 6


def test_only_machines_of_the_same_load_balancer_may_speak_of_its_address() -> None:
    """W29: every load balancer of a network has the same VRRP router; another one's advertisements never arrive."""
    vrrp = [each for each in wanted_rules(balancer(), "sg-1").rules if each.protocol == "vrrp"]
    assert {each.ethertype for each in vrrp} == {"IPv4", "IPv6"}
    assert {(each.direction, each.remote_group_id, each.remote_ip_prefix) for each in vrrp} == {("ingress", "sg-1", "")}


def test_the_rules_for_icmp_are_those_of_yawol() -> None:
    """W20: Neutron reads them as type 1 and code 8, so ping fails; other ones would change every group."""
    rules = wanted_rules(balancer(), "sg-1").rules
    icmp = {
        (each.ethertype, each.protocol, each.port_range_min, each.port_range_max)
        for each in rules
        if "icmp" in each.protocol
    }
    assert icmp == {("IPv4", "icmp", 1, 8), ("IPv6", "ipv6-icmp", 1, 8)}
