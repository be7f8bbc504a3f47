"""The generated CRDs on a real API server, with objects as existing clients of the aws-account-operator write them."""

from __future__ import annotations

from typing import Any

import pytest
from crd_lab import (
    NAMESPACE_NAME,
    assert_refused,
    assert_stored,
    assert_stored_after_a_patch,
    kube,
    store,
    true_conditions,
)

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.built_in_kinds import CUSTOM_RESOURCE_DEFINITION
from domain.custom_resources import all_crds
from domain.identity import Kind
from domain.operator_domain import DEFAULT
from engine.errors import Invalid
from engine.kube import KubeApi
from engine.kube.json import at, text

__all__ = ["kube"]  # the fixture
pytestmark = pytest.mark.integration

Json = dict[str, Any]

# As Go's encoder writes an untouched Account, then a used one.
NEW_ACCOUNT: Json = {
    "spec": {"awsAccountID": "", "iamUserSecret": "", "claimLink": "", "legalEntity": {"id": "", "name": ""}},
}
OLD_ACCOUNT: Json = {
    "metadata": {
        "labels": {"iamUserId": "h5n8vq"},
        "annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"},
        "finalizers": ["finalizer.aws.managed.openshift.io"],
    },
    "spec": {
        "accountPool": "fm-accountpool",
        "awsAccountID": "123456789012",
        "byoc": False,
        "claimLink": "my-claim",
        "claimLinkNamespace": "uhc-production-1",
        "globalServiceQuotas": {"L-FE177D64": {"status": "", "value": 2000}},
        "iamUserSecret": "osd-creds-mgmt-h5n8vq-secret",
        "legalEntity": {"id": "1a2b3c", "name": "ACME"},
        "manualSTSMode": False,
        "regionalServiceQuotas": {
            "default": {"L-1216C47A": {"status": "", "value": 750}},
            "us-east-1": {"L-0EA8095F": {"status": "", "value": 200}},
        },
    },
    "status": {
        "claimed": True,
        "conditions": [
            {
                "lastProbeTime": "2019-07-18T22:04:38Z",
                "lastTransitionTime": "2019-07-18T22:04:38Z",
                "message": "Attempting to create account",
                "reason": "Creating",
                "status": "True",
                "type": "Creating",
            },
            # Tools write conditions by hand, twice the same type included: the list is atomic and nothing is required.
            {"type": "Creating"},
            {"lastProbeTime": "2019-07-18T22:17:12Z", "status": "True", "type": "Ready"},
        ],
        "optInRegions": {"ap-east-1": {"status": "ENABLING"}},
        "regionalServiceQuotas": {"us-east-1": {"L-1216C47A": {"status": "IN_PROGRESS", "value": 750}}},
        "reused": True,
        "rotateConsoleCredentials": False,
        "rotateCredentials": True,
        "state": "Ready",
        "supportCaseID": "6204125541",
    },
}
CLAIM: Json = {
    "metadata": {"annotations": {"managed.openshift.com/fake": "true"}},
    "spec": {
        "accountLink": "",
        "aws": {"regions": [{"name": "us-east-1"}]},
        "awsCredentialSecret": {"name": "aws", "namespace": NAMESPACE_NAME},
        "byocSecretRef": {"name": "", "namespace": ""},
        "customTags": "owner=me\nteam=a=b",
        "fleetManagerConfig": {"trustedARN": ""},
        "legalEntity": {"id": "1a2b3c", "name": "ACME"},
    },
    "status": {
        "conditions": [
            {
                "lastProbeTime": "2019-07-18T22:04:38Z",
                "lastTransitionTime": "2019-07-18T22:04:38Z",
                "message": "Attempting to claim account",
                "reason": "AccountClaimed",
                "status": "True",
                "type": "Unclaimed",
            }
        ],
        "state": "Pending",
    },
}
POOL: Json = {
    "spec": {"poolSize": -1},
    "status": {
        "poolSize": 3,
        "unclaimedAccounts": 3,
        "claimedAccounts": 0,
        "availableAccounts": 5,
        "accountsProgressing": 0,
        "accountsPending": 0,
        "awsLimitDelta": -7,
    },
}

