"""Which faults a claim's spec can have, by its sort and in order; and the way of a claim that is fake."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NOW,
    activities,
    claim,
    claim_world,
    ready_account,
    refusal,
    settle,
    status_of,
    written_condition,
)

from domain.accounts.claim_lifecycle import decide
from domain.accounts.claim_validation import customers_account, spec_fault
from domain.accounts.constants import FINALIZER
from domain.accounts.resources import AccountClaim
from domain.decision import Outcome
from domain.refusal import ErrorType

ROLE = f"arn:aws:iam::{AWS_ID}:role/customer"
STS = {"byoc": True, "manualSTSMode": True, "stsRoleARN": ROLE, "stsExternalID": "x-1"}
BYOC = {"byoc": True, "byocAWSAccountID": AWS_ID, "byocSecretRef": {"name": "keys", "namespace": "tenant"}}
ELSEWHERE = {"name": "aws", "namespace": "elsewhere"}
NOWHERE = {"name": "", "namespace": ""}
FAKE = {"managed.openshift.com/fake": "true"}

# Each row has every fault of the rows below it in its part: the order of the replaced operator's checks.
FAULTS = [
    ("sts role", {**STS, "stsRoleARN": "", "awsCredentialSecret": ELSEWHERE}, "STSRoleARNMissing"),
    ("sts secret", {**STS, "stsRoleARN": "x", "awsCredentialSecret": ELSEWHERE}, "AWSSecretRefNamespaceMismatch"),
    ("sts odd role", {**STS, "stsRoleARN": "x"}, "STSRoleARNInvalid"),
    ("sts other account", {**STS, "byocAWSAccountID": "999999999999"}, "STSRoleARNInvalid"),
    ("byoc account", {**BYOC, "byocAWSAccountID": "", "byocSecretRef": NOWHERE}, "BYOCAccountIDMissing"),
    ("byoc input", {**BYOC, "byocSecretRef": NOWHERE, "awsCredentialSecret": NOWHERE}, "BYOCSecretRefMissing"),
    ("byoc half input", {**BYOC, "byocSecretRef": {"name": "keys", "namespace": ""}}, "BYOCSecretRefMissing"),
    ("byoc output", {**BYOC, "byocSecretRef": ELSEWHERE, "awsCredentialSecret": NOWHERE}, "AWSSecretRefMissing"),
    (
        "byoc half output",
        {**BYOC, "byocSecretRef": ELSEWHERE, "awsCredentialSecret": {"name": "aws", "namespace": ""}},
        "AWSSecretRefMissing",
    ),
    (
        "byoc input elsewhere",
        {**BYOC, "byocSecretRef": ELSEWHERE, "awsCredentialSecret": ELSEWHERE},
        "BYOCSecretRefNamespaceMismatch",
    ),
    (
        "byoc output elsewhere",
        {**BYOC, "byocAWSAccountID": "1", "awsCredentialSecret": ELSEWHERE},
        "AWSSecretRefNamespaceMismatch",
    ),
    ("byoc odd account", {**BYOC, "byocAWSAccountID": "1"}, "BYOCAccountIDInvalid"),
    (
        "pool output elsewhere",
        {"awsCredentialSecret": ELSEWHERE, "legalEntity": {"id": "", "name": ""}},
        "AWSSecretRefNamespaceMismatch",
    ),
]


@pytest.mark.parametrize(("spec", "reason"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_the_first_fault_by_the_replaced_operators_order_is_reported(spec: dict[str, Any], reason: str) -> None:
    found = spec_fault(claim(spec=spec))
    assert found is not None
    assert found[0] == reason


SOUND = [
    ("pool", claim()),
    ("byoc", claim(spec=BYOC)),
    ("byoc without an entity", claim(spec={**BYOC, "legalEntity": {"id": "", "name": ""}})),
    ("sts", claim(spec={**STS, "byocAWSAccountID": AWS_ID})),
    ("sts without Secret or account", claim(spec={**STS, "awsCredentialSecret": NOWHERE})),
    ("sts on a pool", claim(spec={"manualSTSMode": True, "stsRoleARN": ROLE})),
    ("fake without an entity", claim(meta={"annotations": FAKE}, spec={"legalEntity": {"id": "", "name": ""}})),
    (
        "fleet manager without a Secret's name",
        claim(spec={"fleetManagerConfig": {"trustedARN": ROLE}, "accountPool": "fm", "awsCredentialSecret": NOWHERE}),
    ),
]


@pytest.mark.parametrize("of", [of for _, of in SOUND], ids=[what for what, _ in SOUND])
def test_a_sound_claim_has_no_fault(of: AccountClaim) -> None:
    assert spec_fault(of) is None


def test_the_account_of_a_claim_in_sts_mode_is_its_roles() -> None:
    assert customers_account(claim(spec=STS)) == AWS_ID
    assert customers_account(claim(spec={**STS, "byocAWSAccountID": "999999999999"})) == "999999999999"


# --- fake claims ---


def fake(**fields: Any) -> AccountClaim:
    meta = {"annotations": FAKE, **fields.pop("meta", {})}
    return claim(meta=meta, **fields)


def test_a_fake_claim_gets_a_secret_and_no_account() -> None:
    start = claim_world(fake(meta={"finalizers": []}))
    first = decide(start, NOW)
    assert activities(first) == ["kube.patch"]  # the finalizer, before anything else is made
    after = settle(start)
    assert after.claim.status.state == "Ready"
    assert after.claim.spec.account_link == ""
    assert after.claim.metadata.finalizers == (FINALIZER,)
    assert decide(after, NOW).outcome is Outcome.SETTLED


def test_a_fake_claim_says_claimed_in_the_words_that_clients_know() -> None:
    decision = decide(claim_world(fake(), known={"fake_secret": True}), NOW)
    claimed = written_condition(decision, "Claimed")
    assert (claimed["reason"], claimed["message"]) == ("AccountClaimed", "Fake ccount claim fulfilled")


def test_a_fake_claim_whose_state_is_blanked_writes_its_secret_again() -> None:
    ready = settle(claim_world(fake()))
    blanked = claim_world(fake()).recall(ready)
    assert activities(decide(blanked, NOW)) == ["accounts.fake_secret"]


def test_a_claim_that_becomes_fake_gives_its_account_back() -> None:
    held = ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}, status={"claimed": True})
    spec = {"accountLink": held.metadata.name, "accountOU": "ou-1"}
    called_fake = fake(spec=spec, status={"state": "Ready", "conditions": []})
    assert decide(claim_world(called_fake, account=held), NOW).outcome is Outcome.SETTLED
    deleted = fake(spec=spec, meta={"deletionTimestamp": "2026-05-01T11:59:59Z"})
    assert activities(decide(claim_world(deleted, account=held), NOW)) == ["aws.rotate_keys"]
    another = held.model_copy(update={"spec": held.spec.model_copy(update={"claim_link": "another"})})
    assert activities(decide(claim_world(deleted, account=another), NOW)) == ["accounts.fake_secret"]


def test_a_fake_claim_at_fault_says_so_and_makes_nothing() -> None:
    decision = decide(claim_world(fake(spec={"awsCredentialSecret": ELSEWHERE})), NOW)
    assert activities(decision) == ["kube.patch"]
    assert status_of(decision)["state"] == "Error"


def test_the_end_of_a_fake_claim_deletes_its_secret_and_leaves_other_finalizers() -> None:
    start = claim_world(fake(meta={"deletionTimestamp": "2026-05-01T11:59:59Z", "finalizers": [FINALIZER, "other"]}))
    assert activities(decide(start, NOW)) == ["accounts.fake_secret"]
    after = settle(start)
    assert after.claim.metadata.finalizers == ("other",)
    assert decide(after, NOW).actions == ()


def test_a_fake_claim_whose_spec_became_invalid_still_takes_its_secret_along() -> None:
    invalid = fake(spec={"awsCredentialSecret": ELSEWHERE}, meta={"deletionTimestamp": "2026-05-01T11:59:59Z"})
    assert activities(decide(claim_world(invalid), NOW)) == ["accounts.fake_secret"]
    nameless = fake(spec={"awsCredentialSecret": {}}, meta={"deletionTimestamp": "2026-05-01T11:59:59Z"})
    assert activities(decide(claim_world(nameless), NOW)) == ["kube.patch"]


def test_a_fake_claim_whose_secret_cannot_be_made_is_not_ready() -> None:
    denied = refusal(ErrorType.DENIED)
    decision = decide(claim_world(fake(), refusals={"accounts.fake_secret": denied}), NOW)
    assert activities(decision) == ["accounts.fake_secret"]
