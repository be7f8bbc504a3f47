"""The condition of a claim whose Secret cannot be written because it is somebody else's.

`SecretUnusable` is True while the claim waits, with the refusal in its message, and goes once the Secret is written.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.constants import SECRET_NOT_OURS, SECRET_OF_THE_OPERATOR
from domain.accounts.status import with_trouble
from domain.accounts.worlds import ClaimWorld
from domain.decision import Decision

CONDITION = "SecretUnusable"


def secret_told(world: ClaimWorld, decision: Decision, now: datetime) -> Decision:
    """The decision, which also shows on the claim that its Secret was refused, or that it is no more."""
    claim = world.claim
    if claim.metadata.deleting:
        return decision
    refusals = (world.refused(action.slot) for action in decision.actions)
    refused = next((each for each in refusals if each and each.code in (SECRET_NOT_OURS, SECRET_OF_THE_OPERATOR)), None)
    if refused is None and decision.actions:
        return decision
    code, message = (refused.code, refused.message) if refused else ("", "")
    conditions = with_trouble(claim.status.conditions, CONDITION, code, message, now)
    if conditions is None:
        return decision
    status = claim.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status), *decision.actions)})
