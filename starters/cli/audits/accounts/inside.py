"""Inside the accounts: IAM users, IAM roles and quota requests that belong to no existing Account.

The names of an Account's admin user and support role end with its label `iamUserId`. A reused account may have further
users, whose keys still work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from activities.aws.session import Member
from domain.accounts.constants import ADMIN_USER_PREFIX, SUPPORT_ROLE_PREFIX
from domain.accounts.resources import Account, ServiceQuota
from starters.cli.audits import Finding

_OPEN = ("PENDING", "CASE_OPENED")
# The region in which account-wide quotas are requested.
ACCOUNT_WIDE_REGION = "us-east-1"


def identities(member: Member) -> tuple[list[str], list[str]]:
    iam = member.iam()
    users = [user["UserName"] for page in iam.get_paginator("list_users").paginate() for user in page["Users"]]
    roles = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    return users, roles


def open_requests(member: Member, region: str) -> list[str]:
    client = member.service_quotas(region)
    pages = client.get_paginator("list_requested_service_quota_change_history").paginate()
    return [
        each.get("QuotaCode", "") for page in pages for each in page["RequestedQuotas"] if each.get("Status") in _OPEN
    ]


def strange_identities(account: Account, users: Iterable[str], roles: Iterable[str], area: str) -> Iterable[Finding]:
    own = account.iam_user_id
    found = [("user", user) for user in users if _strange(user, ADMIN_USER_PREFIX, own)]
    found += [("role", role) for role in roles if _strange(role, SUPPORT_ROLE_PREFIX, own)]
    for what, name in found:
        subject = f"IAM {what} {name} in {account.spec.aws_account_id}"
        path = f"{account.metadata.namespace}/{account.metadata.name}"
        problem = f"does not belong to Account {path}, whose iamUserId is {own}"
        advice = "delete it with its keys: no Account uses them" if what == "user" else "delete it: no Account uses it"
        yield Finding(area=area, subject=subject, problem=problem, advice=advice)


def unwanted_requests(account: Account, region: str, codes: Iterable[str], area: str) -> Iterable[Finding]:
    for code in codes:
        if not _shown(account, region, code):
            subject = f"quota request {code} in {account.spec.aws_account_id}, {region}"
            problem = f"open, and Account {account.metadata.namespace}/{account.metadata.name} does not record it"
            yield Finding(area=area, subject=subject, problem=problem, advice="close its case, or wait for the result")


def _strange(name: str, prefix: str, own: str) -> bool:
    return name.startswith(prefix) and name != prefix + own


def _shown(account: Account, region: str, code: str) -> bool:
    status = account.status
    here: list[Mapping[str, ServiceQuota]] = [status.regional_service_quotas.get(region, {})]
    if region == ACCOUNT_WIDE_REGION:
        here.append(status.global_service_quotas)
    return any(code in quotas for quotas in here)
