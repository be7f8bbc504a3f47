"""The fleet manager's role in a real account: made, made right, trusted by one principal, and deleted whole."""

from __future__ import annotations

import json

import pytest
from aws_lab import Lab, admin_user, marks, support_role

from activities.aws.fleet_manager_role import policy
from domain.accounts.actions.iam_identities import DeleteFleetRole, EnsureFleetRole
from domain.accounts.constants import OPERATOR_NAMESPACE

pytestmark = pytest.mark.integration

PRINCIPAL = "arn:aws:iam::999999999999:role/fleet"


def ensure(account_id: str, name: str, principal: str = PRINCIPAL) -> EnsureFleetRole:
    return EnsureFleetRole(
        account_id=account_id, trusted_arn=principal, name=name, namespace=OPERATOR_NAMESPACE, tags=marks(name)
    )


def test_the_role_replaces_the_admin_user_and_lets_one_principal_in(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_support_role, support_role(account_id, name))
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    lab.run(lab.activities.ensure_fleet_role, ensure(account_id, name))
    world = lab.emulator.world()
    assert [user.name for user in world.users if user.account == account_id] == []
    iam = lab.sessions.member(account_id).iam()
    role = iam.get_role(RoleName="managed-sts-role")["Role"]
    assert role["Description"] == "Managed by AAO"
    assert PRINCIPAL in json.dumps(role["AssumeRolePolicyDocument"])
    found = iam.get_role_policy(RoleName="managed-sts-role", PolicyName="AAO-CustomPolicy")["PolicyDocument"]
    assert found == policy(account_id, "aws")


def test_a_role_that_is_there_already_is_made_right(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_fleet_role, ensure(account_id, name, "arn:aws:iam::999999999999:role/earlier"))
    lab.run(lab.activities.ensure_fleet_role, ensure(account_id, name), attempt=2)
    trust = lab.sessions.member(account_id).iam().get_role(RoleName="managed-sts-role")["Role"]
    assert json.dumps(trust["AssumeRolePolicyDocument"]).count("arn:aws:iam") == 1
    assert PRINCIPAL in json.dumps(trust["AssumeRolePolicyDocument"])
    assert lab.calls("iam", "DeleteRole", account_id) == 0


def test_the_role_is_deleted_whole_and_once_more_is_no_error(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_fleet_role, ensure(account_id, name))
    for attempt in (1, 2):
        lab.run(lab.activities.delete_fleet_role, DeleteFleetRole(account_id=account_id), attempt=attempt)
    assert "managed-sts-role" not in [role.name for role in lab.emulator.world().roles if role.account == account_id]


def test_a_role_that_an_instance_profile_contains_is_deleted_too(lab: Lab) -> None:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_fleet_role, ensure(account_id, name))
    iam = lab.sessions.member(account_id).iam()
    iam.create_instance_profile(InstanceProfileName="tenants")
    iam.add_role_to_instance_profile(InstanceProfileName="tenants", RoleName="managed-sts-role")
    lab.run(lab.activities.delete_fleet_role, DeleteFleetRole(account_id=account_id))
    assert "managed-sts-role" not in [role.name for role in lab.emulator.world().roles if role.account == account_id]
