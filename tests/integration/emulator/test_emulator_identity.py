"""The emulator's keys, sessions and roles: a caller acts for an account only with its key."""

from __future__ import annotations

import json

import pytest
from emulator_process import Cloud, error_of

from localcloud.aws.control import Emulator

pytestmark = pytest.mark.integration

ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def user_with_key(member: Cloud, name: str = "osdManagedAdmin-abc123") -> Cloud:
    iam = member.client("iam")
    iam.create_user(UserName=name)
    iam.attach_user_policy(UserName=name, PolicyArn=ADMINISTRATOR)
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return member.with_key(key["AccessKeyId"], key["SecretAccessKey"])


def refusals(cloud: Cloud) -> list[str]:
    return [
        error_of(cloud.client("sts").get_caller_identity),
        error_of(cloud.client("iam").list_users),
        error_of(cloud.client("ec2").describe_instances),
        error_of(cloud.client("s3").list_buckets),
        error_of(cloud.client("organizations").list_accounts),
        error_of(cloud.client("route53").list_hosted_zones),
    ]


REFUSED = [
    "InvalidClientTokenId",
    "InvalidClientTokenId",
    "AuthFailure",
    "InvalidAccessKeyId",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
]


def test_a_key_that_was_not_issued_is_refused_everywhere(payer: Cloud) -> None:
    assert refusals(payer.with_key("AKIAQQQQQQQQQQQQQQQQ", "secret")) == REFUSED


def test_a_deleted_key_is_refused_everywhere(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account())
    user = user_with_key(member)
    assert user.client("sts").get_caller_identity()["Arn"].endswith("user/osdManagedAdmin-abc123")
    member.client("iam").delete_access_key(
        UserName="osdManagedAdmin-abc123", AccessKeyId=user.credentials["aws_access_key_id"]
    )
    assert refusals(user) == REFUSED


def test_an_inactive_key_is_refused_until_it_is_active_again(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account())
    user = user_with_key(member)
    key = {"UserName": "osdManagedAdmin-abc123", "AccessKeyId": user.credentials["aws_access_key_id"]}
    member.client("iam").update_access_key(**key, Status="Inactive")
    assert refusals(user) == REFUSED
    member.client("iam").update_access_key(**key, Status="Active")
    user.client("iam").list_users()


def test_a_new_key_can_take_time_to_be_known(payer: Cloud, emulator: Emulator) -> None:
    user = user_with_key(payer.in_account(payer.new_account()))
    emulator.config(key_propagation_seconds=3600)
    assert error_of(user.client("sts").get_caller_identity) == "InvalidClientTokenId"


def test_a_session_needs_its_own_token(payer: Cloud) -> None:
    session = payer.in_account(payer.new_account())
    key, secret = session.credentials["aws_access_key_id"], session.credentials["aws_secret_access_key"]
    assert error_of(session.with_key(key, secret).client("iam").list_users) == "InvalidClientTokenId"
    assert error_of(session.with_key(key, secret, "other").client("iam").list_users) == "InvalidClientTokenId"
    session.client("iam").list_users()


def test_a_session_acts_in_the_account_of_its_role(payer: Cloud) -> None:
    account = payer.new_account()
    identity = payer.in_account(account).client("sts").get_caller_identity()
    assert identity["Account"] == account
    assert identity["Arn"] == f"arn:aws:sts::{account}:assumed-role/OrganizationAccountAccessRole/test"


@pytest.mark.parametrize(
    "arn", ["arn:aws:iam::000000000001:role/Any", "arn:aws:iam:::role/Any", "this-is-no-arn-of-a-role"]
)
def test_roles_of_unknown_accounts_cannot_be_assumed(payer: Cloud, arn: str) -> None:
    assert error_of(lambda: payer.assume(arn)) == "AccessDenied"


