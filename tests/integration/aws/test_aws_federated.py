"""Federated roles and accesses in IAM: judged without a trace, granted once, renewed by what differs, taken back."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from aws_lab import Lab, admin_user, support_role
from aws_permissions import needed, permitted

from activities.aws.federated_revocation import Cleaner
from activities.aws.permissions import Role
from domain.accounts import ACCOUNT
from domain.accounts.arns import policy_arn
from domain.accounts.constants import OPERATOR_NAMESPACE
from domain.accounts.federated import ACCESS_TAG, VALIDATION_PATH
from domain.accounts.federated.actions import (
    AttachAccessPolicies,
    ClearValidation,
    EnsureAccessPolicy,
    EnsureAccessRole,
    IdentifyCustomer,
    RevokeAccess,
    ValidatePolicies,
)
from domain.accounts.federated.custom_policy import document
from domain.accounts.federated.resources import CustomPolicy
from domain.resource import SecretReference
from engine.errors import Absent, Denied, Invalid, Unavailable
from engine.kube import SECRET

if TYPE_CHECKING:
    from mypy_boto3_iam.client import IAMClient

pytestmark = pytest.mark.integration

UID = "bcd456"
ROLE, POLICY = f"reader-{UID}", f"read-{UID}"
READ_ONLY = "AmazonEC2ReadOnlyAccess"


def custom(*actions: str, effect: str = "Allow") -> CustomPolicy:
    statement = {"effect": effect, "action": list(actions or ("s3:GetObject",)), "resource": ["*"]}
    return CustomPolicy.model_validate({"name": "read", "description": "reads", "awsStatements": [statement]})


@dataclass
class Customer:
    """An account, and a Secret with keys of it."""

    lab: Lab
    account_id: str
    name: str
    secret: SecretReference

    @property
    def iam(self) -> IAMClient:
        return self.lab.sessions.member(self.account_id).iam()

    def common(self, **more: Any) -> dict[str, Any]:
        given = {"account_id": self.account_id, "uid": UID, "access_uid": "uid-1", "digest": "d"}
        return {"secret": self.secret, **given, **more}

    def outsider(self, name: str = "root") -> str:
        return f"arn:aws:iam::123456789012:{name}"

    def policy(self, *actions: str, attempt: int = 1) -> None:
        action = EnsureAccessPolicy(
            **self.common(), name=POLICY, description="reads", document=document(custom(*actions))
        )
        self.lab.run(self.lab.activities.ensure_access_policy, action, attempt=attempt)

    def role(self, principal: str = "root", description: str = "a reader", attempt: int = 1) -> None:
        action = EnsureAccessRole(
            **self.common(), name=ROLE, description=description, principal=self.outsider(principal)
        )
        self.lab.run(self.lab.activities.ensure_access_role, action, attempt=attempt)

    def attach(self, *managed: str, own: str = POLICY, exact: bool = True, attempt: int = 1) -> None:
        action = AttachAccessPolicies(**self.common(), role=ROLE, custom=own, managed=managed, exact=exact)
        self.lab.run(self.lab.activities.attach_access_policies, action, attempt=attempt)

    def grant(self) -> None:
        self.policy()
        self.role()
        self.attach(READ_ONLY)

    def revoke(self, *, secret: str = "", access_uid: str = "uid-1", principal: str = "root", attempt: int = 1) -> None:
        reference = SecretReference(name=secret, namespace=OPERATOR_NAMESPACE) if secret else self.secret
        action = RevokeAccess(
            secret=reference,
            account_id=self.account_id,
            uid=UID,
            access_uid=access_uid,
            role=ROLE,
            custom="",
            principal=self.outsider(principal),
        )
        self.lab.run(self.lab.activities.revoke_access, action, attempt=attempt)

    def attached(self) -> set[str]:
        found = self.iam.list_attached_role_policies(RoleName=ROLE)["AttachedPolicies"]
        return {policy["PolicyName"] for policy in found}

    def statements(self) -> Any:
        arn = policy_arn("aws", self.account_id, POLICY)
        version = self.iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        version_document = self.iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        assert isinstance(version_document, dict)
        return version_document["Statement"]

    def left(self) -> set[str]:
        """Roles and policies whose names end as the access's do."""
        roles = [role["RoleName"] for role in self.iam.list_roles()["Roles"]]
        policies = [policy["PolicyName"] for policy in self.iam.list_policies(Scope="Local")["Policies"]]
        return {name for name in [*roles, *policies] if name.endswith(UID)}

    def changes(self) -> dict[str, int]:
        """What has been changed since the ledger was emptied."""
        counts = [count for count in self.lab.emulator.ledger().counts if count.service == "iam"]
        return {count.action: count.count for count in counts if count.mutating}


