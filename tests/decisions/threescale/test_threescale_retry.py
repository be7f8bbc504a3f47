"""A person's retry of what is in step has it compared with 3scale anew."""

from __future__ import annotations

from domain.decision import Outcome
from domain.threescale.observed import Phase, stands
from domain.threescale.passes import RETRYABLE


def test_what_is_in_step_or_stands_may_be_looked_at_again() -> None:
    standing = {Phase.SYNCED, Phase.ORPHAN, Phase.INVALID, Phase.FAILED, Phase.DELETING}

    assert {phase.value for phase in standing} == RETRYABLE
    assert stands(Phase.SYNCED, "done").outcome is Outcome.SETTLED
