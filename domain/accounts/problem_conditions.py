"""Perdure's own conditions of Accounts and claims, removed once they no longer apply.

- `InvalidConfigMap`: the Account or claim waits until a key of the ConfigMap is present and valid. Pools show this in
`Stalled` instead.
- `SecretUnusable`: the Secret that the claim names belongs to another owner.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.constants import SECRET_NOT_OURS, SECRET_OF_THE_OPERATOR
from domain.accounts.observed import AccountWorld, ClaimWorld
from domain.accounts.resources import AccountState
from domain.accounts.state_conditions import with_trouble
from domain.decision import Decision
from domain.resource import Condition

INVALID_CONFIG_MAP = "InvalidConfigMap"
REASON = "MissingOrMalformedKey"
CONFIG_MAP = "ConfigMap"  # an entry of `waits_for`
SECRET_UNUSABLE = "SecretUnusable"  # noqa: S105 - a name


def with_account_conditions(world: AccountWorld, decision: Decision, now: datetime) -> Decision:
    account = world.account
    if account.metadata.deleting or account.paused:
        return decision
    needs_it = not (account.failed or account.status.state == AccountState.READY)
    conditions = _changed(account.status.conditions, decision, now, needs_it=needs_it)
    if conditions is None:
        return decision
    status = account.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status, note=INVALID_CONFIG_MAP),)})


def with_claim_conditions(world: ClaimWorld, decision: Decision, now: datetime) -> Decision:
    claim = world.claim
    conditions = _changed(claim.status.conditions, decision, now, needs_it=True)
    if conditions is None or claim.metadata.deleting:
        return decision
    status = claim.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status),)})


def _changed(
    conditions: tuple[Condition, ...], decision: Decision, now: datetime, *, needs_it: bool
) -> tuple[Condition, ...] | None:
    """None if the conditions stay as they are, or other actions come first."""
    if decision.actions:
        return None
    waits = needs_it and decision.waits_for == (CONFIG_MAP,)
    return with_trouble(conditions, INVALID_CONFIG_MAP, REASON, decision.why if waits else "", now)


def with_secret_condition(world: ClaimWorld, decision: Decision, now: datetime) -> Decision:
    claim = world.claim
    if claim.metadata.deleting:
        return decision
    refusals = (world.refused(action.slot) for action in decision.actions)
    refused = next((each for each in refusals if each and each.code in (SECRET_NOT_OURS, SECRET_OF_THE_OPERATOR)), None)
    if refused is None and decision.actions:
        return decision
    code, message = (refused.code, refused.message) if refused else ("", "")
    conditions = with_trouble(claim.status.conditions, SECRET_UNUSABLE, code, message, now)
    if conditions is None:
        return decision
    status = claim.status.model_copy(update={"conditions": conditions})
    return decision.model_copy(update={"actions": (world.write_status(status), *decision.actions)})
