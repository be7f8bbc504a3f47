"""Approval of a claim, if its provider requires one: a person writes `status.approval.state: approved`.

A claim that has a handle counts as approved: if its provider requires approval later, the claim keeps the handle.
"""

from __future__ import annotations

from domain.claims.constants import APPROVAL_PENDING_MESSAGE
from domain.claims.json_objects import JsonObject, object_at, text_at, value_at, without
from domain.claims.resources.shared import ApprovalState

# Status fields that come from the handle; a claim has none of them before its approval.
_NOT_YET = ("lifespan", "resourceHandle", "resources", "summary")


def approved(claim: JsonObject, provider: JsonObject, *, bound: bool) -> bool:
    required = value_at(provider, "spec", "approval", "required") is True
    holds = bound or object_at(claim, "status", "resourceHandle")
    return bool(not required or holds or text_at(claim, "status", "approval", "state") == ApprovalState.APPROVED)


def pending_status(claim: JsonObject, provider: JsonObject) -> JsonObject:
    """The status of an unapproved claim; an existing approval state and message are kept."""
    status = without(object_at(claim, "status"), _NOT_YET)
    if object_at(status, "approval"):
        return status
    pending_message = value_at(provider, "spec", "approval", "pendingMessage")
    message = pending_message if isinstance(pending_message, str) else APPROVAL_PENDING_MESSAGE
    return {**status, "approval": {"state": ApprovalState.PENDING, "message": message}}
