"""`examples/federated-access`: the manifests say only what the definitions keep, and belong together."""

from __future__ import annotations

import pytest
from definitions import Json
from manifests import dropped, manifests

from domain.accounts.federated.custom_policy import document
from domain.accounts.federated.resources import AWSFederatedAccountAccess, AWSFederatedRole

OBJECTS = manifests("federated-access")
ROLES = [AWSFederatedRole.model_validate(each) for each in OBJECTS if each["kind"] == "AWSFederatedRole"]
ACCESSES = [
    AWSFederatedAccountAccess.model_validate(each) for each in OBJECTS if each["kind"] == "AWSFederatedAccountAccess"
]


@pytest.mark.parametrize("obj", OBJECTS, ids=lambda obj: str(obj["kind"]))
def test_the_definitions_keep_every_field(obj: Json) -> None:
    assert dropped(obj) == []


def test_the_access_names_the_role_and_the_key_of_the_accounts_example() -> None:
    (access,), (role,) = ACCESSES, ROLES
    (claim,) = [each for each in manifests("accounts") if each["kind"] == "AccountClaim"]
    named = access.spec.aws_federated_role
    assert (named.namespace, named.name) == (role.metadata.namespace, role.metadata.name)
    secret = access.spec.aws_customer_credential_secret
    assert claim["spec"]["awsCredentialSecret"] == {"name": secret.name, "namespace": secret.namespace}
    assert access.metadata.namespace == claim["metadata"]["namespace"]
    assert "route53:ListHostedZones" in document(role.spec.aws_custom_policy)
