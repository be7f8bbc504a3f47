"""What Kubernetes Events say of an object, with the reasons that the replaced operator gives: all of them are warnings.

What is waited for is no warning: the status and `why` tell of it; only a Tenant warns of a missing Secret, as with the
replaced operator. Perdure's own, which are none, tell before it is done what people would not expect: that an object
is deleted with another, or that an application is created again.
"""

from __future__ import annotations

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
from domain.threescale.calls import Resource
from domain.threescale.work import Phase, Work

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


def notices(kind: Kind, work: Work) -> tuple[Notice, ...]:
    """What there is to tell of what is decided."""
    reason = _reason(kind, work)
    told = (warning(reason, work.why),) if reason else ()
    if going := _going(kind, work):
        told = (*told, normal(*going))
    # What of a spec is left aside is its own reason, as the replaced operator tells it.
    return (*told, *(warning(each, each) for each in work.warnings))


def _going(kind: Kind, work: Work) -> tuple[str, str] | None:
    """Reason and message of what is told beforehand."""
    if work.delete and work.phase is Phase.DELETING:
        return GOES_ALONG, work.why
    deletes = any(each.resource is Resource.APPLICATION and each.method == "DELETE" for each in work.writes)
    if kind == APPLICATION and deletes and work.phase is Phase.SYNCING:
        return MADE_ANEW, "it is created again for its other product, with a new id and new credentials"
    return None


def _reason(kind: Kind, work: Work) -> str:
    match work.phase:
        case Phase.INVALID:
            return INVALID.get(kind.name, RECONCILE_ERROR)
        case Phase.FAILED:
            return RECONCILE_ERROR
        case Phase.DELETING if work.deadline is not None and not work.waits_for:
            return STUCK.get(kind.name, RECONCILE_ERROR)
        case Phase.ORPHAN if kind == TENANT:
            return RECONCILE_ERROR
        case _:
            return ""
