"""Customers' accounts entered for real: by their key, by the support role, in STS mode; and no other account."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from aws_lab import REGION, Lab, admin_user, marks, support_role
from botocore.exceptions import ClientError

from domain.accounts import AWS_FEDERATED_ROLE
from domain.accounts.actions.account_access import Access
from domain.accounts.actions.iam_identities import DeleteIdentities
from domain.accounts.actions.region_initialization import EndLaunches, InitializeRegion, ListRegions
from domain.accounts.constants import IAM_USER_ID_LABEL, OPERATOR_NAMESPACE
from domain.control_annotations import PAUSED
from domain.identity import Key
from engine.errors import Denied
from engine.kube import SECRET
from localcloud.aws.contract import IMAGE_OWNER, PAYER_ACCOUNT_ID, CustomerAccount
from starters.cli.audits.accounts.federated import federated_findings

pytestmark = pytest.mark.integration

JUMP = "test-sts-jump"


class Customer:
    """A customer's account with its Secret, and what the actions of its Account need."""

    def __init__(self, lab: Lab, *, keys_of: CustomerAccount | None = None) -> None:
        self.lab = lab
        self.own = lab.emulator.customer()
        self.name = lab.name()
        keys = keys_of or self.own
        self.put_key(keys.access_key_id, keys.secret_access_key)
        self.by_key = Access(namespace=OPERATOR_NAMESPACE, secret=f"{self.name}-input")
        self.by_role = Access(support_role=f"ManagedOpenShift-Support-{self.name[-6:]}")

    def put_key(self, key_id: str, secret: str) -> None:
        self.lab.kube.create(
            SECRET,
            {
                "metadata": {"name": f"{self.name}-input"},
                "stringData": {"aws_access_key_id": key_id, "aws_secret_access_key": secret},
            },
            OPERATOR_NAMESPACE,
        )

    def client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]
            endpoint_url=self.lab.emulator.endpoint,
            region_name=REGION,
            aws_access_key_id=self.own.access_key_id,
            aws_secret_access_key=self.own.secret_access_key,
        )

    def make_support_role(self) -> None:
        action = support_role(self.own.account, self.name).model_copy(update={"access": self.by_key})
        self.lab.run(self.lab.activities.ensure_support_role, action)

    def make_user(self) -> Key:
        owner = self.lab.owner(self.name)
        action = admin_user(self.own.account, self.name, owner).model_copy(update={"access": self.by_role})
        self.lab.run(self.lab.activities.ensure_admin_user, action)
        return owner

    def delete_identities(self, access: Access) -> None:
        action = DeleteIdentities(
            account_id=self.own.account, access=access, name=self.name, namespace=OPERATOR_NAMESPACE
        )
        self.lab.run(self.lab.activities.delete_identities, action)

    def roles(self) -> list[str]:
        return [role.name for role in self.lab.emulator.world().roles if role.account == self.own.account]

    def users(self) -> list[str]:
        return [user.name for user in self.lab.emulator.world().users if user.account == self.own.account]


def test_the_customers_key_makes_the_role_by_which_the_payer_comes_in(lab: Lab) -> None:
    customer = Customer(lab)
    customer.make_support_role()
    assert customer.roles() == [customer.by_role.support_role]
    customer.make_user()
    secret = lab.secret(f"{customer.name}-secret")
    assert lab.identity_of(secret).endswith(f":user/osdManagedAdmin-{customer.name[-6:]}")
    assert customer.own.account in lab.identity_of(secret)
    found = lab.run(lab.activities.list_regions, ListRegions(account_id=customer.own.account, access=customer.by_role))
    assert REGION in found.regions


def test_a_region_of_a_customer_is_initialised_and_nothing_is_left(lab: Lab) -> None:
    customer = Customer(lab)
    customer.make_support_role()
    owner = Key(kind="Account", namespace=OPERATOR_NAMESPACE, name=customer.name, uid=f"uid-{customer.name}")
    action = InitializeRegion(
        account_id=customer.own.account,
        access=customer.by_role,
        owner=owner,
        region=REGION,
        round="1",
        ami_owner=IMAGE_OWNER,
        tags=marks(customer.name),
        search=False,
    )
    assert lab.run(lab.activities.initialize_region, action).ok
    assert lab.instances(customer.own.account) == []


def test_only_our_own_launches_are_ended_in_a_customers_account(lab: Lab) -> None:
    customer = Customer(lab)
    customer.make_support_role()
    ec2 = customer.client("ec2")
    image = ec2.describe_images()["Images"][0]["ImageId"]
    launched = []
    for tags in ({}, {**marks(customer.name), "Name": "red-hat-region-init"}):
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        specification = [{"ResourceType": "instance", "Tags": listed}] if listed else []
        answer = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1, TagSpecifications=specification)
        launched.append(answer["Instances"][0]["InstanceId"])
    lab.run(
        lab.activities.end_launches,
        EndLaunches(account_id=customer.own.account, access=customer.by_role, region=REGION, tags=marks(customer.name)),
    )
    assert [each.id for each in lab.instances(customer.own.account)] == [launched[0]]


def test_our_resources_are_deleted_by_the_customers_key_and_the_customers_stay(lab: Lab) -> None:
    customer = Customer(lab)
    customer.make_support_role()
    customer.make_user()
    customer.delete_identities(customer.by_key)
    assert customer.roles() == []
    assert customer.users() == [customer.own.user]