@pytest.fixture
def customer(lab: Lab) -> Customer:
    account_id, name = lab.account()
    lab.run(lab.activities.ensure_admin_user, admin_user(account_id, name, lab.owner(name)))
    secret = SecretReference(name=f"{name}-secret", namespace=OPERATOR_NAMESPACE)
    lab.emulator.reset_ledger()
    return Customer(lab, account_id, name, secret)


# Judging.


def validation_reason(lab: Lab, policy: CustomPolicy, *managed: str, uid: str = "judged", attempt: int = 1) -> str:
    action = ValidatePolicies(uid=uid, generation=1, custom=policy, managed=managed)
    verdict = lab.run(lab.activities.validate_policies, action, attempt=attempt)
    assert verdict.valid == (verdict.reason == "AllPoliciesValid")
    return verdict.reason


def traces(lab: Lab) -> list[str]:
    found = lab.sessions.payer().iam().list_policies(Scope="Local", PathPrefix=VALIDATION_PATH)["Policies"]
    return [policy["PolicyName"] for policy in found]


@pytest.mark.parametrize(
    ("policy", "managed", "reason"),
    [
        (custom(), ("AdministratorAccess",), "AllPoliciesValid"),
        (CustomPolicy(), ("AdministratorAccess", "job-function/Billing", "Billing"), "AllPoliciesValid"),
        (custom("no colon"), (), "InvalidCustomerPolicy"),
        (custom(effect="Perhaps"), (), "InvalidCustomerPolicy"),
        (custom(), ("AdministratorAccess", "NoSuchPolicy"), "InvalidManagedPolicy"),
    ],
)
def test_iam_judges_a_role_and_keeps_nothing(
    lab: Lab, policy: CustomPolicy, managed: tuple[str, ...], reason: str
) -> None:
    assert validation_reason(lab, policy, *managed) == reason
    assert traces(lab) == []


@pytest.mark.parametrize("operation", ["CreatePolicy", "DeletePolicy"])
def test_leftovers_of_an_interrupted_judgement_block_no_other(lab: Lab, operation: str) -> None:
    lab.emulator.fault("iam", operation, kind="after", count=1)
    with pytest.raises(Unavailable):
        validation_reason(lab, custom())
    assert validation_reason(lab, custom(), attempt=2) == "AllPoliciesValid"
    assert traces(lab) == []


def test_a_role_that_goes_takes_what_a_torn_judging_left(lab: Lab) -> None:
    lab.emulator.fault("iam", "DeletePolicy", kind="before", count=1)
    with pytest.raises(Unavailable):
        validation_reason(lab, custom(), uid="torn")
    assert traces(lab) == ["perdure-validation-torn"]
    for _ in range(2):
        lab.run(lab.activities.clear_validation, ClearValidation(uid="torn"))
    assert traces(lab) == []


# Granting.


def test_an_access_is_granted_and_a_repetition_changes_nothing(customer: Customer) -> None:
    customer.grant()
    assert customer.attached() == {READ_ONLY, POLICY}
    role = customer.iam.get_role(RoleName=ROLE)["Role"]
    trust = role["AssumeRolePolicyDocument"]
    assert isinstance(trust, dict)
    assert json.loads(json.dumps(trust))["Statement"] == [
        {"Effect": "Allow", "Action": ["sts:AssumeRole"], "Principal": {"AWS": [customer.outsider()]}}
    ]
    assert role["Description"] == "a reader"
    assert {tag["Key"]: tag["Value"] for tag in role["Tags"]} == {ACCESS_TAG: "uid-1"}
    customer.lab.emulator.reset_ledger()
    customer.grant()
    assert customer.changes() == {}


@pytest.mark.parametrize("operation", ["CreatePolicy", "CreateRole", "AttachRolePolicy"])
def test_a_lost_answer_leaves_one_of_each(customer: Customer, operation: str) -> None:
    customer.lab.emulator.fault("iam", operation, kind="after", count=1)
    with pytest.raises(Unavailable):
        customer.grant()
    customer.grant()
    assert customer.left() == {ROLE, POLICY}
    assert customer.attached() == {READ_ONLY, POLICY}


