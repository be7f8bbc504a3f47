"""Federated access end to end: an outside identity gets into a customer's account, and is out again at the end."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator
from typing import Any

import boto3
import pytest
from accounts_lab import Lab, laboratory, product
from botocore.exceptions import ClientError

from domain.accounts import AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole
from domain.resource import condition_of
from engine.kube import NAMESPACE, SECRET
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TENANT, ROLE, KEYS = "federated", "network-reader", "customer-keys"
READ_EC2, READ_S3 = "AmazonEC2ReadOnlyAccess", "AmazonS3ReadOnlyAccess"
STATEMENT = {"effect": "Allow", "action": ["route53:List*"], "resource": ["*"]}


class Cloud:
    """The organization as its payer sees it, and a customer's account in it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._endpoint = env["AWS_ENDPOINT_URL"]
        self._payer = boto3.Session(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1")
        self.outsider = self._client(self._payer, "sts").get_caller_identity()["Arn"]
        self.account_id = self._make_account()
        self.iam = self._client(self.assume("OrganizationAccountAccessRole"), "iam")

    def _client(self, session: boto3.Session, service: str) -> Any:
        return session.client(service, endpoint_url=self._endpoint)  # type: ignore[call-overload]

    def _make_account(self) -> str:
        organizations = self._client(self._payer, "organizations")
        name = f"customer-{time.time_ns()}"
        creation = organizations.create_account(AccountName=name, Email=f"{name}@example.com")["CreateAccountStatus"]
        until = time.monotonic() + 60
        while not creation.get("AccountId") and time.monotonic() < until:
            time.sleep(0.1)
            found = organizations.describe_create_account_status(CreateAccountRequestId=creation["Id"])
            creation = found["CreateAccountStatus"]
        return str(creation["AccountId"])

    def assume(self, role: str) -> boto3.Session:
        """A session of a role in the customer's account; raises where the role does not let the payer's user in."""
        arn = f"arn:aws:iam::{self.account_id}:role/{role}"
        keys = self._client(self._payer, "sts").assume_role(RoleArn=arn, RoleSessionName="tests")["Credentials"]
        return boto3.Session(
            keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"], region_name="us-east-1"
        )

    def key(self) -> dict[str, str]:
        """A new key of an administrator of the account, as a Secret holds it."""
        self.iam.create_user(UserName="customer")
        self.iam.attach_user_policy(UserName="customer", PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess")
        key = self.iam.create_access_key(UserName="customer")["AccessKey"]
        content = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        return {name: base64.b64encode(value.encode()).decode() for name, value in content.items()}

    def attached(self, role: str) -> set[str]:
        found = self.iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        return {policy["PolicyName"] for policy in found}

    def left(self, uid: str) -> set[str]:
        roles = [role["RoleName"] for role in self.iam.list_roles()["Roles"]]
        policies = [policy["PolicyName"] for policy in self.iam.list_policies(Scope="Local")["Policies"]]
        return {name for name in [*roles, *policies] if name.endswith(uid)}


@pytest.fixture(scope="module")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    async with laboratory(deployment) as found, product(deployment):
        await found.ensure(NAMESPACE, "", {"metadata": {"name": TENANT}})
        async with found.objects.followed(AWS_FEDERATED_ROLE, AWS_FEDERATED_ACCOUNT_ACCESS):
            yield found


@pytest.fixture(scope="module")
async def cloud(deployment: Deployment) -> Cloud:
    return await asyncio.to_thread(Cloud, deployment.env())


def role_of(lab: Lab) -> AWSFederatedRole | None:
    obj = lab.objects.one(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE, ROLE)
    return AWSFederatedRole.model_validate(obj) if obj is not None else None


def access_of(lab: Lab, name: str = "access") -> AWSFederatedAccountAccess | None:
    obj = lab.objects.one(AWS_FEDERATED_ACCOUNT_ACCESS, TENANT, name)
    return AWSFederatedAccountAccess.model_validate(obj) if obj is not None else None


def message_of(lab: Lab, type_: str) -> str:
    access = access_of(lab)
    shown = condition_of(access.status.conditions, type_) if access else None
    return (shown.message or "") if shown else ""


async def test_an_outsider_gets_in_once_all_is_there_and_is_out_when_the_role_goes(lab: Lab, cloud: Cloud) -> None:
    await lab.kube.create(
        AWS_FEDERATED_ACCOUNT_ACCESS,
        {
            "metadata": {"name": "access"},
            "spec": {
                "externalCustomerAWSIAMARN": cloud.outsider,
                "awsCustomerCredentialSecret": {"name": KEYS, "namespace": TENANT},
                "awsFederatedRole": {"name": ROLE, "namespace": OPERATOR_NAMESPACE},
            },
        },
        TENANT,
    )
    await lab.until(
        "the missing role is reported", lambda: message_of(lab, "Failed") == "Requested role does not exist"
    )

    custom = {"name": "zones", "description": "reads zones", "awsStatements": [STATEMENT]}
    spec = {
        "roleDisplayName": "Network reader",
        "roleDescription": "reads networks",
        "awsManagedPolicies": [READ_EC2],
        "awsCustomPolicy": custom,
    }
    await lab.kube.create(AWS_FEDERATED_ROLE, {"metadata": {"name": ROLE}, "spec": spec}, OPERATOR_NAMESPACE)
    await lab.until("the role is Valid", lambda: (r := role_of(lab)) is not None and r.status.state == "Valid")
    failure = "Failed to get account ID information"
    await lab.until("the missing keys are reported", lambda: message_of(lab, "Failed") == failure)
    assert f"{TENANT}/{KEYS}" in message_of(lab, "Synced")

    await lab.kube.create(SECRET, {"metadata": {"name": KEYS}, "data": await asyncio.to_thread(cloud.key)}, TENANT)
    await lab.until("it is Ready", lambda: (a := access_of(lab)) is not None and a.status.state == "Ready")
    access = access_of(lab)
    assert access is not None
    uid = access.metadata.labels["uid"]
    name = f"{ROLE}-{uid}"
    assert access.metadata.labels == {"uid": uid, "awsAccountID": cloud.account_id, "awsFederatedRoleName": ROLE}
    url = f"https://signin.aws.amazon.com/switchrole?account={cloud.account_id}&roleName={name}"
    assert access.status.console_url == url
    assert await asyncio.to_thread(cloud.attached, name) == {READ_EC2, f"zones-{uid}"}
    await asyncio.to_thread(cloud.assume, name)

    granted = access.status.granted
    patch = {"spec": {"awsManagedPolicies": [READ_S3]}}
    await lab.change(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE, ROLE, patch)
    await lab.until(
        "the access follows the role", lambda: (a := access_of(lab)) is not None and a.status.granted != granted
    )
    assert await asyncio.to_thread(cloud.attached, name) == {READ_S3, f"zones-{uid}"}
    assert (await lab.kube.get(AWS_FEDERATED_ACCOUNT_ACCESS, TENANT, "access"))["metadata"]["annotations"][
        "lastRoleUpdate"
    ]

    await lab.kube.delete(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE, ROLE)
    await lab.until("role and access are gone", lambda: role_of(lab) is None and access_of(lab) is None)
    assert await asyncio.to_thread(cloud.left, uid) == set()
    with pytest.raises(ClientError, match="AccessDenied"):
        await asyncio.to_thread(cloud.assume, name)
