"""What changes of customers' claims, Accounts and Secrets wake."""

from __future__ import annotations

from typing import Any

import pytest
from edited_documents import edited
from test_watch_accounts import BY_NAME, NAMESPACE, World, obj, read

from domain.accounts import ACCOUNT, ACCOUNT_CLAIM, ACCOUNT_POOL
from domain.accounts.constants import FINALIZER
from domain.identity import Kind
from starters.watch.watched_kinds import Watched

Obj = dict[str, Any]


def claim(**more: Any) -> Obj:
    spec = {
        "byoc": True,
        "accountLink": "account",
        "byocSecretRef": {"name": "keys", "namespace": "tenant"},
        "aws": {"regions": [{"name": "us-east-1"}]},
        **more.pop("spec", {}),
    }
    return edited(obj("claim", "tenant", spec=spec, **more), "metadata.finalizers", [FINALIZER])


def account(**status: Any) -> Obj:
    spec = {"byoc": True, "awsAccountID": "1", "claimLink": "claim", "claimLinkNamespace": "tenant"}
    return obj("account", spec=spec, status=status)


@pytest.fixture
def world() -> World:
    known: list[tuple[Kind, Obj]] = [
        (ACCOUNT_POOL, obj("pool")),
        (ACCOUNT_CLAIM, claim()),
        (ACCOUNT, account(state="Creating")),
    ]
    return World(*known)


def secret(version: str, name: str = "keys", namespace: str = "tenant") -> Obj:
    made = obj(name, namespace)
    made["metadata"]["resourceVersion"] = version
    return made


def input_secrets(each: Obj) -> tuple[Watched, ...]:
    return BY_NAME["AccountClaim"].declared(read(ACCOUNT_CLAIM, each))


def woken_by_secret(world: World, name: str = "keys", namespace: str = "tenant") -> set[str]:
    (entry,) = input_secrets(claim())
    after = entry.project("", secret("2", name, namespace))
    return {f"{key.kind}/{key.name}" for key in entry.relatives(None, after, world.index)}


def test_a_customers_account_wakes_its_claim_by_its_state_and_by_its_trouble(world: World) -> None:
    before = account(state="Creating")
    assert "AccountClaim/claim" in world.wakes("Account", before, edited(before, "status.state", "Ready"))
    trouble = [{"type": "AuthenticationError", "status": "True", "reason": "BYOCSecretMissing"}]
    assert world.wakes("Account", before, edited(before, "status.conditions", trouble)) == {"AccountClaim/claim"}


def test_a_persons_word_on_the_account_wakes_both(world: World) -> None:
    before = account(state="Failed")
    after = edited(before, "metadata.annotations", {"perdure.dev/let-go": "left"})
    assert read(ACCOUNT, before).fingerprint != read(ACCOUNT, after).fingerprint
    assert world.wakes("Account", before, after) == {"AccountClaim/claim"}


def test_the_removal_of_a_former_claims_uid_wakes_the_claim(world: World) -> None:
    without = account(state="Ready")
    recorded = edited(without, "metadata.annotations", {"perdure.dev/claim-uid": "former"})
    assert world.wakes("Account", recorded, without) == {"AccountClaim/claim"}
    assert world.wakes("Account", without, recorded) == set()


def test_no_pool_counts_a_customers_account(world: World) -> None:
    before = account(state="Creating")
    assert "AccountPool/pool" not in world.wakes("Account", before, edited(before, "status.state", "Failed"))
    assert "AccountPool/pool" not in world.wakes("Account", None, before)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec.aws.regions", [{"name": "eu-west-1"}]),
        ("spec.stsRoleARN", "arn"),
        ("spec.byocSecretRef", {"name": "other", "namespace": "tenant"}),
        ("metadata.annotations", {"perdure.dev/let-go": "left"}),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
    ],
)
def test_an_input_of_the_account_wakes_it(world: World, path: str, value: Any) -> None:
    assert "Account/account" in world.wakes("AccountClaim", claim(), edited(claim(), path, value))


def test_a_claims_own_status_write_does_not_wake_its_account(world: World) -> None:
    assert world.wakes("AccountClaim", claim(), edited(claim(), "spec.supportRoleARN", "arn")) == set()


def test_the_customers_secret_wakes_the_claim_that_waits_for_it_and_its_account(world: World) -> None:
    assert woken_by_secret(world) == {"AccountClaim/claim", "Account/account"}
    assert woken_by_secret(world, name="others") == set()
    assert woken_by_secret(world, namespace="elsewhere") == set()


def test_a_secret_is_watched_only_while_a_claim_waits_for_it() -> None:
    ready = {"state": "Ready", "conditions": []}
    done = claim(spec={"supportRoleARN": "arn"}, status=ready)
    watched = [
        [entry.followed.field_selector for entry in input_secrets(each)]
        for each in (
            claim(),
            claim(status=ready),
            done,
            edited(done, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z"),
            claim(spec={"manualSTSMode": True}),
        )
    ]
    named = ["metadata.name=keys"]
    assert watched == [named, named, [], named, []]


def test_a_claim_without_its_secret_is_not_settled() -> None:
    ready = {"state": "Ready", "conditions": []}
    assert not read(ACCOUNT_CLAIM, claim(status=ready)).settled
    assert read(ACCOUNT_CLAIM, claim(spec={"supportRoleARN": "arn"}, status=ready)).settled
    assert read(ACCOUNT_CLAIM, claim(spec={"manualSTSMode": True}, status=ready)).settled


def test_the_entries_have_names_of_their_own() -> None:
    (first,) = input_secrets(claim())
    assert first.name not in BY_NAME
    assert first.followed.namespace == "tenant" != NAMESPACE