def test_a_renewal_changes_what_differs_and_never_takes_the_policy_away(customer: Customer) -> None:
    customer.grant()
    customer.lab.emulator.reset_ledger()
    customer.policy("s3:PutObject")
    customer.role("user/other", "another reader")
    customer.attach("AmazonS3ReadOnlyAccess")
    assert customer.statements()[0]["Action"] == ["s3:PutObject"]
    assert customer.attached() == {"AmazonS3ReadOnlyAccess", POLICY}
    assert customer.iam.get_role(RoleName=ROLE)["Role"]["Description"] == "another reader"
    assert customer.changes() == {
        "AttachRolePolicy": 1,
        "CreatePolicyVersion": 1,
        "DetachRolePolicy": 1,
        "UpdateAssumeRolePolicy": 1,
        "UpdateRoleDescription": 1,
    }


def test_a_policy_can_change_more_often_than_iam_keeps_versions(customer: Customer) -> None:
    for number in range(8):
        customer.policy(f"s3:Get{number}")
    assert customer.statements()[0]["Action"] == ["s3:Get7"]
    customer.role()
    customer.attach()
    customer.revoke()
    assert customer.left() == set()


def test_a_custom_policy_of_another_name_replaces_the_first(customer: Customer) -> None:
    customer.grant()
    action = EnsureAccessPolicy(**customer.common(), name=f"other-{UID}", description="", document=document(custom()))
    customer.lab.run(customer.lab.activities.ensure_access_policy, action)
    customer.attach(own=f"other-{UID}")
    assert customer.attached() == {f"other-{UID}"}
    assert customer.left() == {ROLE, f"other-{UID}"}


def test_foreign_attachments_stay_unless_perdure_knows_better(customer: Customer) -> None:
    customer.grant()
    customer.iam.attach_role_policy(RoleName=ROLE, PolicyArn="arn:aws:iam::aws:policy/AWSSupportAccess")
    customer.attach(READ_ONLY, exact=False)
    assert "AWSSupportAccess" in customer.attached()
    customer.attach(READ_ONLY)
    assert customer.attached() == {READ_ONLY, POLICY}


def test_a_managed_policy_under_a_path_is_found_by_its_name(customer: Customer) -> None:
    customer.role()
    customer.attach("Billing", own="")
    assert customer.attached() == {"Billing"}
    with pytest.raises(Absent, match="NoSuchPolicy"):
        customer.attach("NoSuchPolicy", own="")


def test_a_policy_that_iam_refuses_is_reported(customer: Customer) -> None:
    with pytest.raises(Invalid, match="MalformedPolicyDocument"):
        customer.policy("no colon")


def test_keys_show_whose_account_they_open(customer: Customer) -> None:
    action = IdentifyCustomer(secret=customer.secret)
    assert customer.lab.run(customer.lab.activities.identify_customer, action).account_id == customer.account_id


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "NoCredentials"),
        ({"aws_access_key_id": "AKIANOBODYKNOWSTHIS1", "aws_secret_access_key": "x"}, "InvalidClientTokenId"),
        ({"aws_access_key_id": ""}, "NoCredentials"),
    ],
)
def test_missing_and_dead_keys_are_refused(customer: Customer, content: dict[str, str] | None, code: str) -> None:
    name = f"keys-{customer.name}"
    if content is not None:
        coded = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
        customer.lab.kube.create(SECRET, {"metadata": {"name": name}, "data": coded}, OPERATOR_NAMESPACE)
    reference = SecretReference(name=name, namespace=OPERATOR_NAMESPACE)
    with pytest.raises(Denied) as refused:
        customer.lab.run(customer.lab.activities.identify_customer, IdentifyCustomer(secret=reference))
    assert refused.value.code == code


def test_the_payers_own_keys_are_no_customers(customer: Customer) -> None:
    payer = SecretReference(name="aws-account-operator-credentials", namespace=OPERATOR_NAMESPACE)
    with pytest.raises(Denied, match="protected"):
        customer.lab.run(customer.lab.activities.identify_customer, IdentifyCustomer(secret=payer))


