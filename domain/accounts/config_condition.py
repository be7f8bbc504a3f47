"""Perdure's one condition about the ConfigMap: on an Account or claim that waits for a key of it, while it waits.

`InvalidConfigMap` is True with the key in its message, and goes when the object waits for the ConfigMap no more (the
replaced operator only logs such a fault, and tries again ever more seldom). A pool says the same in `Stalled`. Unlike
the states' own conditions this one tells of the present, so that nobody has to ask Temporal what is missing.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.resources import AccountState
from domain.accounts.status import with_trouble
from domain.accounts.worlds import AccountWorld, ClaimWorld
from domain.decision import Decision
from domain.resource import Condition

CONDITION = "InvalidConfigMap"
REASON = "MissingOrMalformedKey"
CONFIG_MAP = "ConfigMap"  # what a decision waits for


def told_by_account(world: AccountWorld, decision: Decision, now: datetime) -> Decision:
    """The decision, which also says on the Account that a key is missing, or says so no more."""
    account = world.account
    if account.metadata.deleting or account.paused:
        return decision
    needs_it = not (account.failed or account.status.state == AccountState.READY)
    conditions = _changed(account.status.conditions, decision, now, needs_it=needs_it)
    if conditions is None:
        return decision
    status = account.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status, note=CONDITION),)})


def told_by_claim(world: ClaimWorld, decision: Decision, now: datetime) -> Decision:
    """The same of a claim."""
    claim = world.claim
    conditions = _changed(claim.status.conditions, decision, now, needs_it=True)
    if conditions is None or claim.metadata.deleting:
        return decision
    status = claim.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status),)})


def _changed(
    conditions: tuple[Condition, ...], decision: Decision, now: datetime, *, needs_it: bool
) -> tuple[Condition, ...] | None:
    """The conditions as they should be; None where nothing changes, or other writes come first."""
    if decision.actions:
        return None
    waits = needs_it and decision.waits_for == (CONFIG_MAP,)
    return with_trouble(conditions, CONDITION, REASON, decision.why if waits else "", now)
