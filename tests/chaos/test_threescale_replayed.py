"""Today's code replays what it has just done for 3scale objects on the real deployment, a kill included."""

from __future__ import annotations

import asyncio

import pytest
from chaos_replay import replayed
from chaos_striking import WORKER, kill
from chaos_threescale_lab import TURNS, ThreescaleLab

from domain.threescale import CUSTOM_KINDS, THREESCALE_TENANTS

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.timeout(600)]

TYPES = (*(kind.name for kind in CUSTOM_KINDS), THREESCALE_TENANTS.name)


def test_histories_of_3scale_objects_on_the_real_deployment_are_replayed(threescale_lab: ThreescaleLab) -> None:
    life = threescale_lab.life()
    threescale_lab.ready_to(TURNS[0], life)
    life.take("create")
    kill(threescale_lab, WORKER)  # amidst of it
    life.token_may_be_lost = True
    threescale_lab.settle()
    for turn in TURNS[1:]:
        life.take(turn)
        threescale_lab.settle()
    found = asyncio.run(replayed(threescale_lab.deployment, "threescale", TYPES))
    assert all(found.values()), found