def test_keys_of_another_account_grant_nothing(customer: Customer) -> None:
    other, _ = customer.lab.account()
    action = EnsureAccessRole(
        **customer.common(account_id=other), name=ROLE, description="", principal=customer.outsider()
    )
    with pytest.raises(Denied) as refused:
        customer.lab.run(customer.lab.activities.ensure_access_role, action)
    assert refused.value.code == "IdentityMismatch"
    assert customer.left() == set()


# Taking back.


def test_an_access_is_revoked_whole_although_its_policy_is_unknown(customer: Customer) -> None:
    customer.grant()
    customer.revoke(secret="gone")
    assert customer.left() == set()
    customer.revoke(secret="gone")


@pytest.mark.parametrize("operation", ["DetachRolePolicy", "DeletePolicy", "DeleteRole"])
def test_a_torn_end_is_finished_by_the_next_attempt(customer: Customer, operation: str) -> None:
    customer.grant()
    customer.lab.emulator.fault("iam", operation, kind="after", count=1)
    with pytest.raises(Unavailable):
        customer.revoke(secret="gone")
    customer.revoke(secret="gone", attempt=2)
    assert customer.left() == set()


def test_a_policy_that_is_left_without_its_role_is_found_by_its_tag(customer: Customer) -> None:
    customer.policy()
    customer.revoke(secret="gone")
    assert customer.left() == set()


@pytest.mark.parametrize(("tagged", "principal"), [(True, "root"), (False, "user/another")])
def test_the_payer_deletes_no_role_that_is_not_the_accesses(customer: Customer, tagged: bool, principal: str) -> None:
    customer.grant()
    if not tagged:
        customer.iam.untag_role(RoleName=ROLE, TagKeys=[ACCESS_TAG])
    with pytest.raises(Denied) as refused:
        customer.revoke(secret="gone", access_uid="another", principal=principal)
    assert refused.value.code == "ForeignRole"
    assert customer.left() == {ROLE, POLICY}


def test_a_role_of_the_replaced_operator_is_known_by_its_trust(customer: Customer) -> None:
    customer.grant()
    customer.iam.untag_role(RoleName=ROLE, TagKeys=[ACCESS_TAG])
    customer.revoke(secret="gone")
    assert customer.left() == set()


def test_where_the_payer_may_not_enter_the_customers_keys_do_it(customer: Customer) -> None:
    customer.grant()
    customer.lab.emulator.fault("sts", "AssumeRole", kind="error", code="AccessDenied", status=403)
    with pytest.raises(Denied, match="no credentials give access to account"):
        customer.revoke(secret="gone")
    customer.revoke()
    customer.lab.emulator.clear()
    assert customer.left() == set()


def test_an_account_that_a_claim_has_brought_is_entered_by_its_support_role(customer: Customer) -> None:
    lab = customer.lab
    customer.grant()
    lab.run(lab.activities.ensure_support_role, support_role(customer.account_id, customer.name))
    spec = {"byoc": True, "awsAccountID": customer.account_id}
    labels = {"iamUserId": customer.name[-6:]}
    lab.kube.patch(ACCOUNT, OPERATOR_NAMESPACE, customer.name, {"metadata": {"labels": labels}, "spec": spec})
    lab.emulator.fault(
        "sts", "AssumeRole", kind="error", code="AccessDenied", status=403, containing="OrganizationAccountAccessRole"
    )
    customer.revoke(secret="gone")
    lab.emulator.clear()
    assert customer.left() == set()


def test_a_closed_account_keeps_nothing_to_take_back(customer: Customer) -> None:
    customer.grant()
    customer.lab.sessions.payer().organizations().close_account(AccountId=customer.account_id)
    customer.revoke(secret="gone")


def test_the_cleanup_has_its_own_session_name_in_the_accounts_trail(customer: Customer) -> None:
    sessions = customer.lab.sessions
    cleaner = sessions.make(Cleaner, customer.account_id, "aws")
    assert cleaner.ask_identity().arn.endswith("/FederatedRoleCleanup")


def test_the_calls_are_those_declared(customer: Customer) -> None:
    validation_reason(customer.lab, custom(), "AdministratorAccess")
    customer.grant()
    customer.revoke(secret="gone")
    for count in customer.lab.emulator.ledger().counts:
        allowed = permitted(Role.PAYER) | permitted(Role.CUSTOMER) | permitted(Role.MEMBER)
        assert needed(f"{count.service}:{count.action}") <= allowed
