"""Perdure's identities in a member account: the support role, and the admin user with its one key.

Names are deterministic, so creation is tried first, and an object that exists is then read. Only CreateAccessKey's
answer contains the secret half of a key. If that answer is lost, the key is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from temporalio import activity

from activities import attempt
from activities.aws import admin_key_secret
from activities.aws.customer_account_access import entered
from activities.aws.iam_policies import attached_policies, made
from activities.aws.organization import is_closed
from activities.aws.session import Member, Sessions, tag_list
from domain.accounts.actions.iam_identities import (
    AdminSecret,
    DeleteIdentities,
    EnsureAdminUser,
    EnsureSupportRole,
    RotateKeys,
)
from domain.accounts.arns import policy_arn
from domain.accounts.constants import (
    ADMIN_USER_PREFIX,
    ADMINISTRATOR_POLICY,
    NO_ACCOUNT_ID,
    NOT_ENTERED,
    PROTECTED,
    SUPPORT_ROLE_PREFIX,
)
from domain.accounts.iam_and_instance_tags import OWNER_TAGS, has_owner, owner_tags
from domain.accounts.trust_policy import trust, trusts_only
from engine.errors import Absent, ApiError, Conflict, Denied
from engine.kube import BlockingKube

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient

SUPPORT_ROLE_DESCRIPTION = "AdminAccess for BYOC"  # the replaced operator's text, which pool accounts have too


def ensure_support_role(sessions: Sessions, action: EnsureSupportRole) -> None:
    lets_in = (sessions.payer().identity().arn, action.jump_role)
    with settling(young=action.access is None):
        member = entered(sessions, action, settle=attempt.SETTLING)
        iam, name = member.iam(), f"{SUPPORT_ROLE_PREFIX}{action.iam_user_id}"
        policy = policy_arn(action.partition, "aws", ADMINISTRATOR_POLICY)
        if made(
            lambda: iam.create_role(
                RoleName=name,
                AssumeRolePolicyDocument=trust(*lets_in),
                Description=SUPPORT_ROLE_DESCRIPTION,
                Tags=tag_list(action.tags),
            )
        ):
            iam.attach_role_policy(RoleName=name, PolicyArn=policy)
        else:
            _mend_role(iam, name, lets_in, action.tags)
            _mend_policies(iam, name, policy)


def _mend_role(iam: IAMClient, name: str, lets_in: tuple[str, ...], tags: Mapping[str, str]) -> None:
    role = iam.get_role(RoleName=name)["Role"]
    if not trusts_only(role["AssumeRolePolicyDocument"], lets_in, "sts:AssumeRole"):
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=trust(*lets_in))
    if not has_owner(role.get("Tags", []), tags):
        iam.tag_role(RoleName=name, Tags=tag_list(tags))


def _mend_policies(iam: IAMClient, name: str, wanted: str) -> None:
    attached = attached_policies(iam, name)
    if wanted not in attached:
        iam.attach_role_policy(RoleName=name, PolicyArn=wanted)
    for arn in attached:
        if arn != wanted:
            with suppress(Absent):
                iam.detach_role_policy(RoleName=name, PolicyArn=arn)


def ensure_admin_user(sessions: Sessions, action: EnsureAdminUser) -> AdminSecret:
    kube = sessions.kube
    with _entering():
        member = entered(sessions, action, settle=attempt.SETTLING)
    with settling():
        iam, user = member.iam(), f"{ADMIN_USER_PREFIX}{action.iam_user_id}"
        created = _ensure_user(iam, user, action.tags)
        iam.attach_user_policy(UserName=user, PolicyArn=policy_arn(action.partition, "aws", ADMINISTRATOR_POLICY))
        if not created and _keeps_key(iam, kube, action, user):
            return AdminSecret(admin_secret=action.secret)
        _put_only_key(iam, kube, action, user, known_to_be_new=created)
    return AdminSecret(admin_secret=action.secret)


def _ensure_user(iam: IAMClient, user: str, tags: Mapping[str, str]) -> bool:
    if made(lambda: iam.create_user(UserName=user, Tags=tag_list(tags))):
        return True
    found = iam.get_user(UserName=user)["User"]
    if not has_owner(found.get("Tags", []), tags):
        marks = ", ".join(f"{name}={tags.get(name, '')}" for name in OWNER_TAGS)
        raise Conflict(
            f"{found['Arn']} exists without Perdure's tags ({marks}) and is not changed. Delete "
            "it, or add these tags so that Perdure takes the user and its keys over.",
            code="ForeignUser",
        )
    return False


def _keeps_key(iam: IAMClient, kube: BlockingKube, action: EnsureAdminUser, user: str) -> bool:
    """Delete all keys except the Secret's, because the other keys' secret halves are lost. Returns False, and deletes
    nothing, if IAM does not have the Secret's key.
    """
    secret = admin_key_secret.read(kube, action.owner, action.secret)
    if secret is None or not secret.complete or secret.foreign_to(action.owner, user):
        return False
    living = _access_keys(iam, user)
    if secret.access_key_id not in living:
        return False
    _delete_keys(iam, user, [key for key in living if key != secret.access_key_id])
    return True


def _put_only_key(
    iam: IAMClient, kube: BlockingKube, action: EnsureAdminUser, user: str, *, known_to_be_new: bool
) -> None:
    """Write a new key into the Secret. All other keys of the user are deleted, because only the Secret's may exist."""
    key = _new_key(iam, user) if known_to_be_new else None
    if key is not None and _put_first(kube, action, key):
        return
    before = admin_key_secret.read(kube, action.owner, action.secret)
    if before is not None and before.foreign_to(action.owner, user):
        _delete_keys(iam, user, [key[admin_key_secret.ACCESS_KEY_ID]] if key else [])
        raise admin_key_secret.foreign(action.owner, action.secret)
    if key is None:
        _delete_keys(iam, user, _access_keys(iam, user))
        key = _new_key(iam, user)
    admin_key_secret.write(kube, action.owner, action.secret, key, before=before)


