"""The actions of federated roles and accesses.

Every action changes only what differs, so it can be repeated. Activities read the customer's keys from the access's
Secret, and never return them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.actions.account_access import MakingAction
from domain.accounts.federated.observed import FederatedAccessWorld, FederatedRoleWorld, Verdict
from domain.accounts.federated.resources import CustomPolicy
from domain.decision import Action, Facts, Queue
from domain.identity import Key
from domain.model import Model
from domain.resource import SecretReference

# A role may have hundreds of accesses, and the API server may allow only a few requests a second.
ALL_ACCESSES = timedelta(minutes=10)


class ValidatePolicies(Action):
    """Validate the custom policy by creating and deleting it in the payer's account. Check that AWS's managed policies
    exist.
    """

    activity: ClassVar[str] = "aws.validate_policies"
    slot_by: ClassVar[str] = "generation"
    title: ClassVar[str] = "validate the policies with IAM"
    queue: ClassVar[str] = Queue.AWS
    result: ClassVar[type[Model] | None] = Verdict

    uid: str
    generation: int
    custom: CustomPolicy
    managed: tuple[str, ...]

    def fold(self, world: FederatedRoleWorld, result: Model | None) -> FederatedRoleWorld:  # type: ignore[override]
        assert isinstance(result, Verdict)  # noqa: S101 - the activity's type
        return world.learn(verdict=result)


class ClearValidation(Action):
    activity: ClassVar[str] = "aws.clear_validation"
    title: ClassVar[str] = "delete policies that a validation has left behind"
    learns: ClassVar[Mapping[str, object]] = {"cleared": True}
    queue: ClassVar[str] = Queue.AWS

    uid: str


class StampAccesses(Action):
    activity: ClassVar[str] = "accounts.stamp_accesses"
    start_to_close: ClassVar[timedelta] = ALL_ACCESSES

    accesses: tuple[Key, ...]
    stamp: str
    generation: int

    @property
    def summary(self) -> str:
        return f"wake {len(self.accesses)} accesses"

    def fold(self, world: FederatedRoleWorld, result: Model | None) -> FederatedRoleWorld:  # type: ignore[override]
        return world.learn(stamped=self.generation)


class DeleteAccesses(Action):
    activity: ClassVar[str] = "accounts.delete_accesses"
    observed_after: ClassVar[bool] = True
    start_to_close: ClassVar[timedelta] = ALL_ACCESSES

    accesses: tuple[Key, ...]

    @property
    def summary(self) -> str:
        return f"delete {len(self.accesses)} accesses"


class CustomerAction(Action):
    queue: ClassVar[str] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=3)

    secret: SecretReference
    partition: str = "aws"


class CustomerAccount(Facts):
    account_id: str


class IdentifyCustomer(CustomerAction):
    """Raises Denied if the customer's keys are missing or invalid, or if they give access to a protected account."""

    activity: ClassVar[str] = "aws.identify_customer"
    title: ClassVar[str] = "find the AWS account of the customer's keys"
    result: ClassVar[type[Model] | None] = CustomerAccount


class GrantAction(MakingAction, CustomerAction):
    """A step that grants access. If it succeeds, the memory's field named by `step` becomes `digest`, which identifies
    the wanted state. Names in AWS end with `uid`.
    """

    step: ClassVar[str]
    undone: ClassVar[str] = "revoked"

    account_id: str
    uid: str
    access_uid: str
    digest: str

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        return super().fold(world, result).learn(**{self.step: self.digest})


class EnsureAccessPolicy(GrantAction):
    activity: ClassVar[str] = "aws.ensure_access_policy"
    title: ClassVar[str] = "create policy {name} in {account_id}"
    step: ClassVar[str] = "policy"

    name: str
    description: str
    document: str


class EnsureAccessRole(GrantAction):
    activity: ClassVar[str] = "aws.ensure_access_role"
    title: ClassVar[str] = "create role {name} in {account_id}"
    step: ClassVar[str] = "role"

    name: str
    description: str
    principal: str

    def cancelled(self, world: FederatedAccessWorld) -> FederatedAccessWorld:  # type: ignore[override]
        return super().cancelled(world).learn(made=self.name, moved_from="")


class AttachAccessPolicies(GrantAction):
    """With `exact`, policies that are not wanted are detached, and this access's former custom policies are deleted.
    `exact` is False for a grant by the replaced operator, to which people may have added policies.
    """

    activity: ClassVar[str] = "aws.attach_access_policies"
    title: ClassVar[str] = "set the policies of {role}"
    step: ClassVar[str] = "attached"

    role: str
    custom: str
    managed: tuple[str, ...]
    exact: bool


class RevokeAccess(CustomerAction):
    """Delete the role and its policies. If the payer can enter the account, only objects that are recognised as this
    access's are deleted. Otherwise the customer's keys are used, and names suffice. In a closed account nothing is left
    to delete. `custom` is the policy's name; empty if unknown.
    """

    activity: ClassVar[str] = "aws.revoke_access"
    slot_by: ClassVar[str] = "role"
    title: ClassVar[str] = "delete role {role} and its policies in {account_id}"

    account_id: str
    uid: str
    access_uid: str
    role: str
    custom: str
    principal: str
    moving: bool = False  # the access continues with another role

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        return world.learn(moved_from=self.role) if self.moving else world.learn(revoked=True)
