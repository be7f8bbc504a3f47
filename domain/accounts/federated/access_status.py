"""The statuses of an access: the replaced operator's states and conditions, and the additional condition `Synced`.

If AWS refuses a step, a Ready access stays Ready, and any other becomes Failed. `Synced` is False with AWS's message
until an update succeeds.
"""

from __future__ import annotations

from datetime import datetime

from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    EnsureAccessPolicy,
    EnsureAccessRole,
    IdentifyCustomer,
)
from domain.accounts.federated.iam_names import console_url
from domain.accounts.federated.resources import AccessState, FederatedAccessStatus
from domain.accounts.state_conditions import TRUE, with_reason
from domain.refusal import Refusal, without_request
from domain.resource import Condition, condition_of, timestamp

SYNCED = "Synced"
FAILED_TO = {
    IdentifyCustomer.activity: "Failed to get account ID information",
    EnsureAccessPolicy.activity: "Failed to create custom policy",
    EnsureAccessRole.activity: "Failed to create role",
    AttachAccessPolicies.activity: "Failed to attach policies to role",
}


def ready(
    status: FederatedAccessStatus, partition: str, account_id: str, role: str, granted: str, now: datetime
) -> FederatedAccessStatus:
    conditions = with_reason(status.conditions, AccessState.READY, AccessState.READY, "Account Access Ready", now)
    if condition_of(conditions, SYNCED) is not None:
        conditions = _synced(conditions, TRUE, "Granted", "the IAM role matches the access's spec", now)
    return FederatedAccessStatus(
        state=AccessState.READY,
        conditions=conditions,
        console_url=console_url(partition, account_id, role),
        granted=granted,
    )


def faulty(status: FederatedAccessStatus, message: str, now: datetime) -> FederatedAccessStatus:
    conditions = with_reason(status.conditions, AccessState.FAILED, AccessState.FAILED, message, now)
    return status.model_copy(update={"state": AccessState.FAILED, "conditions": conditions})


def failed(status: FederatedAccessStatus, message: str, refusal: Refusal, now: datetime) -> FederatedAccessStatus:
    if status.state != AccessState.READY:
        status = faulty(status, message, now)
    reason = refusal.code if refusal.code.isalnum() else refusal.type.value
    conditions = _synced(status.conditions, "False", reason, f"{message}: {refusal.message}", now)
    return status.model_copy(update={"conditions": conditions})


def _synced(
    conditions: tuple[Condition, ...], status: str, reason: str, message: str, now: datetime
) -> tuple[Condition, ...]:
    """The conditions with `Synced`. Messages that differ only in AWS's request id count as equal."""
    present, moment, said = condition_of(conditions, SYNCED), timestamp(now), without_request(message)
    shown = (present.status, present.reason, without_request(present.message or "")) if present is not None else ()
    if shown == (status, reason, said):
        return conditions
    changed = present is None or present.status != status
    entered = moment if changed or present is None else present.last_transition_time
    condition = Condition(
        type=SYNCED,
        status=status,
        reason=reason,
        message=message,
        last_probe_time=moment,
        last_transition_time=entered,
    )
    return (
        (*conditions, condition) if present is None else tuple(condition if c.type == SYNCED else c for c in conditions)
    )
