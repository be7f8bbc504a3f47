"""Grants federated access: creates a role with its policies in the customer's account.

`federated_revocation.py` deletes them. A custom policy is changed by a new default version, so its role is never
without the policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio import activity

from activities import attempt
from activities.activity_class import Activities
from activities.aws.customer_credentials import customer, customer_in
from activities.aws.federated_revocation import revoke_access
from activities.aws.iam_policies import (
    attached_policies,
    is_aws,
    made,
    managed_policies,
    name_of,
    remove_policy,
    same_trust,
    set_document,
    there,
)
from activities.aws.session import Sessions
from activities.aws.tags import tag_list
from domain.accounts.federated import ACCESS_TAG
from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    CustomerAccount,
    EnsureAccessPolicy,
    EnsureAccessRole,
    GrantAction,
    IdentifyCustomer,
    RevokeAccess,
)
from domain.accounts.federated.policies import policy_arn, trust
from engine.errors import Absent

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient


class FederatedActivities(Activities):
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @activity.defn(name=IdentifyCustomer.activity, no_thread_cancel_exception=True)
    def identify_customer(self, action: IdentifyCustomer) -> CustomerAccount:
        account_id = customer(self._sessions, action.secret, action.partition).account_id()
        self._sessions.refuse_protected(account_id)
        return CustomerAccount(account_id=account_id)

    @activity.defn(name=EnsureAccessPolicy.activity, no_thread_cancel_exception=True)
    def ensure_access_policy(self, action: EnsureAccessPolicy) -> None:
        iam = self._iam(action)
        arn = policy_arn(action.partition, action.account_id, action.name)
        if there(lambda: iam.get_policy(PolicyArn=arn)) or not made(
            lambda: iam.create_policy(
                PolicyName=action.name,
                Description=action.description,
                PolicyDocument=action.document,
                Tags=tag_list({ACCESS_TAG: action.access_uid}),
            )
        ):
            set_document(iam, arn, action.document)

    @activity.defn(name=EnsureAccessRole.activity, no_thread_cancel_exception=True)
    def ensure_access_role(self, action: EnsureAccessRole) -> None:
        iam = self._iam(action)
        if there(lambda: iam.get_role(RoleName=action.name)) or not made(
            lambda: iam.create_role(
                RoleName=action.name,
                AssumeRolePolicyDocument=trust(action.principal),
                Description=action.description,
                Tags=tag_list({ACCESS_TAG: action.access_uid}),
            )
        ):
            _mend_role(iam, action)

    @activity.defn(name=AttachAccessPolicies.activity, no_thread_cancel_exception=True)
    def attach_access_policies(self, action: AttachAccessPolicies) -> None:
        iam = self._iam(action)
        attached = _attached(iam, action.role)
        wanted = {name_of(name): name for name in action.managed}
        held = {name_of(arn) for arn in attached if is_aws(arn)}
        for name, policy in wanted.items():
            if name not in held:
                _attach_managed(iam, action, policy)
        own = policy_arn(action.partition, action.account_id, action.custom) if action.custom else ""
        if own and own not in attached:
            _attach(iam, action.role, own)
        rest = [arn for arn in attached if arn != own and not (is_aws(arn) and name_of(arn) in wanted)]
        for arn in rest if action.exact else ():
            attempt.checkpoint()
            _take_away(iam, action, arn)

    @activity.defn(name=RevokeAccess.activity, no_thread_cancel_exception=True)
    def revoke_access(self, action: RevokeAccess) -> None:
        revoke_access(self._sessions, action)

    def _iam(self, action: GrantAction) -> IAMClient:
        return customer_in(self._sessions, action.secret, action.partition, action.account_id).iam()


def _mend_role(iam: IAMClient, action: EnsureAccessRole) -> None:
    role = iam.get_role(RoleName=action.name)["Role"]
    if not same_trust(role["AssumeRolePolicyDocument"], action.principal):
        iam.update_assume_role_policy(RoleName=action.name, PolicyDocument=trust(action.principal))
    if role.get("Description", "") != action.description:
        iam.update_role_description(RoleName=action.name, Description=action.description)


def _attached(iam: IAMClient, role: str) -> list[str]:
    try:
        return attached_policies(iam, role)
    except Absent as error:
        raise attempt.settling(error) from error.__cause__


def _attach(iam: IAMClient, role: str, arn: str) -> None:
    try:
        iam.attach_role_policy(RoleName=role, PolicyArn=arn)
    except Absent as error:
        raise attempt.settling(error) from error.__cause__


def _attach_managed(iam: IAMClient, action: AttachAccessPolicies, name: str) -> None:
    """An ARN may contain a path, which the policy's name does not show. Then the ARN is looked up."""
    arn = policy_arn(action.partition, "aws", name)
    if there(lambda: iam.attach_role_policy(RoleName=action.role, PolicyArn=arn)):
        return
    found = managed_policies(iam).get(name_of(name))
    if found is None:
        raise Absent(f"AWS has no managed policy {name}: correct spec.awsManagedPolicies", code="NoSuchEntity")
    _attach(iam, action.role, found)


def _take_away(iam: IAMClient, action: AttachAccessPolicies, arn: str) -> None:
    there(lambda: iam.detach_role_policy(RoleName=action.role, PolicyArn=arn))
    if not is_aws(arn) and arn.endswith(f"-{action.uid}"):
        remove_policy(iam, arn)
