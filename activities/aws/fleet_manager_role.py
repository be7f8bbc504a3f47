"""The role `managed-sts-role`, with what a fleet manager's principal may do in an account.

The list of actions is the replaced operator's, and installers depend on it.
"""

from __future__ import annotations

import json
from contextlib import suppress

from activities import attempt
from activities.aws.iam_identities import delete_role, delete_users
from activities.aws.iam_policies import made
from activities.aws.session import Sessions, tag_list
from domain.accounts.actions.iam_identities import DeleteFleetRole, EnsureFleetRole
from domain.accounts.constants import FLEET_POLICY, FLEET_ROLE
from domain.accounts.iam_and_instance_tags import owner_tags
from domain.accounts.trust_policy import trust
from engine.errors import Absent

_DESCRIPTION = "Managed by AAO"
_POLICY_ACTIONS = (
    *("iam:CreatePolicy", "iam:CreatePolicyVersion", "iam:DeletePolicy", "iam:DeletePolicyVersion", "iam:GetPolicy"),
    *("iam:GetPolicyVersion", "iam:ListEntitiesForPolicy", "iam:ListPolicyTags", "iam:ListPolicyVersions"),
    "iam:TagPolicy",
)
_ROLE_ACTIONS = (
    *("iam:AttachRolePolicy", "iam:CreateRole", "iam:DeleteRole", "iam:DetachRolePolicy", "iam:GetRole"),
    *("iam:ListAttachedRolePolicies", "iam:ListInstanceProfilesForRole", "iam:ListRolePolicies", "iam:ListRoleTags"),
    *("iam:ListRoles", "iam:TagRole", "iam:UpdateAssumeRolePolicy", "iam:UpdateRole"),
)
_OTHER_ACTIONS = (
    *("iam:CreateOpenIDConnectProvider", "iam:DeleteInstanceProfile", "iam:DeleteOpenIDConnectProvider"),
    *("iam:GetOpenIDConnectProvider", "iam:TagOpenIDConnectProvider", "iam:UpdateOpenIDConnectProviderThumbprint"),
    *("secretsmanager:CreateSecret", "secretsmanager:DeleteSecret", "secretsmanager:DescribeSecret"),
    *("secretsmanager:GetResourcePolicy", "secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"),
    *("secretsmanager:TagResource", "sts:AssumeRoleWithWebIdentity"),
)
_RESOURCES = ("instance-profile", "role", "oidc-provider", "policy")


def ensure_fleet_role(sessions: Sessions, action: EnsureFleetRole) -> None:
    iam = sessions.confirmed(action.account_id, action.partition).iam()
    if not made(
        lambda: iam.create_role(
            RoleName=FLEET_ROLE,
            AssumeRolePolicyDocument=trust(action.trusted_arn),
            Description=_DESCRIPTION,
            Tags=tag_list(action.tags),
        )
    ):
        iam.update_assume_role_policy(RoleName=FLEET_ROLE, PolicyDocument=trust(action.trusted_arn))
        iam.tag_role(RoleName=FLEET_ROLE, Tags=tag_list(action.tags))
    attempt.checkpoint()
    document = json.dumps(policy(action.account_id, action.partition))
    iam.put_role_policy(RoleName=FLEET_ROLE, PolicyName=FLEET_POLICY, PolicyDocument=document)
    delete_users(iam, owner_tags(action.name, action.namespace))


def delete_fleet_role(sessions: Sessions, action: DeleteFleetRole) -> None:
    iam = sessions.confirmed(action.account_id, action.partition).iam()
    with suppress(Absent):
        delete_role(iam, FLEET_ROLE)


def policy(account_id: str, partition: str) -> dict[str, object]:
    own = [f"arn:{partition}:iam::{account_id}:{kind}/*" for kind in _RESOURCES]
    actions = [*_POLICY_ACTIONS, *_ROLE_ACTIONS, *_OTHER_ACTIONS]
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Sid": "VisualEditor0", "Effect": "Allow", "Action": actions, "Resource": own},
            {"Sid": "VisualEditor1", "Effect": "Allow", "Action": "s3:*", "Resource": "*"},
        ],
    }
