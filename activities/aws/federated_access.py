"""Grants federated access: creates a role with its policies in the customer's account.

`federated_revocation.py` deletes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from activities import attempt
from activities.aws.customer_credentials import Customer, customer_in
from activities.aws.iam_policies import (
    attached_policies,
    is_aws,
    made,
    managed_policies,
    name_of,
    remove_policy,
    spare_versions,
    there,
)
from activities.aws.session import Sessions, tag_list
from domain.accounts.arns import policy_arn
from domain.accounts.federated import ACCESS_TAG
from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    CustomerAccount,
    EnsureAccessPolicy,
    EnsureAccessRole,
    GrantAction,
    IdentifyCustomer,
)
from domain.accounts.federated.custom_policy import differs, versions_to_delete
from domain.accounts.trust_policy import trust_of_access, trusts_only
from engine.errors import Absent

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient


def identify_customer(sessions: Sessions, action: IdentifyCustomer) -> CustomerAccount:
    account_id = Customer(sessions, action.secret, action.partition).ask_identity().account_id
    sessions.refuse_protected(account_id)
    return CustomerAccount(account_id=account_id)


def ensure_access_policy(sessions: Sessions, action: EnsureAccessPolicy) -> None:
    iam = _iam(sessions, action)
    arn = policy_arn(action.partition, action.account_id, action.name)
    if there(lambda: iam.get_policy(PolicyArn=arn)) or not made(
        lambda: iam.create_policy(
            PolicyName=action.name,
            Description=action.description,
            PolicyDocument=action.document,
            Tags=tag_list({ACCESS_TAG: action.access_uid}),
        )
    ):
        _mend_policy(iam, arn, action.document)


def ensure_access_role(sessions: Sessions, action: EnsureAccessRole) -> None:
    iam = _iam(sessions, action)
    if there(lambda: iam.get_role(RoleName=action.name)) or not made(
        lambda: iam.create_role(
            RoleName=action.name,
            AssumeRolePolicyDocument=trust_of_access(action.principal),
            Description=action.description,
            Tags=tag_list({ACCESS_TAG: action.access_uid}),
        )
    ):
        _mend_role(iam, action)


def attach_access_policies(sessions: Sessions, action: AttachAccessPolicies) -> None:
    iam = _iam(sessions, action)
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


def _iam(sessions: Sessions, action: GrantAction) -> IAMClient:
    return customer_in(sessions, action.secret, action.partition, action.account_id).iam()


def _mend_policy(iam: IAMClient, arn: str, wanted: str) -> None:
    policy = iam.get_policy(PolicyArn=arn)["Policy"]
    version = iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
    if differs(version["Document"], wanted):
        for version_id in versions_to_delete(spare_versions(iam, arn)):
            iam.delete_policy_version(PolicyArn=arn, VersionId=version_id)
        iam.create_policy_version(PolicyArn=arn, PolicyDocument=wanted, SetAsDefault=True)


def _mend_role(iam: IAMClient, action: EnsureAccessRole) -> None:
    role = iam.get_role(RoleName=action.name)["Role"]
    if not trusts_only(role["AssumeRolePolicyDocument"], (action.principal,), "sts:AssumeRole", ["sts:AssumeRole"]):
        iam.update_assume_role_policy(RoleName=action.name, PolicyDocument=trust_of_access(action.principal))
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
    """The ARN is composed without a path. If AWS does not know this ARN, the policy's real ARN is looked up."""
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
