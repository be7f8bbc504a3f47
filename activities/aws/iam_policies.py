"""IAM policies, which federated access reads and changes.

IAM does not delete a policy that is attached, or that has other versions than its default (IAM API reference:
DeletePolicy).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.errors import Absent, Conflict

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient


def there(call: Callable[[], object]) -> bool:
    try:
        call()
    except Absent:
        return False
    return True


def made(create: Callable[[], object]) -> bool:
    try:
        create()
    except Conflict as error:
        if error.code != "EntityAlreadyExists":
            raise
        return False
    return True


def name_of(arn: str) -> str:
    return arn.rsplit("/", 1)[-1]


def is_aws(arn: str) -> bool:
    return arn.split(":")[4:5] == ["aws"]


def attached_policies(iam: IAMClient, role: str) -> list[str]:
    pages = iam.get_paginator("list_attached_role_policies").paginate(RoleName=role)
    return [each["PolicyArn"] for page in pages for each in page["AttachedPolicies"]]


def managed_policies(iam: IAMClient) -> dict[str, str]:
    """AWS's own policies: ARNs by name."""
    pages = iam.get_paginator("list_policies").paginate(Scope="AWS", PaginationConfig={"PageSize": 1000})
    return {policy["PolicyName"]: policy["Arn"] for page in pages for policy in page["Policies"]}


def customers_policies(iam: IAMClient, path: str = "/") -> dict[str, str]:
    """The account's own policies: ARNs by name."""
    pages = iam.get_paginator("list_policies").paginate(Scope="Local", PathPrefix=path)
    return {policy["PolicyName"]: policy["Arn"] for page in pages for policy in page["Policies"]}


def remove_policy(iam: IAMClient, arn: str) -> None:
    """Delete an unattached policy with all its versions. Nothing is done if it does not exist."""
    try:
        for version_id in spare_versions(iam, arn):
            iam.delete_policy_version(PolicyArn=arn, VersionId=version_id)
        iam.delete_policy(PolicyArn=arn)
    except Absent:
        return


def spare_versions(iam: IAMClient, arn: str) -> list[str]:
    pages = iam.get_paginator("list_policy_versions").paginate(PolicyArn=arn)
    versions = sorted((each for page in pages for each in page["Versions"]), key=lambda each: each["CreateDate"])
    return [each["VersionId"] for each in versions if not each["IsDefaultVersion"]]
