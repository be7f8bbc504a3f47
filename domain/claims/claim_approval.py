"""Approval of a claim, if its provider requires one: a person writes `status.approval.state: approved`.

A claim with a handle counts as approved: a provider that requires approval from now on takes no handle away.
"""

from __future__ import annotations

from domain.claims.constants import APPROVAL_PENDING_MESSAGE
from domain.claims.json_objects import JsonObject, object_at, text_at, value_at, without
from domain.claims.resources.shared import ApprovalState

# Status fields from the handle, absent before the approval.
_NOT_YET = ("lifespan", "resourceHandle", "resources", "summary")


def approved(claim: JsonObject, provider: JsonObject, *, bound: bool) -> bool:
    required = value_at(provider, "spec", "approval", "required") is True
    holds = bound or object_at(claim, "status", "resourceHandle")
    return bool(not required or holds or text_at(claim, "status", "approval", "state") == ApprovalState.APPROVED)


def pending_status(claim: JsonObject, provider: JsonObject) -> JsonObject:
    """The status of a claim to approve; an existing approval state and message stay."""
    status = without(object_at(claim, "status"), _NOT_YET)
    if object_at(status, "approval"):
        return status
    pending_message = value_at(provider, "spec", "approval", "pendingMessage")
    message = pending_message if isinstance(pending_message, str) else APPROVAL_PENDING_MESSAGE
    return {**status, "approval": {"state": ApprovalState.PENDING, "message": message}}
