"""Who has the virtual address, and what keepalived's statistics say of it to the agent."""

from __future__ import annotations

import pytest

from localcloud.machines.machine import accepted_ports
from localcloud.machines.vrrp import Candidate, Statistics, elect
from yawollet.keepalived import read_statistics

LOW, HIGH = Candidate("low", "127.64.0.9", 150), Candidate("high", "127.64.0.10", 150)


@pytest.mark.parametrize(
    ("master", "candidates", "elected"),
    [
        (None, [], None),
        ("low", [], None),
        (None, [LOW], "low"),
        (None, [LOW, HIGH], "high"),  # by the address as a number, not as a text
        ("low", [LOW, HIGH], "low"),
        ("low", [LOW, HIGH._replace(priority=160)], "high"),
        ("gone", [LOW, HIGH], "high"),
        ("low", [LOW._replace(priority=50), HIGH], "high"),
        ("low", [LOW._replace(priority=50)], "low"),  # without Envoy, but there is no other
    ],
)
def test_the_highest_priority_has_the_address(
    master: str | None, candidates: list[Candidate], elected: str | None
) -> None:
    assert elect(master, candidates) == elected


def test_the_agent_reads_the_statistics_as_they_were_counted() -> None:
    counted = Statistics()
    assert not counted.turn(master=False, now=0)
    assert not read_statistics(counted.text()).is_master
    assert counted.turn(master=True, now=8)
    assert not counted.turn(master=True, now=20)
    statistics = read_statistics(counted.text())
    assert statistics.is_master
    assert (statistics.received, statistics.sent, statistics.became_master, statistics.released_master) == (2, 3, 1, 0)
    assert counted.turn(master=False, now=24)
    assert not read_statistics(counted.text()).is_master


def test_ports_are_those_of_the_listeners_that_envoy_has_accepted() -> None:
    listeners = '{"TCP-80": {}, "UDP-53": {}}'
    remaining = f'{{"load_balancer": "web", "snapshot": {{"version": 2, "clusters": {{}}, "listeners": {listeners}}}}}'
    assert [str(port) for port in accepted_ports(remaining)] == ["TCP-80", "UDP-53"]
