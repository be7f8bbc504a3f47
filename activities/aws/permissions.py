"""Every AWS action that the code calls, by caller, with the reason: what the IAM policies must allow.

A test compares the table with the calls, and `deploy/iam/` is rendered from it. The payer's policy belongs to the keys
in the Secret. Member accounts need no policy, since AWS gives OrganizationAccountAccessRole full rights; a service
control policy must leave these.

The table has IAM's names; `API_CALLS` has the API's where they differ (`HeadObject` needs `s3:GetObject`).
GetCallerIdentity needs no permission and is listed for completeness.
"""

from __future__ import annotations

from enum import StrEnum

from domain.accounts.constants import ACCESS_ROLE, SUPPORT_ROLE_PREFIX
from domain.model import Model


class Role(StrEnum):
    """Whose credentials make the call."""

    PAYER = "payer"
    MEMBER = "member"
    CUSTOMER = "customer"


class Permission(Model):
    """`resource`: ARN patterns where IAM can narrow the action, else `*`."""

    role: Role
    action: str
    why: str
    resource: str | tuple[str, ...] = "*"


_PAYER = {
    "iam:CreatePolicy": "have IAM judge a federated role's custom policy",
    "iam:DeletePolicy": "leave nothing of it behind",
    "iam:DeletePolicyVersion": "leave nothing of it behind",
    "iam:ListPolicies": "know AWS's managed policies by name (federated roles)",
    "iam:ListPolicyVersions": "leave nothing of it behind",
    "organizations:CloseAccount": "close a released account (feature.close_on_release)",
    "organizations:CreateAccount": "create the accounts of the pools",
    "organizations:CreateOrganizationalUnit": "one unit per legal entity",
    "organizations:DescribeAccount": "know a closed account, in which nothing is left to clean",
    "organizations:DescribeCreateAccountStatus": "wait for a new account",
    "organizations:ListAccounts": "count against the limit, find an account by name",
    "organizations:ListChildren": "validate where accounts stand",
    "organizations:ListCreateAccountStatus": "count the create budget, find a request whose answer was lost",
    "organizations:ListOrganizationalUnitsForParent": "find a unit that exists",
    "organizations:ListParents": "find where an account stands",
    "organizations:ListTagsForResource": "validate tags; tell other installations' accounts apart",
    "organizations:MoveAccount": "move a claimed account to its legal entity's unit, and a stray one to its place",
    "organizations:TagResource": "say who owns an account, and validate it",
    "sts:GetCallerIdentity": "know the payer's own account, which is never touched",
    "support:CreateCase": "ask for Enterprise Support for a new account",
    "support:DescribeCases": "see whether it was granted",
    "support:ResolveCase": "ask no more for an account whose Account was deleted meanwhile",
}

_MEMBER = {
    "sts:GetCallerIdentity": "be sure of the account before anything in it is deleted",
    "iam:AttachRolePolicy": "the support role",
    "iam:AttachUserPolicy": "the admin user",
    "iam:CreateAccessKey": "the admin user's key, and its rotation",
    "iam:CreateRole": "the support role",
    "iam:CreateUser": "the admin user",
    "iam:DeleteAccessKey": "keys that nobody knows, and rotation",
    "iam:DeleteLoginProfile": "delete the admin user with its Account",
    "iam:DeleteRole": "delete the support role with its Account",
    "iam:DeleteRolePolicy": "delete the support role with its Account",
    "iam:DeleteUser": "delete the admin user with its Account",
    "iam:DeleteUserPolicy": "delete the admin user with its Account",
    "iam:DetachRolePolicy": "policies that the support role must not have",
    "iam:DetachUserPolicy": "delete the admin user with its Account",
    "iam:PutRolePolicy": "what a fleet manager's role may do",
    "iam:GetRole": "look whether the support role is what it should be",
    "iam:GetUser": "look whose user it is",
    "iam:ListAccessKeys": "find keys that nobody knows",
    "iam:ListAttachedRolePolicies": "look whether the support role is what it should be",
    "iam:ListAttachedUserPolicies": "delete the admin user with its Account",
    "iam:ListGroupsForUser": "delete the admin user with its Account",
    "iam:ListInstanceProfilesForRole": "delete the support role with its Account",
    "iam:ListRolePolicies": "delete the support role with its Account",
    "iam:ListRoleTags": "find what is ours",
    "iam:ListRoles": "find what is ours",
    "iam:ListUserPolicies": "delete the admin user with its Account",
    "iam:ListUserTags": "find what is ours",
    "iam:ListUsers": "find what is ours",
    "iam:RemoveRoleFromInstanceProfile": "delete the support role with its Account",
    "iam:RemoveUserFromGroup": "delete the admin user with its Account",
    "iam:TagRole": "mark the support role, when made and when mended",
    "iam:TagUser": "mark the admin user when it is made",
    "iam:UpdateAssumeRolePolicy": "mend the support role's trust",
    "account:EnableRegion": "opt in to a region",
    "account:GetRegionOptStatus": "see how far a region is, where the list is denied",
    "account:ListRegions": "see which regions are enabled",
    "servicequotas:GetServiceQuota": "see whether a quota is high enough",
    "servicequotas:ListRequestedServiceQuotaChangeHistory": "see how requests for higher quotas stand",
    "servicequotas:RequestServiceQuotaIncrease": "ask for a higher quota",
    "ec2:CreateTags": "mark an instance and its volume when launched",
    "ec2:DeleteSnapshot": "clean a released account",
    "ec2:DeleteVolume": "clean a released account",
    "ec2:DeleteVpcEndpointServiceConfigurations": "clean a released account",
    "ec2:DeregisterImage": "clean a released account",
    "ec2:DescribeImages": "choose the image to launch; clean a released account",
    "ec2:DescribeInstanceTypes": "choose the instance type",
    "ec2:DescribeInstances": "see an instance run or end",
    "ec2:DescribeRegions": "list the regions to initialise",
    "ec2:DescribeSnapshots": "clean a released account",
    "ec2:DescribeVolumes": "clean a released account",
    "ec2:DescribeVpcEndpointConnections": "clean a released account",
    "ec2:DescribeVpcEndpointServiceConfigurations": "clean a released account",
    "ec2:ModifyInstanceAttribute": "end an instance that is protected from termination",
    "ec2:RejectVpcEndpointConnections": "clean a released account",
    "ec2:RunInstances": "initialise a region",
    "ec2:TerminateInstances": "end what was launched; clean a released account",
    "s3:AbortMultipartUpload": "clean a released account",
    "s3:DeleteBucket": "clean a released account",
    "s3:DeleteObject": "clean a released account",
    "s3:DeleteObjectVersion": "clean a released account",
    "s3:GetBucketLocation": "reach a bucket in its region",
    "s3:ListAllMyBuckets": "clean a released account",
    "s3:ListBucketMultipartUploads": "clean a released account",
    "s3:ListBucketVersions": "clean a released account",
    "route53:ChangeResourceRecordSets": "clean a released account",
    "route53:DeleteHostedZone": "clean a released account",
    "route53:ListHostedZones": "clean a released account",
    "route53:ListResourceRecordSets": "clean a released account",
}

