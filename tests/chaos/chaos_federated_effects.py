"""Every effect of federated roles and accesses, in the order of granting, renewing and taking back.

Role and access are two lifecycles side by side: effects of one row can be under way at the same moment.
"""

from __future__ import annotations

from typing import Any

from chaos_effects import AwsCall, Effect, KubeCall, Lifecycle
from chaos_proxy import Request

ROLES, ACCESSES = "awsfederatedroles", "awsfederatedaccountaccesses"
# How the names begin of what the turns make.
ROLE, POLICY = "insight", "ledgers"
JUDGED = "perdure-validation"


def _effect(call: AwsCall | KubeCall, activity: str = "kube.patch") -> Effect:
    return Effect(Lifecycle.FEDERATED, activity, call)


def _iam(action: str, activity: str, containing: str) -> Effect:
    return _effect(AwsCall("iam", action, containing=containing), activity)


def _meta(request: Request, part: str) -> Any:
    return request.body.get("metadata", {}).get(part)


def _labelled(label: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", ACCESSES) and label in (_meta(request, "labels") or {})

    return KubeCall(f"PATCH-{ACCESSES}-{label}", matches)


def _finalized(plural: str, *, dropped: bool = False) -> KubeCall:
    def matches(request: Request) -> bool:
        finalizers = _meta(request, "finalizers")
        return request.of("PATCH", plural) and finalizers is not None and bool(finalizers) is not dropped

    return KubeCall(f"PATCH-{plural}-finalizer{'-dropped' if dropped else ''}", matches)


def _state(plural: str, state: str) -> KubeCall:
    def matches(request: Request) -> bool:
        return request.of("PATCH", plural, "status") and request.body.get("status", {}).get("state") == state

    return KubeCall(f"PATCH-{plural}-status-{state}", matches)


def _get(plural: str) -> KubeCall:
    return KubeCall(f"GET-{plural}", lambda request: request.of_one("GET", plural))


_STAMP = KubeCall(
    f"PATCH-{ACCESSES}-lastRoleUpdate",
    lambda request: request.of("PATCH", ACCESSES) and "lastRoleUpdate" in (_meta(request, "annotations") or {}),
)

# An access asks whose key its customer gave.
ASKING = (_effect(AwsCall("sts", "GetCallerIdentity"), "aws.identify_customer"),)
GRANTING: tuple[tuple[Effect, ...], ...] = (
    (
        _effect(_get(ROLES), "accounts.observe_federated_role"),
        _effect(_get(ACCESSES), "accounts.observe_federated_access"),
    ),
    (_effect(_finalized(ROLES)), _effect(_labelled("uid"))),
    (_iam("CreatePolicy", "aws.validate_policies", JUDGED),),
    (_iam("DeletePolicy", "aws.validate_policies", JUDGED),),
    ASKING,
    (_effect(_labelled("awsAccountID")), _effect(_STAMP, "accounts.stamp_accesses")),
    (_iam("CreatePolicy", "aws.ensure_access_policy", f"PolicyName={POLICY}"), _effect(_state(ROLES, "Valid"))),
    (_iam("CreateRole", "aws.ensure_access_role", ROLE),),
    (_iam("AttachRolePolicy", "aws.attach_access_policies", ROLE),),
    (_effect(_state(ACCESSES, "Ready")),),
)
RENEWING: tuple[tuple[Effect, ...], ...] = (
    (_effect(_STAMP, "accounts.stamp_accesses"),),
    (_iam("CreatePolicyVersion", "aws.ensure_access_policy", POLICY),),
    (_iam("DetachRolePolicy", "aws.attach_access_policies", ROLE),),
    (_effect(_state(ACCESSES, "Ready")),),
)
ENDING: tuple[tuple[Effect, ...], ...] = (
    (
        _effect(
            KubeCall(f"DELETE-{ACCESSES}", lambda request: request.of("DELETE", ACCESSES)), "accounts.delete_accesses"
        ),
    ),
    (_iam("DetachRolePolicy", "aws.revoke_access", ROLE),),
    (_iam("DeletePolicy", "aws.revoke_access", POLICY),),
    (_iam("DeleteRole", "aws.revoke_access", ROLE),),
    (_effect(_finalized(ACCESSES, dropped=True)),),
    (_iam("ListPolicyVersions", "aws.clear_validation", JUDGED),),
    (_effect(_finalized(ROLES, dropped=True)),),
)


def federated_effects() -> tuple[Effect, ...]:
    """All of them."""
    return tuple(effect for row in (*GRANTING, *RENEWING, *ENDING) for effect in row)
