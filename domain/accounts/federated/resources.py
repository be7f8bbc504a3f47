"""AWSFederatedRole and AWSFederatedAccountAccess, with all fields (group aws.managed.openshift.io, version v1alpha1).

Perdure's additions `status.observedGeneration` and `status.granted` identify the spec behind the state, so that
unchanged objects need no call to AWS.
"""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from pydantic import Field

from domain.accounts import AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.federated import ACCOUNT_LABEL, UID_LABEL
from domain.identity import Kind
from domain.model import Model
from domain.resource import AGE, Condition, CustomResource, KubeModel, PrinterColumn, SecretReference
from domain.schema import MapByType, Required

_STATE = PrinterColumn(name="State", type="string", json_path=".status.state")


class RoleState:
    """Values of an AWSFederatedRole's `status.state`; empty before a validation, or without policies."""

    NEW = ""
    VALID = "Valid"
    INVALID = "Invalid"


class AccessState:
    NEW = ""
    READY = "Ready"
    FAILED = "Failed"


class PolicyCondition(KubeModel):
    """A condition under which a statement applies."""

    string_equals: dict[str, str] = Field(
        {}, alias="StringEquals", description="Condition keys, each with the value that it must equal."
    )
    string_like: dict[str, str] = Field(
        {},
        alias="StringLike",
        description="Condition keys, each with the pattern that it must match; `*` and `?` are wildcards.",
    )


class PolicyPrincipal(KubeModel):
    """The principals of a statement."""

    aws: Required[tuple[str, ...]] = Field((), alias="AWS", description="ARNs of AWS principals.")


class PolicyStatement(KubeModel):
    """One statement of a policy."""

    effect: Required[str] = Field("", description="Allow or Deny.")
    action: Required[tuple[str, ...]] = Field((), description="The actions that the statement covers.")
    resource: tuple[str, ...] = Field((), description="The resources that the statement covers.")
    condition: PolicyCondition | None = Field(None, description="When the statement applies.")
    principal: PolicyPrincipal | None = Field(None, description="The principals that the statement covers.")


class CustomPolicy(KubeModel):
    """A policy that is created in each account, for each access."""

    name: Required[str] = Field("", description="The beginning of the policy's name; the access's uid follows.")
    description: Required[str] = Field("", description="The policy's description in IAM.")
    aws_statements: Required[tuple[PolicyStatement, ...]] = Field((), description="The policy's statements.")


class FederatedRoleSpec(KubeModel):
    """The role's name and permissions."""

    role_display_name: Required[str] = Field("", description="The role's name, to be read by people.")
    role_description: Required[str] = Field("", description="The description of this object and of its IAM roles.")
    aws_managed_policies: tuple[str, ...] = Field((), description="Names of policies that AWS manages.")
    aws_custom_policy: CustomPolicy = Field(CustomPolicy(), description="A custom policy that is created for the role.")


class FederatedRoleStatus(KubeModel):
    """Whether IAM accepts the policies; conditions are a map by type."""

    conditions: Required[MapByType[tuple[Condition, ...]]] = Field((), description="Results of validations.")
    state: Required[str] = Field("", description="Valid or Invalid; empty at first.")
    observed_generation: int = Field(0, description="The generation of the spec that was validated.")


class AWSFederatedRole(CustomResource):
    """The permissions of any number of federated accesses."""

    kind_of: ClassVar[Kind] = AWS_FEDERATED_ROLE
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (_STATE, AGE)

    spec: FederatedRoleSpec = FederatedRoleSpec()
    status: FederatedRoleStatus = FederatedRoleStatus()

    @property
    def outside(self) -> tuple[str, ...]:
        return (f"the accesses that name {self.metadata.name}, with their roles in customers' accounts",)


class RoleReference(KubeModel):
    """An AWSFederatedRole by name and namespace."""

    name: Required[str] = Field("", description="The AWSFederatedRole's name.")
    namespace: Required[str] = Field("", description="The AWSFederatedRole's namespace.")


class FederatedAccessSpec(KubeModel):
    """The outside identity, its role, and the account."""

    external_customer_aws_iam_arn: Required[str] = Field(
        "", alias="externalCustomerAWSIAMARN", description="The outside identity that may assume the role."
    )
    aws_customer_credential_secret: Required[SecretReference] = Field(
        SecretReference(), description="The Secret with the customer's credentials, in the object's own namespace."
    )
    aws_federated_role: Required[RoleReference] = Field(RoleReference(), description="The role's permissions.")


class FederatedAccessStatus(KubeModel):
    """The access's state; conditions are a map by type."""

    conditions: Required[MapByType[tuple[Condition, ...]]] = Field((), description="What happened to the access.")
    console_url: str = Field("", alias="consoleURL", description="The page of AWS's console that switches to the role.")
    state: Required[str] = Field("", description="Ready or Failed; empty at first.")
    granted: str = Field("", description="A digest of the role's policies and principals.")


class Place(Model):
    """The AWS account of an access's role, the suffix of the access's names in AWS, and the role's recorded name."""

    account_id: str
    uid: str
    role: str = ""


class AWSFederatedAccountAccess(CustomResource):
    """A federated role in one account."""

    kind_of: ClassVar[Kind] = AWS_FEDERATED_ACCOUNT_ACCESS
    printer_columns: ClassVar[tuple[PrinterColumn, ...]] = (_STATE, AGE)

    spec: FederatedAccessSpec = FederatedAccessSpec()
    status: FederatedAccessStatus = FederatedAccessStatus()

    @property
    def owner(self) -> str:
        role = self.spec.aws_federated_role
        return f"{AWS_FEDERATED_ROLE.name}/{role.namespace}/{role.name}" if role.name else ""

    @property
    def place(self) -> Place:
        """Read from `status.consoleURL`, which tenants cannot write; from the labels if that URL names no role."""
        query = parse_qs(urlsplit(self.status.console_url).query)
        account_id, role = (query.get(name, [""])[0] for name in ("account", "roleName"))
        if account_id and "-" in role:
            return Place(account_id=account_id, uid=role.rsplit("-", 1)[-1], role=role)
        labels = self.metadata.labels
        return Place(account_id=labels.get(ACCOUNT_LABEL, ""), uid=labels.get(UID_LABEL, ""))

    @property
    def outside(self) -> tuple[str, ...]:
        place, role = self.place, self.spec.aws_federated_role.name
        if not (place.account_id and place.uid):
            return ()
        name = place.role or f"{role}-{place.uid}"
        return (f"IAM role {name} and policies whose names end in -{place.uid} in AWS account {place.account_id}",)
