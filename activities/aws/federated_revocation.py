"""Revokes a federated access: deletes its role and custom policies in the customer's account.

Tenants can write an access's spec. So the payer's credentials delete only objects that have the access's tag or,
without a tag (the replaced operator set none), the access's principal or policy name.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from activities import attempt
from activities.aws.customer_credentials import customer_in
from activities.aws.iam_identities import delete_role
from activities.aws.iam_policies import attached_policies, customers_policies, is_aws, name_of, remove_policy, there
from activities.aws.organization import is_closed
from activities.aws.session import Member, Services, Sessions
from domain.accounts import ACCOUNT
from domain.accounts.constants import OPERATOR_NAMESPACE, SUPPORT_ROLE_PREFIX
from domain.accounts.federated import ACCESS_TAG, CLEANUP_SESSION
from domain.accounts.federated.actions import RevokeAccess
from domain.accounts.resources import Account
from domain.accounts.trust_policy import trusted
from domain.reading import read_all
from engine.errors import Absent, Denied
from engine.kube import BlockingKube

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_iam.client import IAMClient
    from mypy_boto3_iam.type_defs import RoleTypeDef, TagTypeDef

FOREIGN_ROLE = "ForeignRole"


class Cleaner(Member):
    session_name: ClassVar[str] = CLEANUP_SESSION


def revoke_access(sessions: Sessions, action: RevokeAccess) -> None:
    """Raises Denied if no credentials open the account, or the role is not the access's."""
    sessions.refuse_protected(action.account_id)
    try:
        member = _entered(sessions, action)
    except Denied as denied:
        if _closed(sessions, action.account_id):
            return
        _clean(_customer(sessions, action, denied), action, own=True)
    else:
        _clean(member, action, own=False)


def _entered(sessions: Sessions, action: RevokeAccess) -> Member:
    member = sessions.make(Cleaner, action.account_id, action.partition)
    try:
        member.enter()
    except Denied:
        role = _support_role(sessions.kube, action.account_id)
        if not role:
            raise
        member = sessions.make(Cleaner, action.account_id, action.partition)
        member.role = role
        member.enter()
    return member


def _support_role(kube: BlockingKube, account_id: str) -> str:
    accounts, _ = read_all(Account, kube.list(ACCOUNT, OPERATOR_NAMESPACE).items)
    brought = (each for each in accounts if each.spec.aws_account_id == account_id and each.spec.byoc)
    user_id = next((each.iam_user_id for each in brought if not each.spec.manual_sts_mode), "")
    return f"{SUPPORT_ROLE_PREFIX}{user_id}" if user_id else ""


def _closed(sessions: Sessions, account_id: str) -> bool:
    """False also if the payer is not allowed to query whether AWS has closed the account."""
    with suppress(Denied):
        return is_closed(sessions, account_id)
    return False


def _customer(sessions: Sessions, action: RevokeAccess, denied: Denied) -> Services:
    try:
        return customer_in(sessions, action.secret, action.partition, action.account_id)
    except Denied as error:
        message = f"no credentials give access to account {action.account_id}: {denied.message} And: {error.message}"
        raise Denied(message, code=error.code) from error


def _clean(caller: Services, action: RevokeAccess, *, own: bool) -> None:
    iam = caller.iam()
    try:
        role = iam.get_role(RoleName=action.role)["Role"]
    except Absent:
        role = None
    attached = attached_policies(iam, action.role) if role is not None else []
    if role is not None:
        if not (own or _is_the_accesses(role, action)):
            raise Denied(
                f"role {action.role} in account {action.account_id} does not belong to this access: its tag "
                f"{ACCESS_TAG} names another access, or it lacks this tag and does not trust {action.principal}. "
                "It is not deleted. Delete it in the account, or release the access with `perdure abandon`.",
                code=FOREIGN_ROLE,
            )
        _strip(iam, action, attached)
    for name, arn in customers_policies(iam).items():
        if name.endswith(f"-{action.uid}") and (own or _is_the_accesses_policy(iam, name, arn, action)):
            attempt.checkpoint()
            remove_policy(iam, arn)
    if role is not None:
        there(lambda: delete_role(iam, action.role))


def _strip(iam: IAMClient, action: RevokeAccess, attached: Sequence[str]) -> None:
    for arn in attached:
        attempt.checkpoint()
        there(lambda arn=arn: iam.detach_role_policy(RoleName=action.role, PolicyArn=arn))  # type: ignore[misc]
        if not is_aws(arn) and name_of(arn).endswith(f"-{action.uid}"):
            remove_policy(iam, arn)


def _is_the_accesses(role: RoleTypeDef, action: RevokeAccess) -> bool:
    """Whether the role is this access's, by its tag or, without a tag, by its trust policy."""
    tags = role.get("Tags", [])
    if _owners(tags):
        return _owners(tags) == [action.access_uid]
    return action.principal in trusted(role["AssumeRolePolicyDocument"])


def _is_the_accesses_policy(iam: IAMClient, name: str, arn: str, action: RevokeAccess) -> bool:
    owners = _owners(_tags_of(iam, arn))
    return owners == [action.access_uid] if owners else name == action.custom


def _tags_of(iam: IAMClient, arn: str) -> list[TagTypeDef]:
    pages = iam.get_paginator("list_policy_tags").paginate(PolicyArn=arn)
    return [tag for page in pages for tag in page["Tags"]]


def _owners(tags: Sequence[TagTypeDef]) -> list[str]:
    return [tag["Value"] for tag in tags if tag["Key"] == ACCESS_TAG]