OBJECTS = {
    "new-account": (ACCOUNT, NEW_ACCOUNT),
    "old-account": (ACCOUNT, OLD_ACCOUNT),
    "claim": (ACCOUNT_CLAIM, CLAIM),
    "pool": (ACCOUNT_POOL, POOL),
}


@pytest.mark.parametrize("crd", all_crds(DEFAULT), ids=lambda crd: text(crd, "metadata", "name"))
async def test_the_api_server_accepts_a_definition_unchanged(kube: KubeApi, crd: Json) -> None:
    stored: Json = await kube.get(CUSTOM_RESOURCE_DEFINITION, "", text(crd, "metadata", "name"))
    assert {"Established", "NamesAccepted"} <= true_conditions(stored)
    assert "NonStructuralSchema" not in true_conditions(stored)
    for sent, retained in zip(crd["spec"]["versions"], stored["spec"]["versions"], strict=True):
        fields = {name: value for name, value in sent.items() if value != []}
        assert {name: retained.get(name) for name in fields} == fields, "nothing was dropped on the way in"


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_objects_of_existing_clients_are_stored_and_read_unchanged(kube: KubeApi, name: str) -> None:
    await assert_stored(kube, *OBJECTS[name])


@pytest.mark.parametrize("name", sorted(OBJECTS))
async def test_a_patch_of_one_field_leaves_the_rest_as_it_was(kube: KubeApi, name: str) -> None:
    kind, written = OBJECTS[name]
    await assert_stored_after_a_patch(kube, kind, name, written)


async def test_unknown_fields_are_pruned(kube: KubeApi) -> None:
    stored = await store(kube, ACCOUNT_POOL, "pruned", {"spec": {"poolSize": 1, "poolType": "x"}})
    assert stored["spec"] == {"poolSize": 1}


@pytest.mark.parametrize(
    ("kind", "spec", "complaint"),
    [
        (ACCOUNT_POOL, {}, "spec.poolSize: Required"),
        (ACCOUNT, {"awsAccountID": ""}, "spec.iamUserSecret: Required"),
        (ACCOUNT, {"awsAccountID": "", "iamUserSecret": "", "legalEntity": {"id": "x"}}, "legalEntity.name: Required"),
        (ACCOUNT, {"awsAccountID": 1, "iamUserSecret": ""}, "spec.awsAccountID: Invalid"),
        (ACCOUNT_CLAIM, {**CLAIM["spec"], "aws": {}}, "spec.aws.regions: Required"),
        (ACCOUNT_CLAIM, {**CLAIM["spec"], "byocSecretRef": {}}, "spec.byocSecretRef.name: Required"),
    ],
)
async def test_a_spec_that_the_replaced_operator_refuses_is_refused(
    kube: KubeApi, kind: Kind, spec: Json, complaint: str
) -> None:
    await assert_refused(kube, kind, spec, complaint)


async def test_a_pool_status_needs_all_seven_counts(kube: KubeApi) -> None:
    await store(kube, ACCOUNT_POOL, "counts", {"spec": {"poolSize": 1}})
    six = {name: 0 for name in POOL["status"] if name != "accountsPending"}
    with pytest.raises(Invalid, match=r"status.accountsPending: Required"):
        await kube.patch(ACCOUNT_POOL, NAMESPACE_NAME, "counts", {"status": six}, subresource="status")


async def test_a_claim_has_one_condition_of_a_type(kube: KubeApi) -> None:
    await store(kube, ACCOUNT_CLAIM, "conditions", {"spec": CLAIM["spec"]})
    twice = {"state": "", "conditions": [{"type": "Claimed", "status": "True"}] * 2}
    with pytest.raises(Invalid, match="Duplicate"):
        await kube.patch(ACCOUNT_CLAIM, NAMESPACE_NAME, "conditions", {"status": twice}, subresource="status")


async def test_the_status_is_a_subresource(kube: KubeApi) -> None:
    stored = await store(kube, ACCOUNT, "status", NEW_ACCOUNT)
    await kube.patch(ACCOUNT, NAMESPACE_NAME, "status", {"status": {"state": "Ready"}})
    assert at(await kube.get(ACCOUNT, NAMESPACE_NAME, "status"), "status") is None
    assert at(stored, "metadata", "generation") == 1
