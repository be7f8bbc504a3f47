"""Support role, admin user and key: whatever is interrupted, one of each, and no key without a Secret."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from aws_lab import Lab, admin_user, marks, support_role

from activities.aws import admin_key_secret
from domain.accounts.actions.iam_identities import DeleteIdentities, RotateKeys
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.identity import Key
from engine.errors import Absent, Conflict, Denied, Throttled, Unavailable
from engine.kube import SECRET

pytestmark = pytest.mark.integration

ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"
STRANGERS_POLICY = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
LATE = timedelta(minutes=10)


def rotation(account_id: str, name: str, owner: Key) -> RotateKeys:
    return RotateKeys(account_id=account_id, owner=owner, iam_user_id=name[-6:], secret=f"{name}-secret")


def one_known_key(lab: Lab, account_id: str, name: str) -> None:
    """The user has one key, and the Secret holds it."""
    assert [key.id for key in lab.keys(account_id)] == [lab.secret(f"{name}-secret")["aws_access_key_id"]]


def attached(lab: Lab, account_id: str, role: str) -> list[str]:
    policies = lab.sessions.member(account_id).iam().list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    return [policy["PolicyArn"] for policy in policies]


# The support role.


def test_the_support_role_trusts_the_payer_and_the_jump_role(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    role = lab.sessions.member(account_id).iam().get_role(RoleName=f"ManagedOpenShift-Support-{name[-6:]}")["Role"]
    principals = role["AssumeRolePolicyDocument"]["Statement"][0]["Principal"]["AWS"]  # type: ignore[typeddict-item,index]
    assert set(principals) == {lab.sessions.payer().identity().arn, "arn:aws:iam::123456789012:role/jump"}
    assert role["Description"] == "AdminAccess for BYOC"
    assert {tag["Key"]: tag["Value"] for tag in role["Tags"]} == marks(name)
    assert attached(lab, account_id, role["RoleName"]) == [ADMINISTRATOR]


def test_a_correct_role_is_only_observed(lab: Lab) -> None:
    account_id, name = lab.account()
    action = support_role(account_id, name)
    lab.run(lab.activities.ensure_support_role, action)
    lab.emulator.reset_ledger()
    lab.run(lab.activities.ensure_support_role, action)
    changing = [count for count in lab.emulator.ledger().counts if count.mutating and not count.errors]
    assert changing == []


def test_a_wrong_role_is_corrected(lab: Lab) -> None:
    account_id, name = lab.account()
    action = support_role(account_id, name)
    lab.run(lab.activities.ensure_support_role, action)
    iam, role = lab.sessions.member(account_id).iam(), f"ManagedOpenShift-Support-{name[-6:]}"
    policy = iam.create_policy(PolicyName="stranger", PolicyDocument=json.dumps(STRANGERS_POLICY))["Policy"]["Arn"]
    iam.attach_role_policy(RoleName=role, PolicyArn=policy)
    iam.detach_role_policy(RoleName=role, PolicyArn=ADMINISTRATOR)
    changed = action.model_copy(update={"jump_role": "arn:aws:iam::123456789012:role/other"})
    lab.run(lab.activities.ensure_support_role, changed)
    assert attached(lab, account_id, role) == [ADMINISTRATOR]
    document = iam.get_role(RoleName=role)["Role"]["AssumeRolePolicyDocument"]
    assert "role/other" in str(document)
    assert "role/jump" not in str(document)


@pytest.mark.parametrize("operation", ["CreateRole", "AttachRolePolicy"])
def test_a_lost_answer_leaves_one_role_with_its_policy(lab: Lab, operation: str) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("iam", operation, kind="after", count=1)
    with pytest.raises(Unavailable):
        lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name), attempt=2)
    assert attached(lab, account_id, f"ManagedOpenShift-Support-{name[-6:]}") == [ADMINISTRATOR]


# The admin user.


def test_the_key_is_in_the_secret_and_works(lab: Lab) -> None:
    account_id, name = lab.account()
    result = lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    secret = lab.secret(result.admin_secret)
    assert secret["aws_user_name"] == f"osdManagedAdmin-{name[-6:]}"
    assert lab.identity_of(secret) == f"arn:aws:iam::{account_id}:user/osdManagedAdmin-{name[-6:]}"
    one_known_key(lab, account_id, name)


def test_the_secret_is_owned_by_its_account(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    found = lab.kube.get(SECRET, OPERATOR_NAMESPACE, f"{name}-secret")
    reference = found["metadata"]["ownerReferences"][0]  # type: ignore[index]
    assert (reference["uid"], reference["controller"], reference["kind"]) == (owner.uid, True, "Account")
    assert found["type"] == "Opaque"


def test_a_secret_that_outlived_its_user_gets_the_new_users_key(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    old = {"aws_user_name": "x", "aws_access_key_id": "AKIAOLD", "aws_secret_access_key": "old"}
    admin_key_secret.write(lab.kube, owner, f"{name}-secret", old, before=None)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    one_known_key(lab, account_id, name)


def test_a_second_run_keeps_user_key_and_secret(lab: Lab) -> None:
    account_id, name = lab.account()
    action = admin_user(account_id, name, lab.owner(name))
    lab.run(lab.activities.ensure_admin_user, action)
    before = lab.secret(f"{name}-secret")
    lab.run(lab.activities.ensure_admin_user, action)
    assert lab.secret(f"{name}-secret") == before
    one_known_key(lab, account_id, name)


@pytest.mark.parametrize("operation", ["CreateUser", "AttachUserPolicy", "CreateAccessKey"])
def test_a_lost_answer_leaves_one_user_and_one_known_key(lab: Lab, operation: str) -> None:
    account_id, name = lab.account()
    action = admin_user(account_id, name, lab.owner(name))
    lab.emulator.fault("iam", operation, kind="after", count=1)
    with pytest.raises(Unavailable):
        lab.run(lab.activities.ensure_admin_user, action)
    lab.run(lab.activities.ensure_admin_user, action, attempt=2)
    assert [user.name for user in lab.emulator.world().users if user.account == account_id] == [
        f"osdManagedAdmin-{name[-6:]}"
    ]
    one_known_key(lab, account_id, name)


def test_a_secret_that_cannot_be_written_leaves_no_unknown_key(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    action = admin_user(account_id, name, owner)
    elsewhere = action.model_copy(update={"owner": owner.model_copy(update={"namespace": "nowhere"})})
    with pytest.raises(Absent):
        lab.run(lab.activities.ensure_admin_user, elsewhere, age=LATE)
    assert len(lab.keys(account_id)) == 1
    lab.run(lab.activities.ensure_admin_user, action, attempt=2)
    one_known_key(lab, account_id, name)


def test_a_deleted_secret_means_a_new_key(lab: Lab) -> None:
    account_id, name = lab.account()
    action = admin_user(account_id, name, lab.owner(name))
    lab.run(lab.activities.ensure_admin_user, action)
    first = lab.secret(f"{name}-secret")["aws_access_key_id"]
    lab.kube.delete(SECRET, OPERATOR_NAMESPACE, f"{name}-secret")
    lab.run(lab.activities.ensure_admin_user, action)
    one_known_key(lab, account_id, name)
    assert lab.secret(f"{name}-secret")["aws_access_key_id"] != first


def test_a_secret_whose_key_is_dead_gets_a_living_one(lab: Lab) -> None:
    account_id, name = lab.account()
    action = admin_user(account_id, name, lab.owner(name))
    lab.run(lab.activities.ensure_admin_user, action)
    dead = lab.secret(f"{name}-secret")["aws_access_key_id"]
    lab.sessions.member(account_id).iam().delete_access_key(UserName=f"osdManagedAdmin-{name[-6:]}", AccessKeyId=dead)
    lab.run(lab.activities.ensure_admin_user, action)
    one_known_key(lab, account_id, name)


def test_a_foreign_user_is_left_alone(lab: Lab) -> None:
    account_id, name = lab.account()
    iam, user = lab.sessions.member(account_id).iam(), f"osdManagedAdmin-{name[-6:]}"
    iam.create_user(UserName=user)
    iam.create_access_key(UserName=user)
    with pytest.raises(Conflict) as refused:
        lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    assert refused.value.code == "ForeignUser"
    assert len(lab.keys(account_id)) == 1


def test_a_secret_of_another_object_is_left_alone(lab: Lab) -> None:
    account_id, name = lab.account()
    stranger = lab.owner(lab.name())
    admin_key_secret.write(lab.kube, stranger, f"{name}-secret", {"aws_user_name": "x"}, before=None)
    with pytest.raises(Conflict) as refused:
        lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    assert refused.value.code == "ForeignSecret"
    assert lab.secret(f"{name}-secret") == {"aws_user_name": "x"}
    assert lab.keys(account_id) == []


def test_no_key_is_revealed(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    account_id, name = lab.account()
    with caplog.at_level("DEBUG"):
        result = lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    secret = lab.secret(f"{name}-secret")["aws_secret_access_key"]
    assert secret not in result.model_dump_json()
    ours = [record for record in caplog.records if not record.name.startswith("botocore")]
    assert secret not in "".join(record.getMessage() for record in ours)


def test_a_role_not_known_yet_is_waited_for_and_a_missing_one_is_denied(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("sts", "AssumeRole", kind="denied", count=2)
    with pytest.raises(Unavailable) as early:
        lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    assert early.value.delay is not None
    with pytest.raises(Denied) as late:
        lab.run(lab.activities.ensure_support_role, support_role(account_id, name), age=LATE)
    assert late.value.code.startswith("AccessDenied")
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name), attempt=3)


def test_throttling_is_throttling(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("iam", "CreateUser", kind="throttle", count=1)
    with pytest.raises(Throttled):
        lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))


@pytest.mark.parametrize(("age", "error"), [(timedelta(), Unavailable), (LATE, Denied)])
@pytest.mark.parametrize("code", ["InvalidClientTokenId", "AccessDenied"])
def test_a_refusal_passes_while_young_and_is_reported_when_it_persists(
    lab: Lab, code: str, age: timedelta, error: type[Exception]
) -> None:
    account_id, name = lab.account()
    lab.emulator.fault("iam", "CreateUser", kind="error", code=code, count=2)
    with pytest.raises(error) as refused:
        lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)), age=age)
    assert getattr(refused.value, "code", "") == code


# Rotation.


def test_rotation_kills_the_old_key(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    old = lab.secret(f"{name}-secret")
    lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle="claim-1")
    one_known_key(lab, account_id, name)
    assert lab.secret(f"{name}-secret")["aws_access_key_id"] != old["aws_access_key_id"]
    with pytest.raises(Denied):
        lab.identity_of(old)


def test_rotation_is_done_once_per_lifecycle(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    found = []
    for lifecycle in ("claim-1", "claim-1", "claim-2"):
        lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle=lifecycle)
        found.append(lab.secret(f"{name}-secret")["aws_access_key_id"])
    assert found[0] == found[1] != found[2]
    one_known_key(lab, account_id, name)


@pytest.mark.parametrize("operation", ["CreateAccessKey", "DeleteAccessKey"])
@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_torn_rotation_is_finished_by_the_next_attempt(lab: Lab, operation: str, kind: str) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    old = lab.secret(f"{name}-secret")["aws_access_key_id"]
    lab.emulator.fault("iam", operation, kind=kind, count=1)
    with pytest.raises(Unavailable):
        lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle="claim-1")
    lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle="claim-1", attempt=2)
    one_known_key(lab, account_id, name)
    assert lab.secret(f"{name}-secret")["aws_access_key_id"] != old


def test_rotation_kills_a_second_key_that_the_tenant_made(lab: Lab) -> None:
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    lab.sessions.member(account_id).iam().create_access_key(UserName=f"osdManagedAdmin-{name[-6:]}")
    lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle="claim-1")
    one_known_key(lab, account_id, name)


def test_a_user_that_the_tenant_deleted_is_made_again_with_a_new_key(lab: Lab) -> None:
    """A cleanup does not depend on what a tenant has done to the user."""
    account_id, name = lab.account()
    owner = lab.owner(name)
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, owner))
    lab.run(
        lab.activities.delete_identities,
        DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE),
    )
    lab.run(lab.activities.rotate_keys, rotation(account_id, name, owner), lifecycle="claim-1")
    one_known_key(lab, account_id, name)
    lab.run(
        lab.activities.delete_identities,
        DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE),
    )
    assert lab.keys(account_id) == [], "it carries our marks"


# Deletion.


def test_a_closed_account_releases_its_custom_resource_and_a_refusing_one_does_not(lab: Lab) -> None:
    account_id, name = lab.account()
    action = DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE)
    refusing = lab.emulator.fault("sts", "AssumeRole", kind="denied")
    with pytest.raises(Denied):
        lab.run(lab.activities.delete_identities, action)
    organizations = lab.sessions.payer().organizations()
    organizations.close_account(AccountId=account_id)
    lab.run(lab.activities.delete_identities, action)
    lab.emulator.clear(refusing.id)


def test_only_identities_with_our_tags_are_deleted(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    iam = lab.sessions.member(account_id).iam()
    iam.create_user(UserName="stranger", Tags=[{"Key": "clusterAccountName", "Value": name}])
    action = DeleteIdentities(account_id=account_id, name=name, namespace=OPERATOR_NAMESPACE)
    lab.run(lab.activities.delete_identities, action)
    lab.run(lab.activities.delete_identities, action, attempt=2)
    world = lab.emulator.world()
    assert [user.name for user in world.users if user.account == account_id] == ["stranger"]
    assert [role.name for role in world.roles if role.account == account_id] == ["OrganizationAccountAccessRole"]
    assert lab.keys(account_id) == []
