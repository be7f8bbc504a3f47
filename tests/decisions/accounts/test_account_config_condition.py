"""Who waits for a key of the ConfigMap says so in a condition, as long as it waits and no longer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    account,
    ago,
    claim,
    claim_world,
    condition,
    config,
    decide_any,
    ready_account,
    refusal,
    settle,
    status_of,
    world,
)

from domain.accounts.config import OperatorConfig, parse_config
from domain.accounts.force_release import FORCE_RELEASE
from domain.accounts.observed import InputSecret
from domain.accounts.problem_conditions import INVALID_CONFIG_MAP
from domain.accounts.resources import Account
from domain.decision import World
from domain.refusal import ErrorType
from domain.resource import condition_of
from domain.writes import Delete, DropFinalizer, Patch

HELD = InputSecret(complete=True, held=True)


def creating() -> Account:
    return account(spec={"awsAccountID": AWS_ID}, status={"state": "Creating", "conditions": [condition("Creating")]})


def bound(**fields: Any) -> Any:
    linked = ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}, status={"claimed": True})
    of = claim(spec={"accountLink": NAME}, status={"state": "Pending", "conditions": [condition("Unclaimed")]})
    return claim_world(of, account=linked, **fields)


@pytest.mark.parametrize(
    ("start", "key"),
    [
        (world(creating(), config=config(ami_owner=None)), "ami-owner"),
        (world(creating(), config=config(support_jump_role="")), "support-jump-role"),
        (world(creating(), config=config(fedramp="maybe")), "fedramp"),
        (world(creating(), config=parse_config(None)), "ConfigMap"),
        (bound(config=config(root=None)), "root"),
        (bound(config=config(base=None, fedramp="x")), "key base: missing; key fedramp: 'x'"),
    ],
)
def test_a_missing_or_malformed_key_is_named_by_a_condition_which_is_written_once(start: World, key: str) -> None:
    decision = decide_any(start, NOW)
    reported = next(each for each in status_of(decision)["conditions"] if each["type"] == INVALID_CONFIG_MAP)
    assert (reported["status"], reported["reason"]) == ("True", "MissingOrMalformedKey")
    assert key in reported["message"]
    end = settle(start)
    assert decide_any(end, NOW + timedelta(minutes=1)).actions == ()


LINK = {"claimLink": "claim", "claimLinkNamespace": "tenant"}
DELETED = {"deletionTimestamp": ago(minutes=1)}
BYOC = {"byoc": True, "byocAWSAccountID": AWS_ID, "byocSecretRef": {"name": "keys", "namespace": "tenant"}}


def customers(meta: dict[str, Any] | None = None) -> Account:
    of = {"ownerReferences": [], **(meta or {})}
    return ready_account(spec={**LINK, "byoc": True}, status={"claimed": True}, meta=of)


@pytest.mark.parametrize(
    "start",
    [
        world(ready_account(meta=DELETED)),
        world(customers(DELETED)),
        claim_world(claim(meta=DELETED, spec={"accountLink": NAME}), account=ready_account(spec=LINK)),
        claim_world(claim(spec={**BYOC, "accountLink": NAME}), account=customers(), input_secret=HELD),
    ],
    ids=["Account deleted", "customer's Account deleted", "released", "customer's handed over"],
)
@pytest.mark.parametrize(
    ("unreadable", "says"), [(config(fedramp="maybe"), "fedramp"), (parse_config(None), "does not exist")]
)
def test_while_the_aws_partition_is_unknown_nothing_is_done_in_an_account(
    start: World, unreadable: OperatorConfig, says: str
) -> None:
    assert decide_any(start, NOW).actions
    unknown = decide_any(start.model_copy(update={"config": unreadable}), NOW)
    done = [each for each in unknown.actions if not (isinstance(each, Patch) and INVALID_CONFIG_MAP in str(each))]
    assert (done, unknown.waits_for) == ([], ("ConfigMap",))
    assert says in unknown.why


def test_a_forced_release_needs_no_aws_partition() -> None:
    unreadable, force = config(fedramp="maybe"), {**DELETED, "annotations": {FORCE_RELEASE: "closed"}}
    (drop,) = decide_any(world(ready_account(meta=force), config=unreadable), NOW).actions
    assert isinstance(drop, DropFinalizer)
    of = claim(meta=force, spec={**BYOC, "accountLink": NAME})
    (removed,) = decide_any(claim_world(of, account=customers(), config=unreadable), NOW).actions
    assert isinstance(removed, Delete)
    forgotten = world(customers(DELETED), claim=of, config=unreadable)
    assert "ConfigMap" not in decide_any(forgotten, NOW).waits_for
    assert decide_any(forgotten, NOW).actions


def test_the_condition_goes_when_the_key_is_there_and_the_rest_stays() -> None:
    waits = settle(world(creating(), config=config(ami_owner=None)))
    assert condition_of(waits.account.status.conditions, INVALID_CONFIG_MAP) is not None
    corrected = settle(waits.model_copy(update={"config": config()}))
    assert condition_of(corrected.account.status.conditions, INVALID_CONFIG_MAP) is None
    assert condition_of(corrected.account.status.conditions, "Creating") is not None
    claims = settle(bound(config=config(root=None)))
    served = settle(claims.model_copy(update={"config": config()}))
    assert served.claim.status.state == "Ready"
    assert condition_of(served.claim.status.conditions, INVALID_CONFIG_MAP) is None


def test_the_condition_goes_even_while_a_refused_action_is_retried() -> None:
    waits = settle(claim_world(claim(status={"state": "Pending"}), config=config(accountpool=None)))
    assert condition_of(waits.claim.status.conditions, INVALID_CONFIG_MAP) is not None
    looks = waits.model_copy(update={"config": config(), "pool_exists": False})
    (look,) = decide_any(looks, NOW).actions
    refused = looks.model_copy(update={"refusals": {look.slot: refusal(ErrorType.INVALID)}})
    written = status_of(decide_any(refused, NOW))["conditions"]
    assert INVALID_CONFIG_MAP not in [each["type"] for each in written]


def test_another_missing_key_is_named_and_since_when_stays() -> None:
    waits = settle(world(creating(), config=config(ami_owner=None)))
    before = condition_of(waits.account.status.conditions, INVALID_CONFIG_MAP)
    later = decide_any(waits.model_copy(update={"config": config(support_jump_role=None)}), NOW + timedelta(minutes=3))
    reported = next(each for each in status_of(later)["conditions"] if each["type"] == INVALID_CONFIG_MAP)
    assert before is not None
    assert "support-jump-role" in reported["message"]
    assert reported["lastTransitionTime"] == before.last_transition_time


@pytest.mark.parametrize(
    "of",
    [
        ready_account(),
        account(spec={"awsAccountID": AWS_ID}, status={"state": "Failed"}),
        account(meta={"annotations": {"aws.managed.openshift.com/pause-reconciliation": "true"}}),
    ],
)
def test_an_object_that_needs_nothing_of_the_configmap_reports_nothing_of_it(of: Account) -> None:
    assert decide_any(world(of, config=parse_config(None)), NOW).actions == ()


def test_a_failure_has_its_own_condition_although_a_key_was_missing() -> None:
    waits = settle(world(creating(), config=config(ami_owner=None)))
    failed = settle(waits, now=NOW + timedelta(minutes=26))
    assert failed.account.status.state == "Failed"
    assert condition_of(failed.account.status.conditions, INVALID_CONFIG_MAP) is None
    assert "CreationTimeout" in decide_any(failed, NOW + timedelta(minutes=27)).why
