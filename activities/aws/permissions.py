"""Every AWS action that the code calls, by caller, with the reason; `deploy/iam/` is rendered from this list.

Names are IAM's. Member accounts need no policy, because the role in them has full rights.
"""

from __future__ import annotations

from enum import StrEnum

from domain.accounts.constants import ACCESS_ROLE, CCS_ACCESS_KEY, CCS_ACCESS_ROLE, SUPPORT_ROLE_PREFIX
from domain.model import Model


class Role(StrEnum):
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
    "iam:CreatePolicy": "have IAM validate a federated role's custom policy",
    "iam:DeletePolicy": "delete a federated role's custom policy after its validation",
    "iam:DeletePolicyVersion": "delete a federated role's custom policy after its validation",
    "iam:ListPolicies": "look up AWS's managed policies by name (federated roles)",
    "iam:ListPolicyVersions": "delete a federated role's custom policy after its validation",
    "organizations:CloseAccount": "close a released account (feature.close_on_release)",
    "organizations:CreateAccount": "create the accounts of the pools",
    "organizations:CreateOrganizationalUnit": "create one organizational unit per legal entity",
    "organizations:DescribeAccount": "recognise a closed account, which needs no cleaning",
    "organizations:DescribeCreateAccountStatus": "wait for a new account",
    "organizations:ListAccounts": "compare the number of accounts with the limit; find an account by name",
    "organizations:ListChildren": "validate the accounts' OUs",
    "organizations:ListCreateAccountStatus": "count requests for the create budget; find one whose answer was lost",
    "organizations:ListOrganizationalUnitsForParent": "find an existing organizational unit",
    "organizations:ListParents": "find an account's unit",
    "organizations:ListTagsForResource": "validate tags; recognise other installations' accounts",
    "organizations:MoveAccount": "move a claimed account to its legal entity's unit, and correct an account's unit",
    "organizations:TagResource": "tag accounts with their owner, and correct these tags",
    "sts:GetCallerIdentity": "find the payer's own account, which is never changed",
    "support:CreateCase": "request Enterprise Support for a new account",
    "support:DescribeCases": "check whether Enterprise Support was granted",
    "support:ResolveCase": "withdraw the support request if the Account is deleted meanwhile",
}

