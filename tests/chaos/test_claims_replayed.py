"""Today's code replays what it has just done on the real deployment, kills included; recordings are taken here, too."""

from __future__ import annotations

import asyncio

import pytest
from chaos_claims_lab import ClaimsLab
from chaos_claims_turns import BY_NAME, create_in_a_death
from chaos_replay import replayed

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TYPES = ("ClaimBinder", "ResourceClaim", "ResourceHandle", "ResourcePool")


def _live(lab: ClaimsLab) -> None:
    """A bit of everything, with a worker that dies in between."""
    for turn in ("create", "bind", "fill a pool"):
        BY_NAME[turn].act(lab, "")
    lab.settle()
    for turn in ("edit", "detach", "auto-delete", "delete handle", "expire", "delete a pool"):
        name = BY_NAME[turn].prepare(lab)
        lab.settle()
        BY_NAME[turn].act(lab, name)
        lab.settle()
    create_in_a_death(lab)


def test_histories_of_claims_on_the_real_deployment_are_replayed(claims_lab: ClaimsLab) -> None:
    claims_lab.clear()
    _live(claims_lab)
    found = asyncio.run(replayed(claims_lab.deployment, "claims", TYPES))
    assert all(found.values()), found
