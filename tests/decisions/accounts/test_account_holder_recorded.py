"""Whose an Account is, a claim's uid decides; an Account that a take-over or a restore left without one gets it."""

from __future__ import annotations

from typing import Any

import pytest
from account_objects import AWS_ID, NAME, NOW, activities, ago, claim, claim_world, condition, config, ready_account

from domain.accounts.actions.handover import PatchAccount
from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import CLAIM_UID_ANNOTATION
from domain.accounts.observed import ClaimWorld
from domain.accounts.resources import Account
from domain.control_annotations import PAUSED
from domain.decision import Outcome
from domain.writes import Written

READY = {"state": "Ready", "conditions": [condition("Claimed")]}
BYOC = {"byoc": True, "byocAWSAccountID": AWS_ID, "supportRoleARN": "role", "stsRoleARN": "role"}


def linked(*, recorded: bool = False, entity: str = "entity-1", **fields: Any) -> Account:
    spec = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": entity, "name": entity}}
    return ready_account(recorded=recorded, spec={**spec, **fields.pop("spec", {})}, status={"claimed": True}, **fields)


def world(account: Account, status: Any = None, meta: Any = None, **spec: Any) -> ClaimWorld:
    of = claim(spec={"accountLink": NAME, "accountOU": "ou-1", **spec}, status=status or {}, meta=meta or {})
    return claim_world(of, account=account, config=config(), delivered=True)


@pytest.mark.parametrize("byoc", [False, True])
def test_a_claim_that_was_taken_over_writes_its_uid_onto_its_account_once(byoc: bool) -> None:
    account = linked(spec={"byoc": byoc})
    before = world(account, READY, **(BYOC if byoc else {}))
    (record,) = decide(before, NOW).actions
    assert isinstance(record, PatchAccount)
    assert record.key == account.key
    assert record.patch == {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: before.claim.metadata.uid}}}
    assert record.resource_version == account.metadata.resource_version
    after = record.fold(before, Written(resource_version="8"))
    assert decide(after, NOW).outcome is Outcome.SETTLED
    assert after.account is not None
    assert after.account.metadata.resource_version == "8"


def test_an_account_that_is_gone_by_then_is_waited_for() -> None:
    before = world(linked(), {"state": "Pending", "conditions": []})
    (record,) = decide(before, NOW).actions
    assert decide(record.fold(before, Written(gone=True)), NOW).outcome is Outcome.WAITING


@pytest.mark.parametrize("status", [{}, {"state": "Pending", "conditions": []}])
def test_a_claim_of_another_legal_entity_gets_no_account_by_its_name_alone(status: dict[str, Any]) -> None:
    """It replaced an Account of the same name whose finalizer a person removed, with accountLink preset."""
    young = {"creationTimestamp": ago(minutes=1)}
    decision = decide(world(linked(entity="entity-2"), status, young), NOW)
    assert [each for each in activities(decision) if each != "kube.patch"] == []
    assert not any(isinstance(each, PatchAccount) for each in decision.actions)
    gone = {**young, "deletionTimestamp": ago(seconds=1)}
    (drop,) = decide(world(linked(entity="entity-2"), status, gone), NOW).actions
    assert drop.summary == "drop the finalizer"


def test_a_uid_counts_more_than_a_legal_entity_that_was_edited_since() -> None:
    gone = {"deletionTimestamp": ago(minutes=1)}
    edited = decide(world(linked(recorded=True, entity="entity-2"), READY, gone), NOW)
    assert activities(edited) == ["aws.rotate_keys"]


def test_nothing_is_written_onto_a_paused_account() -> None:
    assert decide(world(linked(meta={"annotations": {PAUSED: "true"}}), READY), NOW).actions == ()


@pytest.mark.parametrize("deleted", [False, True])
def test_a_claim_restored_with_a_new_uid_has_its_account_once_the_old_uid_is_removed(deleted: bool) -> None:
    meta = {"uid": "restored", **({"deletionTimestamp": ago(minutes=1)} if deleted else {})}
    pending = {"state": "Pending", "conditions": []}
    with_old_uid = decide(world(linked(recorded=True), pending, meta), NOW)
    assert activities(with_old_uid) == (["kube.patch"] if deleted else [])
    without = world(linked(), pending, meta)
    decision = decide(without, NOW)
    if deleted:
        assert activities(decision) == ["aws.rotate_keys"]
        return
    (record,) = decision.actions
    assert isinstance(record, PatchAccount)
    assert record.patch == {"metadata": {"annotations": {CLAIM_UID_ANNOTATION: "restored"}}}
    assert activities(decide(record.fold(without, Written(resource_version="8")), NOW)) == ["accounts.fulfil"]
