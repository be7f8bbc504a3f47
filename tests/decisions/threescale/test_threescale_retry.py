"""A person's retry of a synced object has it compared with 3scale again."""

from __future__ import annotations

from domain.decision import Outcome
from domain.threescale.observed import Phase, acts
from domain.threescale.passes import RETRYABLE


def test_a_synced_or_final_object_may_be_observed_again() -> None:
    standing = {Phase.SYNCED, Phase.ORPHAN, Phase.INVALID, Phase.FAILED, Phase.DELETING}

    assert {phase.value for phase in standing} == RETRYABLE
    assert acts(Phase.SYNCED, "done").outcome is Outcome.SETTLED