def test_our_resources_are_deleted_by_the_support_role_where_the_key_is_gone(lab: Lab) -> None:
    customer = Customer(lab)
    customer.make_support_role()
    customer.make_user()
    customer.client("iam").delete_access_key(UserName=customer.own.user, AccessKeyId=customer.own.access_key_id)
    with pytest.raises(Denied):
        customer.delete_identities(customer.by_key)
    customer.delete_identities(customer.by_role)
    assert customer.roles() == []


def test_a_revoked_key_is_reported_at_once(lab: Lab) -> None:
    customer = Customer(lab)
    customer.client("iam").delete_access_key(UserName=customer.own.user, AccessKeyId=customer.own.access_key_id)
    with pytest.raises(Denied) as refused:
        customer.make_support_role()
    assert refused.value.code == "InvalidClientTokenId"


def test_a_key_of_another_account_is_not_used(lab: Lab) -> None:
    """Also the payer's own: nothing may be done with it in the name of a customer."""
    other = Customer(lab)
    customer = Customer(lab, keys_of=other.own)
    with pytest.raises(Denied) as refused:
        customer.make_support_role()
    assert refused.value.code == "IdentityMismatch"
    assert other.roles() == []


def test_the_payers_account_is_not_entered_as_a_customers(lab: Lab) -> None:
    customer = Customer(lab)
    action = support_role(PAYER_ACCOUNT_ID, customer.name).model_copy(update={"access": customer.by_key})
    with pytest.raises(Denied) as refused:
        lab.run(lab.activities.ensure_support_role, action)
    assert refused.value.code == "ProtectedAccount"


def test_without_its_secret_a_customers_account_is_not_entered(lab: Lab) -> None:
    customer = Customer(lab)
    lab.kube.delete(SECRET, OPERATOR_NAMESPACE, f"{customer.name}-input")
    with pytest.raises(Denied) as refused:
        customer.make_support_role()
    assert refused.value.code == "NoCredentials"


def _trust(*principals: str, external_id: str = "") -> str:
    statement: dict[str, object] = {
        "Effect": "Allow",
        "Principal": {"AWS": list(principals)},
        "Action": "sts:AssumeRole",
    }
    if external_id:
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": external_id}}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _jump_role(lab: Lab) -> str:
    iam = lab.sessions.payer().iam()
    arn = f"arn:aws:iam::{PAYER_ACCOUNT_ID}:role/{JUMP}"
    try:
        iam.get_role(RoleName=JUMP)
    except Exception:  # its absence, in whatever words
        iam.create_role(RoleName=JUMP, AssumeRolePolicyDocument=_trust(lab.sessions.payer().identity().arn))
    return arn


def test_in_sts_mode_the_jump_role_assumes_the_customers_role_with_external_id(lab: Lab) -> None:
    customer, jump = Customer(lab), _jump_role(lab)
    customer.client("iam").create_role(
        RoleName="let-in", AssumeRolePolicyDocument=_trust(jump, external_id="ours-and-theirs")
    )
    role = f"arn:aws:iam::{customer.own.account}:role/let-in"

    def regions(**access: str) -> tuple[str, ...]:
        entered = Access(jump_role=jump, sts_role=role, **access)
        action = ListRegions(account_id=customer.own.account, access=entered)
        return lab.run(lab.activities.list_regions, action).regions

    assert REGION in regions(external_id="ours-and-theirs")
    for wrong in ({}, {"external_id": "somebody-elses"}):
        with pytest.raises(Denied):
            regions(**wrong)


def test_a_customer_is_a_customer_of_the_emulator_too(lab: Lab) -> None:
    """Its account is none of the organization's, and its key opens it."""
    customer = Customer(lab)
    assert customer.client("sts").get_caller_identity()["Account"] == customer.own.account
    assert customer.own.account not in {each.id for each in lab.emulator.world().accounts}
    with pytest.raises(ClientError):
        customer.client("organizations").list_accounts()


def _account_of(customer: Customer) -> str:
    """The customer's Account, as the audit names it."""
    labels = {IAM_USER_ID_LABEL: customer.name[-6:]}
    made = customer.lab.owner(customer.name, labels=labels, awsAccountID=customer.own.account, byoc=True)
    return f"Account {made.namespace}/{made.name}"


def test_a_thorough_audit_reads_customers_accounts_and_names_unreadable_ones(lab: Lab) -> None:
    customer, closed = Customer(lab), Customer(lab)
    customer.make_support_role()
    role, left = f"reader-{customer.name[-6:]}", f"reader-{customer.name[-6:]}-zzzzzz"
    spec = {"roleDisplayName": "Reader", "roleDescription": "reads", "awsManagedPolicies": ["ReadOnlyAccess"]}
    metadata = {"name": role, "annotations": {PAUSED: "true"}}
    lab.kube.create(AWS_FEDERATED_ROLE, {"metadata": metadata, "spec": spec}, OPERATOR_NAMESPACE)
    trust = _trust(lab.sessions.payer().identity().arn)
    customer.client("iam").create_role(RoleName=left, AssumeRolePolicyDocument=trust)
    _account_of(customer)
    unreadable = _account_of(closed)

    found = {each.subject: each.problem for each in federated_findings(lab.sessions, lab.kube, thorough=True)}

    assert "an AWSFederatedAccountAccess that does not exist" in found[f"role {left} in {customer.own.account}"]
    assert found[unreadable].startswith("its roles and policies cannot be read: ")
    lab.kube.delete(AWS_FEDERATED_ROLE, OPERATOR_NAMESPACE, role)