def _put_first(kube: BlockingKube, action: EnsureAdminUser, key: Mapping[str, str]) -> bool:
    try:
        admin_key_secret.write(kube, action.owner, action.secret, key, before=None)
    except Conflict:
        return False
    return True


def _new_key(iam: IAMClient, user: str) -> dict[str, str]:
    created = iam.create_access_key(UserName=user)["AccessKey"]
    return {
        admin_key_secret.USER_NAME: user,
        admin_key_secret.ACCESS_KEY_ID: created["AccessKeyId"],
        admin_key_secret.SECRET_ACCESS_KEY: created["SecretAccessKey"],
    }


def _access_keys(iam: IAMClient, user: str) -> list[str]:
    pages = iam.get_paginator("list_access_keys").paginate(UserName=user)
    found = [item for page in pages for item in page["AccessKeyMetadata"]]
    return [item["AccessKeyId"] for item in sorted(found, key=lambda item: item["CreateDate"])]


def _delete_keys(iam: IAMClient, user: str, ids: list[str]) -> None:
    for key in ids:
        with suppress(Absent):
            iam.delete_access_key(UserName=user, AccessKeyId=key)


def rotate_keys(sessions: Sessions, action: RotateKeys) -> None:
    """Replace the Secret's key by a new key, and delete all other keys of the user.

    Keys that are not in the Secret are deleted before the creation, because IAM allows two keys. The Secret's former
    key is deleted last. The Secret records the claim's workflow id, so a repeated rotation recognises its own key.
    """
    kube, user = sessions.kube, f"{ADMIN_USER_PREFIX}{action.iam_user_id}"
    iam = sessions.confirmed(action.account_id, action.partition).iam()
    lifecycle = activity.info().workflow_id or ""
    secret = admin_key_secret.read(kube, action.owner, action.secret)
    if secret is not None and secret.foreign_to(action.owner, user):
        raise admin_key_secret.foreign(action.owner, action.secret)
    try:
        living = _access_keys(iam, user)
    except Absent:  # a tenant has deleted the user, with its keys
        _make_again(iam, user, action)
        living = []
    held = secret.access_key_id if secret is not None else ""
    _delete_keys(iam, user, [key for key in living if key != held])
    if secret is not None and secret.complete and secret.rotated_for == lifecycle and held in living:
        return
    with settling():
        key = _new_key(iam, user)
    admin_key_secret.write(kube, action.owner, action.secret, key, before=secret, rotated_for=lifecycle)
    _delete_keys(iam, user, [key for key in living if key == held])


def _make_again(iam: IAMClient, user: str, action: RotateKeys) -> None:
    with settling():
        _ensure_user(iam, user, owner_tags(action.owner.name, action.owner.namespace))
        iam.attach_user_policy(UserName=user, PolicyArn=policy_arn(action.partition, "aws", ADMINISTRATOR_POLICY))


def delete_identities(sessions: Sessions, action: DeleteIdentities) -> None:
    """The support role is deleted last, because this process may have entered the account by it."""
    try:
        _delete_ours(entered(sessions, action), action)
    except Denied:
        if action.access is not None or not is_closed(sessions, action.account_id):
            raise


def _delete_ours(member: Member, action: DeleteIdentities) -> None:
    member.confirm()
    iam, owner = member.iam(), owner_tags(action.name, action.namespace)
    delete_users(iam, owner)
    for role in sorted(_roles(iam), key=lambda name: name.startswith(SUPPORT_ROLE_PREFIX)):
        attempt.checkpoint()
        with suppress(Absent):
            pages = iam.get_paginator("list_role_tags").paginate(RoleName=role)
            if has_owner((tag for page in pages for tag in page["Tags"]), owner):
                delete_role(iam, role)


