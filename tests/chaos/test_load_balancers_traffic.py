"""Rows f and j of the load balancers' issue: clients notice nothing of what dies, with real machines and a real OpenStack.

The rollout, which takes minutes, is measured by `perdure bench loadbalancers --only f2`.
"""  # noqa: E501 - its first line

from __future__ import annotations

import pytest

from localcloud.bench.loadbalancers_traffic import disturbances

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.chaos, pytest.mark.timeout(1200)]


async def test_no_request_fails_while_processes_die_a_port_comes_and_a_machine_goes() -> None:
    suffered = await disturbances(frozenset({"f1", "j"}))
    assert len(suffered) == 7
    assert all(each.asked for each in suffered)
    assert [(each.what, each.failed) for each in suffered if each.failed] == []
