"""An undisturbed life of a load balancer on a real OpenStack has the effects that `test_broken.py` breaks."""

from __future__ import annotations

import pytest
from chaos_balancers_lab import TURNS, BalancersLab
from chaos_balancers_turns import CALLS, WRITES

pytestmark = [pytest.mark.integration, pytest.mark.openstack, pytest.mark.chaos, pytest.mark.timeout(1200)]


def test_an_undisturbed_life_has_the_effects_that_are_tried_and_no_others(balancers_lab: BalancersLab) -> None:
    balancers_lab.ready_to(TURNS[0])
    for turn in TURNS:
        writes, calls = balancers_lab.effects(turn)
        assert calls == set(CALLS[turn])
        assert writes == set(WRITES[turn])
