"""An undisturbed turn of resource claims makes the writes that `test_broken.py` breaks."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from chaos_claims_lab import ClaimsLab
from chaos_claims_turns import TURNS, Turn, create_in_a_death, numbered

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.name.replace(" ", "_"))
def test_an_undisturbed_turn_makes_exactly_the_writes_that_the_sweep_breaks(claims_lab: ClaimsLab, turn: Turn) -> None:
    lab = claims_lab
    lab.tidy()
    name = turn.prepare(lab)
    lab.settle()
    lab.proxy.requests.clear()
    lab.proxy.recording = True
    try:
        turn.act(lab, name)
        lab.settle()
    finally:
        lab.proxy.recording = False
    made = numbered(lab.proxy.requests)
    assert set(turn.writes) <= set(made)
    assert _unnumbered(made) == _unnumbered(turn.writes)


def _unnumbered(writes: Iterable[str]) -> set[str]:
    return {write.rpartition(" ")[0] for write in writes}


def test_a_handle_that_was_made_when_the_worker_died_is_found_again(claims_lab: ClaimsLab) -> None:
    """What the default run holds of `test_broken.py`."""
    lab = claims_lab
    lab.tidy()
    lab.oracle.forget()
    create_in_a_death(lab)
    lab.lift()
    lab.audit()