def delete_users(iam: IAMClient, owner: Mapping[str, str]) -> None:
    for user in _users(iam):
        attempt.checkpoint()
        with suppress(Absent):
            pages = iam.get_paginator("list_user_tags").paginate(UserName=user)
            if has_owner((tag for page in pages for tag in page["Tags"]), owner):
                _delete_user(iam, user)


def _users(iam: IAMClient) -> list[str]:
    return [user["UserName"] for page in iam.get_paginator("list_users").paginate() for user in page["Users"]]


def _roles(iam: IAMClient) -> list[str]:
    """Roles of AWS's own services are left out, because they cannot be tagged or deleted."""
    pages = iam.get_paginator("list_roles").paginate()
    return [role["RoleName"] for page in pages for role in page["Roles"] if not role["Path"].startswith("/aws-")]


def _delete_user(iam: IAMClient, user: str) -> None:
    """IAM requires that the user's dependents are deleted first. The keys come first, because they open the account.

    Raises:
        Absent: the user is gone.
    """
    _delete_keys(iam, user, _access_keys(iam, user))
    with suppress(Absent):
        iam.delete_login_profile(UserName=user)
    for attached in iam.get_paginator("list_attached_user_policies").paginate(UserName=user):
        for policy in attached["AttachedPolicies"]:
            with suppress(Absent):
                iam.detach_user_policy(UserName=user, PolicyArn=policy["PolicyArn"])
    for inline in iam.get_paginator("list_user_policies").paginate(UserName=user):
        for name in inline["PolicyNames"]:
            with suppress(Absent):
                iam.delete_user_policy(UserName=user, PolicyName=name)
    for member_of in iam.get_paginator("list_groups_for_user").paginate(UserName=user):
        for group in member_of["Groups"]:
            with suppress(Absent):
                iam.remove_user_from_group(UserName=user, GroupName=group["GroupName"])
    try:
        iam.delete_user(UserName=user)
    except Conflict:
        _delete_other_credentials(iam, user)
        iam.delete_user(UserName=user)


def _delete_other_credentials(iam: IAMClient, user: str) -> None:
    """Delete the IAM user's credentials that Perdure never creates, such as MFA devices and SSH keys."""
    for devices in iam.get_paginator("list_mfa_devices").paginate(UserName=user):
        for device in devices["MFADevices"]:
            with suppress(Absent):
                iam.deactivate_mfa_device(UserName=user, SerialNumber=device["SerialNumber"])
    for certificates in iam.get_paginator("list_signing_certificates").paginate(UserName=user):
        for certificate in certificates["Certificates"]:
            with suppress(Absent):
                iam.delete_signing_certificate(UserName=user, CertificateId=certificate["CertificateId"])
    for keys in iam.get_paginator("list_ssh_public_keys").paginate(UserName=user):
        for key in keys["SSHPublicKeys"]:
            with suppress(Absent):
                iam.delete_ssh_public_key(UserName=user, SSHPublicKeyId=key["SSHPublicKeyId"])
    for each in iam.list_service_specific_credentials(UserName=user)["ServiceSpecificCredentials"]:
        with suppress(Absent):
            iam.delete_service_specific_credential(
                UserName=user, ServiceSpecificCredentialId=each["ServiceSpecificCredentialId"]
            )


def delete_role(iam: IAMClient, role: str) -> None:
    """Delete the role with its policies. IAM may still list policies and profiles that it no longer has.

    Raises:
        Absent: the role is gone.
    """
    for arn in attached_policies(iam, role):
        with suppress(Absent):
            iam.detach_role_policy(RoleName=role, PolicyArn=arn)
    for inline in iam.get_paginator("list_role_policies").paginate(RoleName=role):
        for name in inline["PolicyNames"]:
            with suppress(Absent):
                iam.delete_role_policy(RoleName=role, PolicyName=name)
    for profiles in iam.get_paginator("list_instance_profiles_for_role").paginate(RoleName=role):
        for profile in profiles["InstanceProfiles"]:
            with suppress(Absent):
                iam.remove_role_from_instance_profile(InstanceProfileName=profile["InstanceProfileName"], RoleName=role)
    iam.delete_role(RoleName=role)


@contextmanager
def _entering() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.code not in (PROTECTED, NO_ACCOUNT_ID):
            error.code = NOT_ENTERED
        raise


@contextmanager
def settling(*, young: bool = True) -> Iterator[None]:
    """For a while after the action began, treat refusals as temporary, because IAM is eventually consistent."""
    try:
        yield
    except (Denied, Absent) as error:
        raise (attempt.settling(error) if young and error.code in _SETTLES else error) from error.__cause__


_SETTLES = frozenset({"AccessDenied", "InvalidClientTokenId", "NoSuchEntity"})
