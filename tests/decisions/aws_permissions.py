"""The permissions of a role, and those that a call to AWS needs, in IAM's names."""

from __future__ import annotations

from activities.aws.permissions import PERMISSIONS, Role

# The permissions of API operations whose permissions have other names than the operation.
API_CALLS: dict[str, tuple[str, ...]] = {
    "s3:ListBuckets": ("s3:ListAllMyBuckets",),
    "s3:ListObjectVersions": ("s3:ListBucketVersions",),
    "s3:ListMultipartUploads": ("s3:ListBucketMultipartUploads",),
    "s3:DeleteObjects": ("s3:DeleteObject", "s3:DeleteObjectVersion"),
}

# Permissions that a call also needs, because it tags what it creates.
TAGGING: dict[str, str] = {
    "iam:CreatePolicy": "iam:TagPolicy",
    "iam:CreateRole": "iam:TagRole",
    "iam:CreateUser": "iam:TagUser",
    "ec2:RunInstances": "ec2:CreateTags",
}


def permitted(role: Role) -> frozenset[str]:
    return frozenset(item.action for item in PERMISSIONS if item.role is role)


def needed(operation: str) -> frozenset[str]:
    own = API_CALLS.get(operation, (operation,))
    return frozenset([*own, *([TAGGING[operation]] if operation in TAGGING else [])])
