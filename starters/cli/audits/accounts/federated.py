"""The audit of federated access: leftovers of deleted accesses, and of an interrupted validation of roles.

An access's roles and policies have its uid in the tag `perdure.dev/access-uid`. Roles and policies that the
aws-account-operator created are recognised only by their name, so a person has to check each finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from activities.aws.customer_account_access import entered_by
from activities.aws.iam_policies import customers_policies
from activities.aws.session import Sessions
from domain.accounts import ACCOUNT, AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.account_access import support_access
from domain.accounts.federated import ACCESS_TAG, VALIDATION_PATH, VALIDATION_PREFIX
from domain.accounts.federated.iam_names import uid_of
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.accounts.resources import Account
from domain.names import SUFFIX_ALPHABET
from domain.reading import read_all
from engine.errors import ApiError
from engine.kube import BlockingKube
from starters.cli.audits import Finding

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient

AREA = "accounts"
_AT_ONCE = 16
_SUFFIX = re.compile(rf"(.+)-([{SUFFIX_ALPHABET}]{{6}})")
_ADVICE = "find out who uses it; if it is unused, delete it"


def federated_findings(sessions: Sessions, kube: BlockingKube, *, thorough: bool) -> list[Finding]:
    judging = customers_policies(sessions.payer().iam(), VALIDATION_PATH)
    roles, _ = read_all(AWSFederatedRole, kube.list(AWS_FEDERATED_ROLE).items)
    found = torn(judging, roles)
    if not thorough or not (roles or found):
        return found
    accounts, _ = read_all(Account, kube.list(ACCOUNT).items)
    entered = [account for account in accounts if account.spec.aws_account_id and not account.spec.manual_sts_mode]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        named = list(threads.map(partial(_names_in, sessions), entered))
    accesses, _ = read_all(AWSFederatedAccountAccess, kube.list(AWS_FEDERATED_ACCOUNT_ACCESS).items)
    for account, names in zip(entered, named, strict=True):
        if isinstance(names, Finding):
            found.append(names)
        else:
            found += left(account.spec.aws_account_id, names, roles, accesses)
    return found


def torn(judging: Iterable[str], roles: Sequence[AWSFederatedRole]) -> list[Finding]:
    """Policies that validations left behind: the role is gone, or its current generation's validation has ended."""
    at_work = {role.metadata.uid for role in roles if role.status.observed_generation != role.metadata.generation}
    return [
        Finding(
            area=AREA,
            subject=f"policy {name} of the payer",
            problem="left by an interrupted validation",
            advice="delete it: nothing uses it",
        )
        for name in judging
        if name.removeprefix(VALIDATION_PREFIX) not in at_work
    ]


def left(
    account_id: str,
    names: Iterable[tuple[str, str, str]],
    roles: Sequence[AWSFederatedRole],
    accesses: Sequence[AWSFederatedAccountAccess],
) -> list[Finding]:
    """Roles and policies whose access was deleted. `names` are kind, name and tag value (empty if there is no tag)."""
    uids = {access.metadata.uid for access in accesses}
    suffixes = {uid_of(access) for access in accesses}
    ours = {role.metadata.name for role in roles} | {role.spec.aws_custom_policy.name for role in roles}
    found = []
    for kind, name, tag in names:
        match = _SUFFIX.fullmatch(name)
        by_name = match is not None and match[1] in ours and match[2] not in suffixes
        if tag and tag not in uids:
            problem = "its AWSFederatedAccountAccess is gone"
        elif not tag and by_name:
            problem = "named after an AWSFederatedRole and the uid of an AWSFederatedAccountAccess that does not exist"
        else:
            continue
        found.append(Finding(area=AREA, subject=f"{kind} {name} in {account_id}", problem=problem, advice=_ADVICE))
    return found


def _names_in(sessions: Sessions, account: Account) -> list[tuple[str, str, str]] | Finding:
    """Kind, name and tag of each role and policy with a name like an access's; a finding if the reading fails."""
    partition = sessions.config().partition
    try:
        iam = entered_by(sessions, support_access(account), account.spec.aws_account_id, partition).iam()
        roles = [role["RoleName"] for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
        return [
            *(("role", name, _role_tag(iam, name)) for name in roles if _SUFFIX.fullmatch(name)),
            *(
                ("policy", name, _policy_tag(iam, arn))
                for name, arn in customers_policies(iam).items()
                if _SUFFIX.fullmatch(name)
            ),
        ]
    except ApiError as error:
        return Finding(
            area=AREA,
            subject=f"Account {account.metadata.namespace}/{account.metadata.name}",
            problem=f"its roles and policies cannot be read: {error.message}",
            advice="run `perdure why` for it",
        )


def _role_tag(iam: IAMClient, name: str) -> str:
    pages = iam.get_paginator("list_role_tags").paginate(RoleName=name)
    return next((tag["Value"] for page in pages for tag in page["Tags"] if tag["Key"] == ACCESS_TAG), "")


def _policy_tag(iam: IAMClient, arn: str) -> str:
    pages = iam.get_paginator("list_policy_tags").paginate(PolicyArn=arn)
    return next((tag["Value"] for page in pages for tag in page["Tags"] if tag["Key"] == ACCESS_TAG), "")
