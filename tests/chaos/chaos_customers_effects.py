"""Every effect of claims that bring their account, of fleet managers' and of fake ones, in the order of their lives."""

from __future__ import annotations

from typing import Any

from chaos_cluster import OPERATOR
from chaos_effects import AwsCall, Effect, KubeCall, Lifecycle
from chaos_proxy import Request

SUPPORT = "ManagedOpenShift-Support"
FLEET_ROLE = "managed-sts-role"
CLAIMS, ACCOUNTS = "accountclaims", "accounts"
# How the namespaces begin that the turns make; those of the other turns begin otherwise.
CUSTOMER, FLEET = "customer-", "fleet-"


def _effect(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    return Effect(Lifecycle.CUSTOMER, activity, call)


def _iam(action: str, activity: str, containing: str = "") -> tuple[Effect, ...]:
    return (_effect(AwsCall("iam", action, containing=containing or None), activity),)


def _part(request: Request, part: str) -> dict[str, Any]:
    found = request.body.get(part)
    return found if isinstance(found, dict) else {}


def _within(request: Request, place: str) -> bool:
    return f"/{place}" in request.path


def _spec(plural: str, field: str, place: str = "") -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", plural) and bool(_part(request, "spec").get(field)) and _within(request, place)

    return KubeCall(f"PATCH-{plural}-{field}", matches)


def _emptied(plural: str, field: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", plural) and _part(request, "spec").get(field) == ""

    return KubeCall(f"PATCH-{plural}-{field}-emptied", matches)


def _state(plural: str, state: str, place: str = "") -> KubeCall:
    def matches(request: Request) -> bool:
        written = request.of("PATCH", plural, "status") and _part(request, "status").get("state") == state
        return written and _within(request, place)

    return KubeCall(f"PATCH-{plural}-status-{state}", matches)


def _dropped(plural: str, place: str = "") -> KubeCall:
    def matches(request: Request) -> bool:
        dropped = request.of("PATCH", plural) and _part(request, "metadata").get("finalizers") == []
        return dropped and _within(request, place)

    return KubeCall(f"PATCH-{plural}-finalizer-dropped", matches)


def _secret(method: str, name: str, place: str = CUSTOMER) -> KubeCall:
    return KubeCall(f"{method}-{name}", lambda request: request.of(method, "secrets") and _within(request, place))


BRINGING: tuple[tuple[Effect, ...], ...] = (
    (_effect(_secret("PATCH", "input-secret-held"), "accounts.hold_input_secret"),),
    (
        _effect(
            KubeCall("POST-accounts", lambda request: request.of("POST", ACCOUNTS)), "accounts.make_customer_account"
        ),
    ),
    (_effect(_spec(CLAIMS, "accountLink", CUSTOMER)),),
    (_effect(_state(ACCOUNTS, "Creating")),),
    _iam("CreateRole", "aws.ensure_support_role", SUPPORT),
    _iam("AttachRolePolicy", "aws.ensure_support_role", SUPPORT),
    _iam("CreateUser", "aws.ensure_admin_user"),
    _iam("CreateAccessKey", "aws.ensure_admin_user"),
    (_effect(_spec(ACCOUNTS, "iamUserSecret")),),
    (_effect(_state(ACCOUNTS, "InitializingRegions")),),
    (_effect(AwsCall("ec2", "RunInstances"), "aws.initialize_region"),),
    (_effect(AwsCall("ec2", "TerminateInstances"), "aws.initialize_region"),),
    (_effect(_state(ACCOUNTS, "Ready")),),
    (_effect(_state(CLAIMS, "Ready", CUSTOMER)),),
    (_effect(_secret("POST", "claim-secret"), "accounts.deliver_credentials"),),
    (_effect(_spec(CLAIMS, "supportRoleARN", CUSTOMER), "accounts.deliver_credentials"),),
)

TAKING_AWAY: tuple[tuple[Effect, ...], ...] = (
    (_effect(_secret("DELETE", "claim-secret"), "accounts.remove_secret"),),
    (_effect(KubeCall("DELETE-accounts", lambda request: request.of("DELETE", ACCOUNTS)), "kube.delete"),),
    _iam("DeleteAccessKey", "aws.delete_identities"),
    _iam("DeleteUser", "aws.delete_identities"),
    _iam("DeleteRole", "aws.delete_identities", SUPPORT),
    (_effect(_dropped(ACCOUNTS)),),
    (_effect(_secret("PATCH", "input-secret-free"), "accounts.let_secrets_go"),),
    (_effect(_dropped(CLAIMS, CUSTOMER)),),
)

# A deletion in the middle of an initialisation looks for what that may have left, and ends it.
CUTTING: tuple[tuple[Effect, ...], ...] = (
    (_effect(AwsCall("ec2", "DescribeInstances", containing="Filter.1"), "aws.end_launches"),),
    (_effect(AwsCall("ec2", "TerminateInstances"), "aws.end_launches"),),
)

# A fleet manager's claim has a role in the place of a key.
EQUIPPING: tuple[tuple[Effect, ...], ...] = (
    _iam("CreateRole", "aws.ensure_fleet_role", FLEET_ROLE),
    _iam("PutRolePolicy", "aws.ensure_fleet_role"),
    _iam("DeleteUser", "aws.ensure_fleet_role"),
    (_effect(_secret("POST", "role-secret", FLEET), "accounts.deliver_role"),),
    (_effect(_secret("DELETE", "key-secret", OPERATOR), "accounts.deliver_role"),),
    (_effect(_emptied(ACCOUNTS, "iamUserSecret"), "accounts.deliver_role"),),
    (_effect(_state(CLAIMS, "Ready", FLEET)),),
)

# The role goes first; when the account is clean it gets a key again.
STRIPPING: tuple[tuple[Effect, ...], ...] = (
    _iam("DeleteRolePolicy", "aws.delete_fleet_role"),
    _iam("DeleteRole", "aws.delete_fleet_role", FLEET_ROLE),
    (_effect(_secret("DELETE", "role-secret", FLEET), "accounts.release"),),
    (_effect(_dropped(CLAIMS, FLEET)),),
    _iam("CreateUser", "aws.ensure_admin_user"),
    (_effect(_spec(ACCOUNTS, "iamUserSecret")),),
)

PRETENDING: tuple[tuple[Effect, ...], ...] = (
    (_effect(_secret("POST", "dummy-secret"), "accounts.fake_secret"),),
    (_effect(_state(CLAIMS, "Ready", CUSTOMER)),),
)


def customer_effects() -> tuple[Effect, ...]:
    """All of them."""
    rows = (*BRINGING, *TAKING_AWAY, *CUTTING, *EQUIPPING, *STRIPPING, *PRETENDING)
    return tuple(effect for row in rows for effect in row)
