"""Today's code replays what it has just done for load balancers on a real OpenStack, its worker killed once."""

from __future__ import annotations

import asyncio

import pytest
from chaos_balancers_lab import TURNS, BalancersLab
from chaos_replay import replayed

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.chaos, pytest.mark.timeout(1200)]

TYPES = ("LoadBalancer", "LoadBalancerSet", "LoadBalancerMachine", "OpenStackProjects")


def test_histories_of_load_balancers_on_the_real_deployment_are_replayed(balancers_lab: BalancersLab) -> None:
    balancers_lab.ready_to(TURNS[0])
    for turn in TURNS:
        refused = balancers_lab.disturb("nova POST /v2.1/servers", status=503) if turn == "create" else None
        balancers_lab.take(turn)
        if turn == "roll out":
            balancers_lab.worker.kill()
            balancers_lab.worker.start()
        balancers_lab.settle()
        assert refused is None or refused()
    found = asyncio.run(replayed(balancers_lab.deployment, "loadbalancers", TYPES))
    assert all(found.values()), found
