"""The CRDs that the models give, held against what clients of the aws-account-operator see of its CRDs.

The tables here are written from the replaced operator's public schema, not from the models.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from definitions import CRDS, Json, columns_of, everything_in, sketch, version_of
from definitions import schema_of as schema_of_kind

from domain.accounts import KINDS
from domain.accounts.resources import Account, AccountClaim, AccountPool
from domain.custom_resources import custom_resources
from domain.identity import all_kinds
from domain.model import Model
from domain.operator_domain import DEFAULT
from domain.schema import schema_of
from starters.cli.crds import crd_files

DEPLOYED = Path(__file__).parents[3] / "deploy" / "crds"


QUOTA = "{status!: string, value!: integer}"
CONDITION = "lastProbeTime: date-time, lastTransitionTime: date-time, message: string, reason: string"
ENTITY = "{id!: string, name!: string}"
SECRET = "{name!: string, namespace!: string}"

STATEMENT = (
    "{action!: list<string>, condition: {StringEquals: map<string>, StringLike: map<string>}, effect!: string, "
    "principal: {AWS!: list<string>}, resource: list<string>}"
)

SPECS = {
    "AccountPool": "{poolSize!: integer}",
    "Account": (
        f"{{accountPool: string, awsAccountID!: string, byoc: boolean, claimLink: string, claimLinkNamespace: string, "
        f"globalServiceQuotas: map<{QUOTA}>, iamUserSecret!: string, legalEntity: {ENTITY}, manualSTSMode: boolean, "
        f"regionalServiceQuotas: map<map<{QUOTA}>>}}"
    ),
    "AccountClaim": (
        f"{{accountLink!: string, accountOU: string, accountPool: string, aws!: {{regions!: list<{{name!: string}}>}}, "
        f"awsCredentialSecret!: {SECRET}, byoc: boolean, byocAWSAccountID: string, byocSecretRef: {SECRET}, "
        f"customTags: string, fleetManagerConfig: {{trustedARN!: string}}, kmsKeyId: string, legalEntity!: {ENTITY}, "
        f"manualSTSMode: boolean, stsExternalID: string, stsRoleARN: string, supportRoleARN: string}}"
    ),
}
SPECS |= {
    "AWSFederatedRole": (
        f"{{awsCustomPolicy: {{awsStatements!: list<{STATEMENT}>, description!: string, name!: string}}, "
        "awsManagedPolicies: list<string>, roleDescription!: string, roleDisplayName!: string}"
    ),
    "AWSFederatedAccountAccess": (
        f"{{awsCustomerCredentialSecret!: {SECRET}, awsFederatedRole!: {SECRET}, externalCustomerAWSIAMARN!: string}}"
    ),
}
STATUSES = {
    "AccountPool": (
        "{accountsPending!: integer, accountsProgressing!: integer, availableAccounts!: integer, "
        "awsLimitDelta!: integer, claimedAccounts!: integer, "
        f"conditions: map-by-type<{{{CONDITION}, status!: string, type!: string}}>, "
        "poolSize!: integer, unclaimedAccounts!: integer}"
    ),
    "Account": (
        f"{{claimed: boolean, conditions: atomic<{{{CONDITION}, status: string, type: string}}>, "
        f"globalServiceQuotas: map<{QUOTA}>, optInRegions: map<{{status!: string}}>, "
        f"regionalServiceQuotas: map<map<{QUOTA}>>, reused: boolean, rotateConsoleCredentials: boolean, "
        f"rotateCredentials: boolean, state: string, supportCaseID: string}}"
    ),
    "AccountClaim": (f"{{conditions!: map-by-type<{{{CONDITION}, status!: string, type!: string}}>, state!: string}}"),
}
STATUSES |= {
    "AWSFederatedRole": (
        f"{{conditions!: map-by-type<{{{CONDITION}, status!: string, type!: string}}>, observedGeneration: integer, "
        "state!: string}"
    ),
    "AWSFederatedAccountAccess": (
        f"{{conditions!: map-by-type<{{{CONDITION}, status!: string, type!: string}}>, consoleURL: string, "
        "granted: string, state!: string}"
    ),
}
COLUMNS = {
    "AWSFederatedRole": "State string .status.state; Age date .metadata.creationTimestamp",
    "AWSFederatedAccountAccess": "State string .status.state; Age date .metadata.creationTimestamp",
    "AccountPool": (
        "Pool Size integer .status.poolSize; Unclaimed Accounts integer .status.unclaimedAccounts; "
        "Claimed Accounts integer .status.claimedAccounts; Available Accounts integer .status.availableAccounts; "
        "Accounts Progressing integer .status.accountsProgressing; Accounts Pending integer .status.accountsPending; "
        "AWS Limit Delta integer .status.awsLimitDelta"
    ),
    "Account": (
        "State string .status.state; Claimed boolean .status.claimed; Claim string .spec.claimLink; "
        "Age date .metadata.creationTimestamp"
    ),
    "AccountClaim": (
        "State string .status.state; Account string .spec.accountLink; Age date .metadata.creationTimestamp"
    ),
}
NAMES = {
    "AWSFederatedRole": ("awsfederatedroles", "awsfederatedrole", "AWSFederatedRoleList"),
    "AWSFederatedAccountAccess": (
        "awsfederatedaccountaccesses",
        "awsfederatedaccountaccess",
        "AWSFederatedAccountAccessList",
    ),
    "AccountPool": ("accountpools", "accountpool", "AccountPoolList"),
    "Account": ("accounts", "account", "AccountList"),
    "AccountClaim": ("accountclaims", "accountclaim", "AccountClaimList"),
}
KINDS_BY_NAME = sorted(SPECS)


def part(kind: str, name: str) -> Json:
    found = schema_of_kind(kind)["properties"][name]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_spec_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(part(kind, "spec")) == SPECS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_status_has_the_fields_clients_know(kind: str) -> None:
    assert sketch(part(kind, "status")) == STATUSES[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_kubectl_get_shows_the_known_columns_in_order(kind: str) -> None:
    assert columns_of(kind) == COLUMNS[kind]


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_kind_is_served_under_its_known_names_only(kind: str) -> None:
    crd = CRDS[kind]
    plural, singular, listed = NAMES[kind]
    assert crd["metadata"] == {
        "name": f"{plural}.aws.managed.openshift.io",
        "annotations": {"controller-gen.kubebuilder.io/version": "v0.16.4"},
    }
    assert crd["spec"]["group"] == "aws.managed.openshift.io"
    assert crd["spec"]["scope"] == "Namespaced"
    assert crd["spec"]["names"] == {"kind": kind, "listKind": listed, "plural": plural, "singular": singular}
    version = version_of(kind)
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("kind", KINDS_BY_NAME)
def test_the_schema_adds_nothing_that_the_replaced_operator_lacks(kind: str) -> None:
    foreign = {"default", "enum", "pattern", "minimum", "nullable", "x-kubernetes-validations"}
    foreign |= {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}
    schema = schema_of_kind(kind)
    for item in everything_in(schema):
        assert not foreign & set(item), item
    assert "required" not in schema


@pytest.mark.parametrize("kind", sorted(CRDS))
def test_kubectl_explain_has_a_sentence_for_every_field(kind: str) -> None:
    for name in ("spec", "status"):
        for item in everything_in(schema_of_kind(kind)["properties"].get(name)):
            properties = item.get("properties")
            for field, schema in properties.items() if isinstance(properties, dict) else ():
                assert schema.get("description"), f"{kind}.{name}: {field}"


def test_every_kind_of_the_area_has_a_definition() -> None:
    ours = [model.kind_of for model in custom_resources() if model.kind_of.area == "accounts"]
    assert ours == [kind for kind in KINDS if kind.plural]
    assert set(SPECS) == {kind.name for kind in ours} <= set(CRDS) <= set(all_kinds())


def test_the_files_in_deploy_are_what_the_models_give() -> None:
    stored = {path.name: path.read_text() for path in DEPLOYED.glob("*.yaml") if path.name != "kustomization.yaml"}
    assert stored == crd_files(DEFAULT), "run: perdure crds --output deploy/crds"
    listed = yaml.safe_load((DEPLOYED / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == sorted(stored)


def test_a_field_of_a_type_that_json_schema_lacks_is_refused() -> None:
    class Odd(Model):
        """A model with a set."""

        names: frozenset[str] = frozenset()

    with pytest.raises(TypeError, match="frozenset"):
        schema_of(Odd)


def test_fields_that_go_clients_leave_empty_read_as_the_defaults() -> None:
    claim = AccountClaim.model_validate(
        {
            "spec": {
                "legalEntity": {"id": "", "name": ""},
                "awsCredentialSecret": {"name": "", "namespace": ""},
                "aws": {"regions": None},
                "byocSecretRef": {"name": "", "namespace": ""},
                "fleetManagerConfig": {"trustedARN": ""},
                "accountLink": "",
            },
            "status": {"conditions": None, "state": ""},
        }
    )
    assert claim == AccountClaim()
    assert Account.model_validate({"spec": {"awsAccountID": "", "iamUserSecret": ""}, "status": {}}) == Account()
    assert AccountPool.model_validate({"spec": {"poolSize": 0}}) == AccountPool()


def test_a_model_writes_the_names_of_the_wire() -> None:
    account = Account.model_validate({"spec": {"awsAccountID": "1", "manualSTSMode": True}})
    written = account.spec.model_dump(exclude_unset=True)
    assert written == {"awsAccountID": "1", "manualSTSMode": True}
