"""Federated roles and accesses as the tables of decisions need them, and a cloud that does what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.federated.access import decide as decide_access
from domain.accounts.federated.actions import CustomerAccount, DeleteAccesses, IdentifyCustomer, ValidatePolicies
from domain.accounts.federated.observed import FederatedAccessWorld, FederatedRoleWorld, SeenAccess, Verdict
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.federated.role import ALL_VALID, MESSAGES
from domain.accounts.federated.role import decide as decide_role
from domain.decision import Action, Decision, World
from domain.model import Model
from domain.refusal import ErrorType, Refusal
from domain.resource import Condition, condition_of, timestamp
from domain.writes import DropFinalizer, Patch, Written

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
ACCOUNT_ID = "111122223333"
OUTSIDER = "arn:aws:iam::999988887777:user/outsider"
TENANT = "tenant"
STATEMENT: dict[str, Any] = {"effect": "Allow", "action": ["ec2:DescribeInstances"], "resource": ["*"]}
CUSTOM: dict[str, Any] = {"name": "reader", "description": "reads", "awsStatements": [STATEMENT]}
BOTH: dict[str, Any] = {"awsManagedPolicies": ["AmazonEC2ReadOnlyAccess"], "awsCustomPolicy": CUSTOM}

Effect = Callable[[Action], Model | Refusal | None]


def role(*, status: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None, **spec: Any) -> Any:
    """A role with both sorts of policies and our finalizer."""
    metadata = {
        "name": "read-only",
        "namespace": OPERATOR_NAMESPACE,
        "uid": "uid-of-role",
        "generation": 1,
        "resourceVersion": "5",
        "finalizers": [FINALIZER],
        **(meta or {}),
    }
    wanted = {"roleDisplayName": "Read only", "roleDescription": "reads all", **BOTH, **spec}
    return AWSFederatedRole.model_validate({"metadata": metadata, "spec": wanted, "status": status or {}})


def access(*, status: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None, **spec: Any) -> Any:
    """A new access to that role."""
    metadata = {
        "name": "access",
        "namespace": TENANT,
        "uid": "uid-of-access",
        "generation": 1,
        "resourceVersion": "5",
        **(meta or {}),
    }
    wanted = {
        "externalCustomerAWSIAMARN": OUTSIDER,
        "awsCustomerCredentialSecret": {"name": "customer", "namespace": TENANT},
        "awsFederatedRole": {"name": "read-only", "namespace": OPERATOR_NAMESPACE},
        **spec,
    }
    return AWSFederatedAccountAccess.model_validate({"metadata": metadata, "spec": wanted, "status": status or {}})


def role_world(of: AWSFederatedRole, *accesses: SeenAccess, config: OperatorConfig | None = None) -> FederatedRoleWorld:
    """What a role's decision sees."""
    return FederatedRoleWorld(key=of.key, role=of, accesses=accesses, config=config or OperatorConfig())


def access_world(of: AWSFederatedAccountAccess, to: AWSFederatedRole | None) -> FederatedAccessWorld:
    """What an access's decision sees."""
    return FederatedAccessWorld(key=of.key, access=of, role=to)


def seen(name: str = "access", *, deleting: bool = False) -> SeenAccess:
    """An access that a role sees."""
    return SeenAccess(key=access(meta={"name": name, "uid": f"uid-{name}"}).key, deleting=deleting)


def obliging(action: Action) -> Model | None:
    """A cloud that does everything."""
    if isinstance(action, ValidatePolicies):
        return Verdict(generation=action.generation, valid=True, reason=ALL_VALID, message=MESSAGES[ALL_VALID])
    return CustomerAccount(account_id=ACCOUNT_ID) if isinstance(action, IdentifyCustomer) else None


def refusing(activity: str, type_: ErrorType = ErrorType.DENIED, code: str = "AccessDenied") -> Effect:
    """A cloud that refuses one activity and does everything else."""

    def effect(action: Action) -> Model | Refusal | None:
        if action.activity == activity:
            return Refusal(type=type_, message=f"{activity} is refused [request 1]", code=code, at=NOW)
        return obliging(action)

    return effect


def live(world: World, effect: Effect = obliging, most: int = 30) -> tuple[World, Decision, list[str]]:
    """Carry out decisions until one asks for nothing new: the world then, the last decision, what was done."""
    decide: Any = decide_role if isinstance(world, FederatedRoleWorld) else decide_access
    done: list[str] = []
    for _ in range(most):
        decision = decide(world, NOW)
        actions = [action for action in decision.actions if action.slot not in world.refusals]
        if not actions or decision.gone:
            return world, decision, done
        for action in actions:
            done.append(_word(action))
            world = _carried_out(world, action, effect)
    raise AssertionError(f"no end: {done}")


def _word(action: Action) -> str:
    if isinstance(action, DropFinalizer):
        return "drop"
    return f"write {action.subresource or 'object'}" if isinstance(action, Patch) else action.activity.split(".")[1]


def _carried_out(world: Any, action: Action, effect: Effect) -> Any:
    if isinstance(action, DropFinalizer):
        return world.model_copy(update={"exists": False})
    if isinstance(action, Patch):
        return action.fold(world, Written(resource_version=str(int(action.resource_version) + 1)))
    if isinstance(action, DeleteAccesses):
        gone = {key.name for key in action.accesses}
        finalized = tuple(each for each in world.accesses if each.key.name not in gone)
        return world.model_copy(update={"accesses": finalized})
    answer = effect(action)
    return action.refuse(world, answer) if isinstance(answer, Refusal) else action.fold(world, answer)


def condition(of: Any, type_: str) -> Condition | None:
    """A condition of an object."""
    return condition_of(of.status.conditions, type_)


MOMENT = timestamp(NOW)