def test_a_missing_or_deleted_role_cannot_be_assumed(payer: Cloud) -> None:
    account = payer.new_account()
    assert error_of(lambda: payer.assume(f"arn:aws:iam::{account}:role/Missing")) == "AccessDenied"
    payer.in_account(account).client("iam").delete_role(RoleName="OrganizationAccountAccessRole")
    assert error_of(lambda: payer.in_account(account)) == "AccessDenied"


def test_a_session_ends_with_its_role(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account())
    member.client("sts").get_caller_identity()
    member.client("iam").delete_role(RoleName="OrganizationAccountAccessRole")
    assert error_of(member.client("sts").get_caller_identity) == "InvalidClientTokenId"


def test_a_role_admits_the_principals_of_its_trust_policy(payer: Cloud) -> None:
    account = payer.new_account()
    member, stranger = payer.in_account(account), payer.in_account(payer.new_account())
    operator = payer.client("sts").get_caller_identity()["Arn"]
    trust = {"Effect": "Allow", "Principal": {"AWS": [operator]}, "Action": "sts:AssumeRole"}
    guarded = trust | {"Condition": {"StringEquals": {"sts:ExternalId": "secret-1"}}}
    for name, statement in (("Trusting", trust), ("Guarded", guarded)):
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        member.client("iam").create_role(RoleName=name, AssumeRolePolicyDocument=document)
    trusting, guarded_arn = f"arn:aws:iam::{account}:role/Trusting", f"arn:aws:iam::{account}:role/Guarded"
    payer.assume(trusting)
    assert error_of(lambda: stranger.assume(trusting)) == "AccessDenied"
    assert error_of(lambda: payer.assume(guarded_arn)) == "AccessDenied"
    assert error_of(lambda: payer.assume(guarded_arn, ExternalId="secret-2")) == "AccessDenied"
    payer.assume(guarded_arn, ExternalId="secret-1")


def test_administrator_access_can_be_attached_and_is_listed(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account())
    user_with_key(member)
    attached = member.client("iam").list_attached_user_policies(UserName="osdManagedAdmin-abc123")["AttachedPolicies"]
    assert attached == [{"PolicyName": "AdministratorAccess", "PolicyArn": ADMINISTRATOR}]


@pytest.mark.parametrize("policy", ["ReadOnlyAccess", "SecurityAudit", "job-function/ViewOnlyAccess"])
def test_the_policies_of_auditors_can_be_attached(payer: Cloud, policy: str) -> None:
    iam = payer.in_account(payer.new_account()).client("iam")
    iam.create_user(UserName="auditor")
    arn = f"arn:aws:iam::aws:policy/{policy}"
    assert arn in {each["Arn"] for page in iam.get_paginator("list_policies").paginate() for each in page["Policies"]}
    iam.attach_user_policy(UserName="auditor", PolicyArn=arn)
    version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
    document = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
    assert document["Statement"][0]["Effect"] == "Allow"


def test_a_user_with_keys_is_not_deleted(payer: Cloud) -> None:
    member = payer.in_account(payer.new_account())
    user = user_with_key(member)
    iam, name = member.client("iam"), "osdManagedAdmin-abc123"
    iam.detach_user_policy(UserName=name, PolicyArn=ADMINISTRATOR)
    assert error_of(lambda: iam.delete_user(UserName=name)) == "DeleteConflict"
    iam.delete_access_key(UserName=name, AccessKeyId=user.credentials["aws_access_key_id"])
    iam.delete_user(UserName=name)


def test_the_world_lists_keys_without_secrets(payer: Cloud, emulator: Emulator) -> None:
    account = payer.new_account()
    user = user_with_key(payer.in_account(account))
    world = emulator.world()
    assert [(k.user, k.id, k.active) for k in world.keys if k.account == account] == [
        ("osdManagedAdmin-abc123", user.credentials["aws_access_key_id"], True)
    ]
    assert user.credentials["aws_secret_access_key"] not in world.model_dump_json()