_MEMBER = {
    "sts:GetCallerIdentity": "confirm the account before anything in it is deleted",
    "iam:AttachRolePolicy": "create the support role",
    "iam:AttachUserPolicy": "create the admin user",
    "iam:CreateAccessKey": "create and rotate the admin user's key",
    "iam:CreateRole": "create the support role",
    "iam:CreateUser": "create the admin user",
    "iam:DeactivateMFADevice": "delete the admin user with its Account",
    "iam:DeleteAccessKey": "delete rotated keys, and keys whose secret access key is lost",
    "iam:DeleteLoginProfile": "delete the admin user with its Account",
    "iam:DeleteRole": "delete the support role with its Account",
    "iam:DeleteRolePolicy": "delete the support role with its Account",
    "iam:DeleteSSHPublicKey": "delete the admin user with its Account",
    "iam:DeleteServiceSpecificCredential": "delete the admin user with its Account",
    "iam:DeleteSigningCertificate": "delete the admin user with its Account",
    "iam:DeleteUser": "delete the admin user with its Account",
    "iam:DeleteUserPolicy": "delete the admin user with its Account",
    "iam:DetachRolePolicy": "detach policies that the support role must not have",
    "iam:DetachUserPolicy": "delete the admin user with its Account",
    "iam:PutRolePolicy": "set the permissions of a fleet manager's role",
    "iam:GetRole": "compare the support role",
    "iam:GetUser": "check the owner of an existing user",
    "iam:ListAccessKeys": "find keys whose secret access key is lost",
    "iam:ListAttachedRolePolicies": "compare the support role",
    "iam:ListAttachedUserPolicies": "delete the admin user with its Account",
    "iam:ListGroupsForUser": "delete the admin user with its Account",
    "iam:ListInstanceProfilesForRole": "delete the support role with its Account",
    "iam:ListMFADevices": "delete the admin user with its Account",
    "iam:ListRolePolicies": "delete the support role with its Account",
    "iam:ListRoleTags": "find users and roles with Perdure's tags",
    "iam:ListRoles": "find users and roles with Perdure's tags",
    "iam:ListSSHPublicKeys": "delete the admin user with its Account",
    "iam:ListServiceSpecificCredentials": "delete the admin user with its Account",
    "iam:ListSigningCertificates": "delete the admin user with its Account",
    "iam:ListUserPolicies": "delete the admin user with its Account",
    "iam:ListUserTags": "find users and roles with Perdure's tags",
    "iam:ListUsers": "find users and roles with Perdure's tags",
    "iam:RemoveRoleFromInstanceProfile": "delete the support role with its Account",
    "iam:RemoveUserFromGroup": "delete the admin user with its Account",
    "iam:TagRole": "tag the support role when it is created or corrected",
    "iam:TagUser": "tag the admin user when it is created",
    "iam:UpdateAssumeRolePolicy": "correct the support role's trust policy",
    "account:EnableRegion": "opt in to a region",
    "account:GetRegionOptStatus": "check a region's progress if ListRegions is denied",
    "account:ListRegions": "check which regions are enabled",
    "servicequotas:GetServiceQuota": "check whether a quota is high enough",
    "servicequotas:ListRequestedServiceQuotaChangeHistory": "check requests for higher quotas",
    "servicequotas:RequestServiceQuotaIncrease": "request a higher quota",
    "ec2:CreateTags": "tag an instance and its volume when launched",
    "ec2:DeleteSnapshot": "clean a released account",
    "ec2:DeleteVolume": "clean a released account",
    "ec2:DeleteVpcEndpointServiceConfigurations": "clean a released account",
    "ec2:DeregisterImage": "clean a released account",
    "ec2:DescribeImages": "choose the image to launch; clean a released account",
    "ec2:DescribeInstanceTypes": "choose the instance type where t3.micro is refused",
    "ec2:DescribeInstances": "check that an instance runs or has ended",
    "ec2:DescribeRegions": "list the regions to initialise",
    "ec2:DescribeSnapshots": "clean a released account",
    "ec2:DescribeVolumes": "clean a released account",
    "ec2:DescribeVpcEndpointConnections": "clean a released account",
    "ec2:DescribeVpcEndpointServiceConfigurations": "clean a released account",
    "ec2:ModifyInstanceAttribute": "terminate an instance that is protected from termination",
    "ec2:RejectVpcEndpointConnections": "clean a released account",
    "ec2:RunInstances": "initialise a region",
    "ec2:TerminateInstances": "terminate launched instances; clean a released account",
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
    "iam:DeletePolicy": "revoke a federated access",
    "iam:DeletePolicyVersion": "revoke a federated access",
    "iam:DeleteRole": "revoke a federated access",
    "iam:DeleteRolePolicy": "revoke a federated access",
    "iam:DetachRolePolicy": "revoke a federated access",
    "iam:GetRole": "check the owner of a role",
    "iam:ListAttachedRolePolicies": "list the role's policies",
    "iam:ListInstanceProfilesForRole": "revoke a federated access",
    "iam:ListPolicies": "find the policies of a federated access",
    "iam:ListPolicyTags": "find the policies of a federated access",
    "iam:ListPolicyVersions": "revoke a federated access",
    "iam:ListRolePolicies": "revoke a federated access",
    "iam:RemoveRoleFromInstanceProfile": "revoke a federated access",
}

_CUSTOMER = {
    **_REVOKE,
    "sts:GetCallerIdentity": "find the account of the customer's keys",
    "iam:AttachRolePolicy": "grant a federated access",
    "iam:CreatePolicy": "grant a federated access",
    "iam:CreatePolicyVersion": "update the policy when the federated role changes",
    "iam:CreateRole": "grant a federated access",
    "iam:GetPolicy": "compare the policy",
    "iam:GetPolicyVersion": "compare the policy",
    "iam:TagPolicy": "tag the policy when it is created",
    "iam:TagRole": "tag the role when it is created",
    "iam:UpdateAssumeRolePolicy": "trust another outside identity",
    "iam:UpdateRoleDescription": "update the description when the federated role changes",
}

PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        role=Role.PAYER,
        action="sts:AssumeRole",
        why="enter member accounts, and customers' accounts through their support roles",
        resource=(f"arn:*:iam::*:role/{ACCESS_ROLE}", f"arn:*:iam::*:role/{SUPPORT_ROLE_PREFIX}*"),
    ),
    Permission(
        role=Role.PAYER,
        action="iam:GetRole",
        why=f"write the role's ARN into the ConfigMap's key {CCS_ACCESS_KEY}",
        resource=f"arn:*:iam::*:role/{CCS_ACCESS_ROLE}",
    ),
    *(Permission(role=Role.PAYER, action=action, why=why) for action, why in _PAYER.items()),
    *(Permission(role=Role.MEMBER, action=action, why=why) for action, why in {**_REVOKE, **_MEMBER}.items()),
    *(Permission(role=Role.CUSTOMER, action=action, why=why) for action, why in _CUSTOMER.items()),
)
