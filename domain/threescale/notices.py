"""Kubernetes Events of an object, with the replaced operator's reasons.

A waiting object gets a warning only if it is a Tenant. Perdure adds normal Events for surprising actions: an object is
deleted with another object, or an application is created again.
"""

from __future__ import annotations

from domain.decision import Decision
from domain.identity import Kind
from domain.notices import Notice, normal, warning
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    BACKEND,
    CUSTOM_POLICY_DEFINITION,
    DEVELOPER_ACCOUNT,
    DEVELOPER_USER,
    OPEN_API,
    PRODUCT,
    TENANT,
)
from domain.threescale.actions import DeleteObject
from domain.threescale.calls import Resource, Write
from domain.threescale.observed import Phase

RECONCILE_ERROR = "ReconcileError"
GOES_ALONG = "GoesAlong"
MADE_ANEW = "MadeAnew"
INVALID = {
    PRODUCT.name: "Invalid Product Spec",
    BACKEND.name: "Invalid Backend Spec",
    ACTIVE_DOC.name: "Invalid ActiveDoc Spec",
    OPEN_API.name: "Invalid OpenAPI Spec",
    CUSTOM_POLICY_DEFINITION.name: "Invalid CustomPolicyDefinition Spec",
    DEVELOPER_ACCOUNT.name: "Invalid developer account spec",
    DEVELOPER_USER.name: "Invalid developer user spec",
    APPLICATION.name: "Invalid application Spec",
}
# Event reasons when a deletion does not proceed.
STUCK = {
    PRODUCT.name: "Failed to delete product",
    APPLICATION.name: "Failed to delete application",
    DEVELOPER_ACCOUNT.name: "Failed to delete developer account",
    DEVELOPER_USER.name: "Failed to delete developer user",
    TENANT.name: "Failed to delete tenant",
    BACKEND.name: "Failed to delete backend",
    ACTIVE_DOC.name: "Failed to delete ActiveDoc",
    CUSTOM_POLICY_DEFINITION.name: "Failed to delete CustomPolicyDefinition",
}


def notices(kind: Kind, decision: Decision) -> tuple[Notice, ...]:
    reason = _reason(kind, decision)
    events = (warning(reason, decision.why),) if reason else ()
    if decision.phase == Phase.DELETING and any(isinstance(each, DeleteObject) for each in decision.actions):
        events = (*events, normal(GOES_ALONG, decision.why))
    if kind == APPLICATION and decision.phase == Phase.SYNCING and any(map(_ends_application, decision.actions)):
        message = "the application is created again for another product, with a new id and new credentials"
        events = (*events, normal(MADE_ANEW, message))
    return events


def left_aside(what: str) -> Notice:
    """The warning about an ignored part of a spec. As with the replaced operator, the message is also the reason."""
    return warning(what, what)


def _ends_application(action: object) -> bool:
    return isinstance(action, Write) and action.resource is Resource.APPLICATION and action.method == "DELETE"


def _reason(kind: Kind, decision: Decision) -> str:
    match decision.phase:
        case Phase.INVALID:
            return INVALID.get(kind.name, RECONCILE_ERROR)
        case Phase.FAILED:
            return RECONCILE_ERROR
        case Phase.DELETING if decision.deadline is not None and not decision.waits_for:
            return STUCK.get(kind.name, RECONCILE_ERROR)
        case Phase.ORPHAN if kind == TENANT:
            return RECONCILE_ERROR
        case _:
            return ""
