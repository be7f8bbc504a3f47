"""The effects of federated roles and accesses.

Every step looks at what is there, and changes only what is not as it should be: a repeated step changes nothing. The
customer's keys are read by the activities, from the Secret that the access names, and never leave them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import ClassVar

from domain.accounts.federated.resources import CustomPolicy
from domain.accounts.federated.worlds import FederatedAccessWorld, FederatedRoleWorld, Verdict
from domain.decision import Action, Facts, Queue
from domain.identity import Key
from domain.model import Model
from domain.resource import SecretReference

# A role may have hundreds of accesses, and the API server may let a client make only a few requests a second.
ALL_ACCESSES = timedelta(minutes=10)

# --- of roles ---


class ValidatePolicies(Action):
    """Have IAM judge a custom policy, by making it in the payer's account and deleting it; look for AWS's policies.

    IAM's own verdict is the one that counts in the customers' accounts; Access Analyzer's ValidatePolicy has another
    one (it finds fault with actions that IAM takes). What a torn attempt left is found by its name, and goes first.
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
        """The verdict."""
        assert isinstance(result, Verdict)  # noqa: S101 - the activity's type
        return world.learn(verdict=result)


class ClearValidation(Action):
    """Delete the policy that a torn validation may have left in the payer's account."""

    activity: ClassVar[str] = "aws.clear_validation"
    title: ClassVar[str] = "delete policies that a validation has left behind"
    learns: ClassVar[Mapping[str, object]] = {"cleared": True}
    queue: ClassVar[str] = Queue.AWS

    uid: str


class StampAccesses(Action):
    """Write on each access of a role when the role was validated: they look at it anew."""

    activity: ClassVar[str] = "accounts.stamp_accesses"
    start_to_close: ClassVar[timedelta] = ALL_ACCESSES

    accesses: tuple[Key, ...]
    stamp: str
    generation: int

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"wake {len(self.accesses)} accesses"

    def fold(self, world: FederatedRoleWorld, result: Model | None) -> FederatedRoleWorld:  # type: ignore[override]
        """They know."""
        return world.learn(stamped=self.generation)


class DeleteAccesses(Action):
    """Delete the accesses of a role that is being deleted; each cleans up by itself."""

    activity: ClassVar[str] = "accounts.delete_accesses"
    observed_after: ClassVar[bool] = True
    start_to_close: ClassVar[timedelta] = ALL_ACCESSES

    accesses: tuple[Key, ...]

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"delete {len(self.accesses)} accesses"


# --- of accesses ---


class CustomerAction(Action):
    """An effect in a customer's account, with the keys of the customer's Secret."""

    queue: ClassVar[str] = Queue.AWS
    start_to_close: ClassVar[timedelta] = timedelta(minutes=3)

    secret: SecretReference
    partition: str = "aws"


class CustomerAccount(Facts):
    """Whose account the customer's keys open."""

    account_id: str


class IdentifyCustomer(CustomerAction):
    """Ask AWS which account the customer's keys open. Denied: none, dead ones, a protected account."""

    activity: ClassVar[str] = "aws.identify_customer"
    title: ClassVar[str] = "find the owner of the account"
    result: ClassVar[type[Model] | None] = CustomerAccount


class GrantAction(CustomerAction):
    """A step on the way to an access. `digest` is what is wanted; names end with `uid`."""

    account_id: str
    uid: str
    access_uid: str
    digest: str


class EnsureAccessPolicy(GrantAction):
    """The custom policy `<name>-<uid>`, with this document as its default version."""

    activity: ClassVar[str] = "aws.ensure_access_policy"
    title: ClassVar[str] = "create policy {name} in {account_id}"

    name: str
    description: str
    document: str

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        """Done."""
        return world.learn(policy=self.digest)


class EnsureAccessRole(GrantAction):
    """The role `<role>-<uid>`, which trusts the outside identity."""

    activity: ClassVar[str] = "aws.ensure_access_role"
    title: ClassVar[str] = "create role {name} in {account_id}"

    name: str
    description: str
    principal: str

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        """Done."""
        return world.learn(role=self.digest)


class AttachAccessPolicies(GrantAction):
    """The role has these policies; with `exact` no others, whose custom ones of this access are deleted.

    What Perdure finds granted by the replaced operator is completed only: it does not know what else was agreed.
    """

    activity: ClassVar[str] = "aws.attach_access_policies"
    title: ClassVar[str] = "set the policies of {role}"

    role: str
    custom: str
    managed: tuple[str, ...]
    exact: bool

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        """Done."""
        return world.learn(attached=self.digest)


class RevokeAccess(CustomerAction):
    """Delete an access's role and custom policies.

    The payer enters the account, where it may and the role says whose it is; else the customer's own keys do it. An
    account that AWS has closed keeps nothing that could be deleted. `custom` is the policy's name if it is known.
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
    moving: bool = False  # the access lives on, under another role

    def fold(self, world: FederatedAccessWorld, result: Model | None) -> FederatedAccessWorld:  # type: ignore[override]
        """Done."""
        return world.learn(moved_from=self.role) if self.moving else world.learn(revoked=True)
