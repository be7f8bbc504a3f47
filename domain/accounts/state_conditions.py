"""States and conditions, by the replaced operator's rules.

Each state adds a condition with status True, which stays True. If a state is entered again, only `lastProbeTime`
changes. `oc wait --for=condition=Ready` depends on this, and so does the decision not to open a second support case.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from domain.accounts.resources import FAILED_STATES, AccountClaimStatus, AccountStatus
from domain.refusal import without_request
from domain.resource import Condition, condition_of, reckonable_timestamp, timestamp

TRUE = "True"


def with_condition(
    conditions: tuple[Condition, ...], type_: str, reason: str, message: str, now: datetime, *, probe: bool = True
) -> tuple[Condition, ...]:
    """The conditions with this one True. If it was True before, only lastProbeTime changes, and only with `probe`."""
    moment = timestamp(now)
    fresh = Condition(
        type=type_, status=TRUE, reason=reason, message=message, last_probe_time=moment, last_transition_time=moment
    )
    present = condition_of(conditions, type_)
    if present is None:
        return (*conditions, fresh)
    unchanged = present.model_copy(update={"last_probe_time": moment} if probe else {})
    return tuple((unchanged if c.status == TRUE else fresh) if c.type == type_ else c for c in conditions)


def with_reason(
    conditions: tuple[Condition, ...], type_: str, reason: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions with this one True, for this reason. Its lastProbeTime changes only with its reason or message.
    Messages that differ only in AWS's request id count as equal.
    """
    present = condition_of(conditions, type_)
    if present is None or present.status != TRUE:
        return with_condition(conditions, type_, reason, message, now)
    if (present.reason, without_request(present.message or "")) == (reason, without_request(message)):
        return conditions
    changed = present.model_copy(update={"reason": reason, "message": message, "last_probe_time": timestamp(now)})
    return tuple(changed if each.type == type_ else each for each in conditions)


def probed_at(conditions: Iterable[Condition], type_: str) -> datetime | None:
    condition = condition_of(conditions, type_)
    return reckonable_timestamp(condition.last_probe_time) if condition else None


def lifted(conditions: tuple[Condition, ...], type_: str, now: datetime) -> tuple[Condition, ...]:
    moment = timestamp(now)
    over = {"status": "False", "last_probe_time": moment, "last_transition_time": moment}
    return tuple(c.model_copy(update=over) if (c.type, c.status) == (type_, TRUE) else c for c in conditions)


def with_account_state(status: AccountStatus, state: str, message: str, now: datetime) -> AccountStatus:
    return status.model_copy(
        update={"state": state, "conditions": with_condition(status.conditions, state, state, message, now)}
    )


def with_failure(status: AccountStatus, type_: str, reason: str, message: str, now: datetime) -> AccountStatus:
    return status.model_copy(
        update={"state": "Failed", "conditions": with_condition(status.conditions, type_, reason, message, now)}
    )


def failure_of(status: AccountStatus) -> Condition | None:
    failures = [c for c in status.conditions if c.type in FAILED_STATES and c.status == TRUE]
    return max(reversed(failures), key=lambda c: c.last_probe_time or "", default=None)


def with_claim_state(
    status: AccountClaimStatus, state: str, type_: str, reason: str, message: str, now: datetime
) -> AccountClaimStatus:
    conditions = with_condition(status.conditions, type_, reason, message, now, probe=False)
    return status.model_copy(update={"state": state, "conditions": conditions})


def released(status: AccountStatus, now: datetime) -> AccountStatus:
    conditions = with_condition(status.conditions, "Reused", "Ready", "Account Reuse - Ready", now)
    return _given_back(status, "Ready", conditions)


def release_failed(status: AccountStatus, now: datetime) -> AccountStatus:
    conditions = with_condition(status.conditions, "Failed", "Failed", "Account Reuse - Failed", now)
    return _given_back(status, "Failed", conditions)


def _given_back(status: AccountStatus, state: str, conditions: tuple[Condition, ...]) -> AccountStatus:
    return status.model_copy(
        update={
            "rotate_credentials": True,
            "rotate_console_credentials": True,
            "regional_service_quotas": {},
            "support_case_id": "",
            "claimed": False,
            "reused": True,
            "state": state,
            "conditions": conditions,
        }
    )


def with_trouble(
    conditions: tuple[Condition, ...], kind: str, reason: str, message: str, now: datetime, *, probe: bool = True
) -> tuple[Condition, ...]:
    """The conditions with this one or, if `message` is empty, without it. `probe` writes lastProbeTime."""
    present = condition_of(conditions, kind)
    others = tuple(condition for condition in conditions if condition.type != kind)
    if not message:
        return others
    if present is not None and (present.status, present.reason, present.message) == (TRUE, reason, message):
        return conditions
    since = present.last_transition_time if present and present.status == TRUE else timestamp(now)
    trouble = Condition(
        type=kind,
        status=TRUE,
        reason=reason,
        message=message,
        last_probe_time=timestamp(now) if probe else None,
        last_transition_time=since,
    )
    return (*others, trouble)
