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

INVALID_CONFIG_MAP = "InvalidConfigMap"
REASON = "MissingOrMalformedKey"
CONFIG_MAP = "ConfigMap"  # an entry of `waits_for`
SECRET_UNUSABLE = "SecretUnusable"  # noqa: S105 - a name


def with_account_conditions(world: AccountWorld, decision: Decision, now: datetime) -> Decision:
    account = world.account
    if account.metadata.deleting or account.paused:
        return decision
    needs_it = not (account.failed or account.status.state == AccountState.READY)
    return _with_config_map(world, decision, now, needs_it=needs_it)


def with_claim_conditions(world: ClaimWorld, decision: Decision, now: datetime) -> Decision:
    if world.claim.metadata.deleting:
        return decision
    decision = _with_config_map(world, decision, now, needs_it=True)
    refusals = (world.refused(action.slot) for action in decision.actions)
    refused = next((each for each in refusals if each and each.code in (SECRET_NOT_OURS, SECRET_OF_THE_OPERATOR)), None)
    if refused is None and decision.actions:
        return decision
    code, message = (refused.code, refused.message) if refused else ("", "")
    return _with_problem(world, decision, SECRET_UNUSABLE, code, message, now)


def _with_config_map(
    world: AccountWorld | ClaimWorld, decision: Decision, now: datetime, *, needs_it: bool
) -> Decision:
    if any(world.refused(action.slot) is None for action in decision.actions):
        return decision
    waits = needs_it and decision.waits_for == (CONFIG_MAP,)
    return _with_problem(world, decision, INVALID_CONFIG_MAP, REASON, decision.why if waits else "", now)


def _with_problem(
    world: AccountWorld | ClaimWorld, decision: Decision, kind: str, reason: str, message: str, now: datetime
) -> Decision:
    status = world.resource.status  # type: ignore[attr-defined]
    conditions = with_trouble(status.conditions, kind, reason, message, now)
    written = world.status_change(status.model_copy(update={"conditions": conditions}), note=kind)
    return decision.model_copy(update={"actions": (*written, *decision.actions)})