_REVOKE = {
    "iam:DeletePolicy": "take a federated access back",
    "iam:DeletePolicyVersion": "take a federated access back",
    "iam:DeleteRole": "take a federated access back",
    "iam:DeleteRolePolicy": "take a federated access back",
    "iam:DetachRolePolicy": "take a federated access back",
    "iam:GetRole": "look whose role it is",
    "iam:ListAttachedRolePolicies": "look what the role has",
    "iam:ListInstanceProfilesForRole": "take a federated access back",
    "iam:ListPolicies": "find the policies of a federated access",
    "iam:ListPolicyTags": "find the policies of a federated access",
    "iam:ListPolicyVersions": "take a federated access back",
    "iam:ListRolePolicies": "take a federated access back",
    "iam:RemoveRoleFromInstanceProfile": "take a federated access back",
}

_CUSTOMER = {
    **_REVOKE,
    "sts:GetCallerIdentity": "know whose account the keys open",
    "iam:AttachRolePolicy": "grant a federated access",
    "iam:CreatePolicy": "grant a federated access",
    "iam:CreatePolicyVersion": "follow the federated role",
    "iam:CreateRole": "grant a federated access",
    "iam:GetPolicy": "look whether the policy is what it should be",
    "iam:GetPolicyVersion": "look whether the policy is what it should be",
    "iam:TagPolicy": "mark the policy when it is made",
    "iam:TagRole": "mark the role when it is made",
    "iam:UpdateAssumeRolePolicy": "trust another outside identity",
    "iam:UpdateRoleDescription": "follow the federated role",
}

PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        role=Role.PAYER,
        action="sts:AssumeRole",
        why="enter the member accounts, and customers' by their support role",
        resource=(f"arn:*:iam::*:role/{ACCESS_ROLE}", f"arn:*:iam::*:role/{SUPPORT_ROLE_PREFIX}*"),
    ),
    *(Permission(role=Role.PAYER, action=action, why=why) for action, why in _PAYER.items()),
    *(Permission(role=Role.MEMBER, action=action, why=why) for action, why in {**_REVOKE, **_MEMBER}.items()),
    *(Permission(role=Role.CUSTOMER, action=action, why=why) for action, why in _CUSTOMER.items()),
)

# API operations whose permissions are called otherwise: the operation, and what IAM asks for.
API_CALLS: dict[str, tuple[str, ...]] = {
    "s3:ListBuckets": ("s3:ListAllMyBuckets",),
    "s3:ListObjectVersions": ("s3:ListBucketVersions",),
    "s3:ListMultipartUploads": ("s3:ListBucketMultipartUploads",),
    "s3:DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
}

# Permissions that a call needs beside its own, when it tags what it makes.
TAGGING: dict[str, str] = {
    "iam:CreatePolicy": "iam:TagPolicy",
    "iam:CreateRole": "iam:TagRole",
    "iam:CreateUser": "iam:TagUser",
    "ec2:RunInstances": "ec2:CreateTags",
}


def permitted(role: Role) -> frozenset[str]:
    """The actions that a role needs."""
    return frozenset(item.action for item in PERMISSIONS if item.role is role)


def needed(operation: str) -> frozenset[str]:
    """The actions that one API operation (`service:Operation`) needs."""
    own = API_CALLS.get(operation, (operation,))
    return frozenset([*own, *([TAGGING[operation]] if operation in TAGGING else [])])
