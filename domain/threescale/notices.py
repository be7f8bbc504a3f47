"""What Kubernetes Events say of an object, with the reasons that the replaced operator gives: all of them are warnings.

What is waited for is no warning: the status and `why` tell of it; only a Tenant warns of a missing Secret, as with the
replaced operator. Perdure's own, which are none, tell before it is done what people would not expect: that an object
is deleted with another, or that an application is created again.
"""

from __future__ import annotations

from domain.decision import Decision
from domain.identity import Kind
from domain.notices import Notice, normal, warning
from domain.threescale import (
    ACTIVE_DOC,
    APPLICATION,
    APPLICATION_AUTH,
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
# Told of a deletion that does not get on.
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


def recorder_of(kind: Kind) -> str:
    """Who tells; the replaced operator's recorder of ApplicationAuths is called as that of Applications."""
    return APPLICATION.name if kind == APPLICATION_AUTH else kind.name


def notices(kind: Kind, decision: Decision) -> tuple[Notice, ...]:
    """What there is to tell of a decision."""
    reason = _reason(kind, decision)
    told = (warning(reason, decision.why),) if reason else ()
    if decision.phase == Phase.DELETING and any(isinstance(each, DeleteObject) for each in decision.actions):
        told = (*told, normal(GOES_ALONG, decision.why))
    if kind == APPLICATION and decision.phase == Phase.SYNCING and any(map(_ends_application, decision.actions)):
        message = "it is created again for its other product, with a new id and new credentials"
        told = (*told, normal(MADE_ANEW, message))
    return told


def left_aside(what: str) -> Notice:
    """What of a spec is left aside is its own reason, as the replaced operator tells it."""
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
