"""Which IAM users and roles are deleted: by tags on several pages, and with credentials that people added."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from account_objects import AWS_ID
from temporalio.testing import ActivityEnvironment

from activities.aws.iam_identities import delete_identities
from activities.aws.session import Sessions
from domain.accounts.actions.iam_identities import DeleteIdentities
from domain.accounts.iam_and_instance_tags import owner_tags
from engine.errors import Absent, Conflict


class Iam:
    """A member account's session, with users and roles by name. Each has the tags of an Account, one a page."""

    def __init__(self, **owners: str) -> None:
        self.owners = owners

    def member(self, *_: str, **__: object) -> Iam:
        return self

    def iam(self) -> Iam:
        return self

    def confirm(self) -> None: ...

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=lambda **asked: self.pages(operation, asked))

    def pages(self, operation: str, asked: dict[str, str]) -> list[dict[str, Any]]:
        if operation in {"list_user_tags", "list_role_tags"}:
            tags = owner_tags(self.owners[next(iter(asked.values()))], "ns")
            return [{"Tags": [{"Key": name, "Value": value}]} for name, value in tags.items()]
        lists = {
            "list_users": {"Users": [{"UserName": name} for name in self.owners if "user" in name]},
            "list_roles": {"Roles": [{"RoleName": name, "Path": "/"} for name in self.owners if "role" in name]},
        }
        return [lists[operation]] if operation in lists else []

    def delete_login_profile(self, **_: str) -> None: ...

    def delete_user(self, UserName: str) -> None:  # noqa: N803 - boto's spelling
        del self.owners[UserName]

    def delete_role(self, RoleName: str) -> None:  # noqa: N803
        del self.owners[RoleName]


def test_users_and_roles_are_recognised_by_tags_on_several_pages() -> None:
    iam = Iam(user="mine", role="mine", another_user="another", another_role="another")
    action = DeleteIdentities(account_id=AWS_ID, name="mine", namespace="ns")
    ActivityEnvironment().run(delete_identities, cast("Sessions", iam), action)
    assert iam.owners == {"another_user": "another", "another_role": "another"}


OTHERS = {
    "list_mfa_devices": ("MFADevices", "SerialNumber", "deactivate_mfa_device"),
    "list_signing_certificates": ("Certificates", "CertificateId", "delete_signing_certificate"),
    "list_ssh_public_keys": ("SSHPublicKeys", "SSHPublicKeyId", "delete_ssh_public_key"),
    "list_service_specific_credentials": (
        "ServiceSpecificCredentials",
        "ServiceSpecificCredentialId",
        "delete_service_specific_credential",
    ),
}


class Busy(Iam):
    """A session whose users have credentials that people added. IAM deletes no user who still has one."""

    def __init__(self, **owners: str) -> None:
        super().__init__(**owners)
        self.left = dict.fromkeys(OTHERS, "credential-1")

    def pages(self, operation: str, asked: dict[str, str]) -> list[dict[str, Any]]:
        if operation not in OTHERS:
            return super().pages(operation, asked)
        plural, name, _ = OTHERS[operation]
        return [{plural: [{name: self.left[operation]}] if operation in self.left else []}]

    def __getattr__(self, called: str) -> Any:
        if called in OTHERS:
            return lambda **asked: self.pages(called, asked)[0]
        (operation,) = [each for each, (*_, deletes) in OTHERS.items() if deletes == called]
        return lambda **_: self.left.pop(operation)

    def delete_user(self, UserName: str) -> None:  # noqa: N803
        if self.left:
            raise Conflict("Cannot delete entity, must remove MFA device first.", code="DeleteConflict")
        super().delete_user(UserName)


def test_a_user_goes_with_the_credentials_that_people_gave_it() -> None:
    iam = Busy(user="mine")
    action = DeleteIdentities(account_id=AWS_ID, name="mine", namespace="ns")
    ActivityEnvironment().run(delete_identities, cast("Sessions", iam), action)
    assert (iam.owners, iam.left) == ({}, {})


class Stale(Busy):
    """IAM still lists policies and credentials that are gone."""

    def pages(self, operation: str, asked: dict[str, str]) -> list[dict[str, Any]]:
        if operation.startswith("list_attached"):
            return [{"AttachedPolicies": [{"PolicyArn": "arn"}]}]
        return super().pages(operation, asked)

    def __getattr__(self, called: str) -> Any:
        return super().__getattr__(called) if called in OTHERS else lambda **_: self.gone(called)

    def gone(self, called: str) -> None:
        self.left = {listing: name for listing, name in self.left.items() if OTHERS[listing][2] != called}
        raise Absent("it does not exist", code="NoSuchEntity")


def test_users_and_roles_are_deleted_although_iam_lists_policies_that_are_gone() -> None:
    iam = Stale(user="mine", role="mine")
    action = DeleteIdentities(account_id=AWS_ID, name="mine", namespace="ns")
    ActivityEnvironment().run(delete_identities, cast("Sessions", iam), action)
    assert iam.owners == {}
