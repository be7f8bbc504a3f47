"""Claims of every sort that need no pool, end to end: BYOC, STS mode, fake; and their ends when something is gone."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import boto3
import pytest
from accounts_lab import CREDENTIALS, POOL, REGION, Lab, laboratory, product

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, AWS_FEDERATED_ACCOUNT_ACCESS, AWS_FEDERATED_ROLE
from domain.accounts.constants import INPUT_SECRET_FINALIZER, OPERATOR_NAMESPACE
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.resources import Account, AccountClaim
from domain.resource import condition_of
from engine.errors import Absent
from engine.kube import NAMESPACE, SECRET
from engine.kube.json import mapping, sequence, text
from localcloud.aws.contract import PAYER_ACCOUNT_ID, CustomerAccount
from localcloud.deployment import Deployment

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

INPUT = "customers-key"
JUMP = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/RH-Account-Jump"


@pytest.fixture(scope="module")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    async with laboratory(deployment) as lab, product(deployment):
        yield lab


async def put_key(lab: Lab, namespace: str, customer: CustomerAccount) -> None:
    await lab.ensure(NAMESPACE, "", {"metadata": {"name": namespace}})
    keys = {"aws_access_key_id": customer.access_key_id, "aws_secret_access_key": customer.secret_access_key}
    await lab.kube.create(SECRET, {"metadata": {"name": INPUT}, "stringData": keys}, namespace)


def byoc(namespace: str, customer: CustomerAccount) -> dict[str, object]:
    return {
        "accountPool": "",
        "byoc": True,
        "byocAWSAccountID": customer.account,
        "byocSecretRef": {"name": INPUT, "namespace": namespace},
    }


def account_of(lab: Lab, claim: AccountClaim | None) -> Account | None:
    obj = lab.objects.one(ACCOUNT, OPERATOR_NAMESPACE, claim.spec.account_link) if claim else None
    return Account.model_validate(obj) if obj is not None else None


def says(claim: AccountClaim | None, type_: str, status: str = "True") -> str:
    found = condition_of(claim.status.conditions, type_) if claim else None
    return (found.reason or "") if found and found.status == status else ""


@asynccontextmanager
async def claim_released_at_end(lab: Lab, name: str, **spec: object) -> AsyncIterator[None]:
    """A claim that is gone at the end, by the lever if it must be."""
    await lab.ask(name, **spec)
    try:
        await lab.until(f"claim {name} is there", lambda: lab.claim(name) is not None)
        yield
    finally:
        if lab.claim(name) is not None:
            await lab.change(
                ACCOUNT_CLAIM, name, name, {"metadata": {"annotations": {FORCE_RELEASE: "the test is over"}}}
            )
            await lab.kube.delete(ACCOUNT_CLAIM, name, name)
            await lab.until(f"claim {name} is gone", lambda: lab.claim(name) is None)


def ours(lab: Lab, account_id: str) -> list[str]:
    world = lab.emulator.world()
    found = [each.name for each in (*world.users, *world.roles) if each.account == account_id]
    return [name for name in found if name.startswith(("osdManagedAdmin", "ManagedOpenShift"))]


def readers(lab: Lab, account_id: str) -> list[str]:
    """Roles of federated access in the account."""
    found = [role.name for role in lab.emulator.world().roles if role.account == account_id]
    return [name for name in found if name.startswith("reader-")]


async def test_a_byoc_claim_gets_its_key_after_ready_and_leaves_nothing_behind(lab: Lab) -> None:
    name, customer = "byoc-whole", lab.emulator.customer()
    await lab.ask(name, **byoc(name, customer))
    await lab.until("it says that the Secret is missing", lambda: says(lab.claim(name), "AuthenticationFailed") != "")
    assert says(lab.claim(name), "AuthenticationFailed") == "BYOCSecretMissing"
    await put_key(lab, name, customer)
    await lab.until("the claim is Ready", lambda: lab.claim_state(name) == "Ready")
    await lab.until("it has its support role", lambda: bool((c := lab.claim(name)) and c.spec.support_role_arn))
    claim = lab.claim(name)
    assert claim is not None
    await lab.until("its Account is claimed", lambda: bool((a := account_of(lab, claim)) and a.status.claimed))
    account = account_of(lab, claim)
    assert account is not None
    assert (account.spec.byoc, account.spec.aws_account_id) == (True, customer.account)
    assert (account.status.state, account.status.claimed, account.status.support_case_id) == ("Ready", True, "")
    key = await lab.key(name)
    assert key.opens() == customer.account
    held = await lab.kube.get(SECRET, name, INPUT)
    assert INPUT_SECRET_FINALIZER in sequence(held, "metadata", "finalizers")
    assert len(ours(lab, customer.account)) == 2

    await lab.kube.delete(ACCOUNT_CLAIM, name, name)
    await lab.until("the claim is gone", lambda: lab.claim(name) is None)
    with pytest.raises(Absent):
        await lab.kube.get(ACCOUNT, OPERATOR_NAMESPACE, claim.spec.account_link)
    assert ours(lab, customer.account) == []
    assert key.opens() == ""
    assert not await lab.has_secret(name)
    free = await lab.kube.get(SECRET, name, INPUT)
    assert not sequence(free, "metadata", "finalizers")


async def test_a_deleted_namespace_leaves_nothing_of_its_claim_and_federated_access(lab: Lab) -> None:
    """The access's own key goes with the namespace: its role is removed by the claim's support role, which waits."""
    name, customer = "byoc-namespace", lab.emulator.customer()
    await put_key(lab, name, customer)
    await lab.ask(name, **byoc(name, customer))
    keys = {"aws_access_key_id": customer.access_key_id, "aws_secret_access_key": customer.secret_access_key}
    await lab.kube.create(SECRET, {"metadata": {"name": "keys"}, "stringData": keys}, name)
    policies = {"awsManagedPolicies": ["AmazonEC2ReadOnlyAccess"]}
    role = {"roleDisplayName": "Reader", "roleDescription": "reads", **policies}
    access = {
        "externalCustomerAWSIAMARN": f"arn:aws:iam::{customer.account}:root",
        "awsCustomerCredentialSecret": {"name": "keys", "namespace": name},
        "awsFederatedRole": {"name": "reader", "namespace": OPERATOR_NAMESPACE},
    }
    async with lab.objects.followed(AWS_FEDERATED_ROLE, AWS_FEDERATED_ACCOUNT_ACCESS):
        await lab.kube.create(AWS_FEDERATED_ROLE, {"metadata": {"name": "reader"}, "spec": role}, OPERATOR_NAMESPACE)
        await lab.kube.create(AWS_FEDERATED_ACCOUNT_ACCESS, {"metadata": {"name": "access"}, "spec": access}, name)
        await lab.until("it has its support role", lambda: bool((c := lab.claim(name)) and c.spec.support_role_arn))
        await lab.until(
            "the access is granted",
            lambda: text(lab.objects.one(AWS_FEDERATED_ACCOUNT_ACCESS, name, "access"), "status", "state") == "Ready",
        )
        assert readers(lab, customer.account)
        await lab.kube.delete(NAMESPACE, "", name)
        await lab.until("the claim is gone", lambda: lab.claim(name) is None, 120)
        with pytest.raises(Absent):
            await lab.kube.get(AWS_FEDERATED_ACCOUNT_ACCESS, name, "access")
        assert readers(lab, customer.account) == []
        assert ours(lab, customer.account) == []
        await lab.kube.delete(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE, "reader")
        await lab.until("the role is gone", lambda: not lab.objects.of(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE))


async def test_a_revoked_key_shows_on_the_claim_and_a_new_one_heals_it(lab: Lab) -> None:
    name, customer = "byoc-revoked", lab.emulator.customer()
    await put_key(lab, name, customer.model_copy(update={"access_key_id": "AKIANOBODYKNOWSTHIS0"}))
    async with claim_released_at_end(lab, name, **byoc(name, customer)):
        await lab.until("it says why", lambda: says(lab.claim(name), "AuthenticationFailed") != "")
        assert says(lab.claim(name), "AuthenticationFailed") == "InvalidClientTokenId"
        assert lab.claim_state(name) == ""
        right = {"aws_access_key_id": customer.access_key_id}
        await lab.change(SECRET, name, INPUT, {"stringData": right})
        await lab.until("the claim is Ready", lambda: lab.claim_state(name) == "Ready")
        assert says(lab.claim(name), "AuthenticationFailed", "False") == "InvalidClientTokenId"


@pytest.mark.complete
async def test_a_claim_whose_customer_has_shut_every_door_says_so_and_a_person_lets_it_go(lab: Lab) -> None:
    name, customer = "byoc-shut", lab.emulator.customer()
    await put_key(lab, name, customer)
    async with claim_released_at_end(lab, name, **byoc(name, customer)):
        await lab.until("it has its Secret", lambda: bool((c := lab.claim(name)) and c.spec.support_role_arn))
        iam = boto3.client(
            "iam",
            endpoint_url=lab.emulator.endpoint,
            region_name=REGION,
            aws_access_key_id=customer.access_key_id,
            aws_secret_access_key=customer.secret_access_key,
        )
        (role,) = [each for each in ours(lab, customer.account) if each.startswith("ManagedOpenShift")]
        for policy in iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]:
            iam.detach_role_policy(RoleName=role, PolicyArn=policy["PolicyArn"])
        iam.delete_role(RoleName=role)
        iam.delete_access_key(UserName=customer.user, AccessKeyId=customer.access_key_id)
        await lab.kube.delete(ACCOUNT_CLAIM, name, name)
        await lab.until("it says why", lambda: says(lab.claim(name), "ReleaseBlocked") != "")
        await lab.change(
            ACCOUNT_CLAIM, name, name, {"metadata": {"annotations": {FORCE_RELEASE: "the customer has left"}}}
        )
        await lab.until("the claim is gone", lambda: lab.claim(name) is None)


async def test_a_claim_in_sts_mode_is_ready_without_any_identity_of_ours(lab: Lab) -> None:
    name, customer = "sts-whole", lab.emulator.customer()
    payer = boto3.client(
        "iam",
        endpoint_url=lab.emulator.endpoint,
        region_name=REGION,
        aws_access_key_id=lab.emulator.health().access_key_id,
        aws_secret_access_key=lab.emulator.health().secret_access_key,
    )
    theirs = boto3.client(
        "iam",
        endpoint_url=lab.emulator.endpoint,
        region_name=REGION,
        aws_access_key_id=customer.access_key_id,
        aws_secret_access_key=customer.secret_access_key,
    )
    with_id = {"StringEquals": {"sts:ExternalId": "shared"}}
    payers = [payer.get_user()["User"]["Arn"]]
    payer.create_role(RoleName="RH-Account-Jump", AssumeRolePolicyDocument=_trust(payers))
    theirs.create_role(RoleName="let-in", AssumeRolePolicyDocument=_trust([JUMP], with_id))
    spec = {
        "accountPool": "",
        "byoc": True,
        "manualSTSMode": True,
        "byocAWSAccountID": customer.account,
        "stsRoleARN": f"arn:aws:iam::{customer.account}:role/let-in",
        "stsExternalID": "shared",
    }
    async with claim_released_at_end(lab, name, **spec):
        await lab.until("the claim is Ready", lambda: lab.claim_state(name) == "Ready")
        claim = lab.claim(name)
        await lab.until("its Account is seen", lambda: account_of(lab, claim) is not None)
        account = account_of(lab, claim)
        assert claim is not None
        assert account is not None
        assert account.spec.manual_sts_mode
        assert (claim.spec.support_role_arn, account.spec.iam_user_secret) == ("", "")
        assert not await lab.has_secret(name)
        assert ours(lab, customer.account) == []
        assert [each for each in lab.emulator.world().instances if each.account == customer.account] == []
        await lab.kube.delete(ACCOUNT_CLAIM, name, name)
        await lab.until("the claim is gone", lambda: lab.claim(name) is None)
    payer.delete_role(RoleName="RH-Account-Jump")


def _trust(principals: list[str], condition: object = None) -> str:
    statement: dict[str, object] = {"Effect": "Allow", "Principal": {"AWS": principals}, "Action": "sts:AssumeRole"}
    if condition:
        statement["Condition"] = condition
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


async def test_a_fake_claim_gets_dummy_keys_and_no_account(lab: Lab) -> None:
    name = "fake-whole"
    await lab.ensure(NAMESPACE, "", {"metadata": {"name": name}})
    await lab.kube.create(
        ACCOUNT_CLAIM,
        {
            "metadata": {"name": name, "annotations": {"managed.openshift.com/fake": "true"}},
            "spec": {
                "legalEntity": {"id": name, "name": name},
                "awsCredentialSecret": {"name": CREDENTIALS, "namespace": name},
                "aws": {"regions": []},
                "accountLink": "",
                "accountPool": POOL,
            },
        },
        name,
    )
    await lab.until("the claim is Ready", lambda: lab.claim_state(name) == "Ready")
    found = mapping(await lab.kube.get(SECRET, name, CREDENTIALS), "data")
    assert base64.b64decode(str(found["aws_access_key_id"])) == b"fakeAccessKey"
    assert base64.b64decode(str(found["aws_secret_access_key"])) == b"FakeSecretAccesskey"
    await lab.kube.delete(ACCOUNT_CLAIM, name, name)
    await lab.until("the claim is gone", lambda: lab.claim(name) is None)
    assert not await lab.has_secret(name)
