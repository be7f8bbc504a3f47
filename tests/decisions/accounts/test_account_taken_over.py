"""Accounts and claims as the aws-account-operator left them, in every state: what Perdure makes of them.

What is settled stays so with no call of AWS. What was cut short goes on from where its object says, searching for
whatever may have been made already; what the replaced operator would have failed, fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from account_objects import (
    ANSWERS,
    AWS_ID,
    NAME,
    NOW,
    REGIONS,
    account,
    activities,
    ago,
    claim,
    claim_world,
    condition,
    decide_any,
    free,
    pool,
    ready_account,
    settle,
    status_of,
    world,
)

from domain.accounts.account_lifecycle import decide
from domain.accounts.config import parse_config
from domain.accounts.constants import FINALIZER
from domain.accounts.observed import AccountWorld
from domain.accounts.pool import PoolView, bind, count
from domain.accounts.resources import Account, AccountClaim
from domain.decision import Action, Outcome
from domain.refusal import ErrorType, Refusal
from domain.resource import condition_of

HOLDER = {"claimLink": "claim", "claimLinkNamespace": "tenant", "legalEntity": {"id": "entity-1", "name": "Entity One"}}
LIVED = [condition(type_, entered=ago(days=90)) for type_ in ("Creating", "InitializingRegions", "PendingVerification")]
SERVED = {
    "accountLink": NAME,
    "accountOU": "ou-1",
    "supportRoleARN": f"arn:aws:iam::{AWS_ID}:role/ManagedOpenShift-Support-bcd456",
}


def seen_first(of: Account, **fields: Any) -> AccountWorld:
    """What a workflow that has just begun sees: nothing is known but the objects."""
    fresh = world(of, known={"inherited": None}, **fields)
    return fresh.recall(fresh)


def in_state(state: str, *, since: str = "", id_: str = AWS_ID, **fields: Any) -> Account:
    conditions = [*LIVED[: ["Creating", "InitializingRegions", "PendingVerification"].index(state)]]
    own = condition(state, entered=since or ago(minutes=5))
    status = {"state": state, "conditions": [*conditions, own], **fields.pop("status", {})}
    return account(spec={"awsAccountID": id_, **fields.pop("spec", {})}, status=status, **fields)


def requests_to_aws(start: AccountWorld, answers: Mapping[str, Any] | None = None) -> tuple[AccountWorld, list[Action]]:
    """Where the lifecycle ends, and the actions on AWS on the way there."""
    requests: list[Action] = []

    def heard(name: str, answer: Any) -> Any:
        def answering(action: Any) -> Any:
            if name.startswith("aws."):
                requests.append(action)
            return answer(action)

        return answering

    replies = {name: heard(name, answer) for name, answer in {**ANSWERS, **(answers or {})}.items()}
    return settle(start, answers=replies), requests


# --- settled ---


@pytest.mark.parametrize(
    "of",
    [
        ready_account(status={"conditions": [*LIVED, condition("Ready")]}),
        ready_account(spec=HOLDER, status={"claimed": True, "conditions": [*LIVED, condition("Ready")]}),
        free(ready_account(spec={**HOLDER}, status={"claimed": True})),
        ready_account(status={"conditions": []}),  # set to Ready by hand
        ready_account(status={"supportCaseID": "case-9", "rotateCredentials": True, "reused": True}),
    ],
)
def test_a_ready_account_is_unchanged(of: Account) -> None:
    decision = decide(seen_first(of), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.SETTLED, ())


def test_a_value_that_only_kubernetes_lacks_is_written_there_and_nowhere_else() -> None:
    bare = ready_account(meta={"finalizers": [], "labels": {}})
    end, requested = requests_to_aws(seen_first(bare))
    assert (requested, end.account.metadata.finalizers, end.account.status.state) == ([], (FINALIZER,), "Ready")
    linked = ready_account(spec=HOLDER)
    end, requested = requests_to_aws(seen_first(linked))
    assert (requested, end.account.status.claimed) == ([], True)


@pytest.mark.parametrize("state", ["Failed", "AccountCreationFailed", "InternalError"])
def test_a_failed_account_stays_failed(state: str) -> None:
    failed = account(spec={"awsAccountID": AWS_ID}, status={"state": state, "conditions": LIVED})
    decision = decide(seen_first(failed), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.FAILED, ())


def test_an_account_that_waits_for_its_case_goes_on_waiting_without_a_call() -> None:
    waiting = in_state("PendingVerification", since=ago(days=3), status={"supportCaseID": "case-1"})
    decision = decide(seen_first(waiting), NOW)
    assert (decision.actions, decision.waits_for) == ((), ("SupportCase/case-1",))


# --- cut short ---


def test_an_account_without_user_or_secret_gets_both_and_goes_on() -> None:
    """User without Secret, key without Secret, role without policy: what ensures them looks for what is there."""
    end, requested = requests_to_aws(seen_first(in_state("Creating")))
    assert [action.activity for action in requested].count("aws.ensure_admin_user") == 1
    assert "aws.create_account" not in [action.activity for action in requested]
    assert (end.account.status.state, end.account.spec.iam_user_secret) == ("PendingVerification", f"{NAME}-secret")
    assert end.account.status.support_case_id == "case-1"


def test_regions_that_were_being_initialised_are_searched_for_what_runs_there() -> None:
    end, requested = requests_to_aws(
        seen_first(in_state("InitializingRegions", spec={"iamUserSecret": f"{NAME}-secret"}))
    )
    regions = {action.region: action.search for action in requested if action.activity == "aws.initialize_region"}  # type: ignore[attr-defined]
    assert regions == dict.fromkeys(REGIONS, True)
    assert end.account.status.state == "PendingVerification"


def test_regions_left_uninitialised_for_51_minutes_fail_as_before() -> None:
    late = in_state("InitializingRegions", since=ago(seconds=3061))
    end, requested = requests_to_aws(seen_first(late))
    failure = condition_of(end.account.status.conditions, "AccountCreationFailed")
    assert failure is not None
    assert (end.account.status.state, failure.reason, requested) == ("Failed", "RegionInitializationTimeout", [])


def test_an_abandoned_creation_fails_after_25_minutes_as_before() -> None:
    end, requested = requests_to_aws(seen_first(in_state("Creating", since=ago(minutes=26))))
    failure = condition_of(end.account.status.conditions, "AccountCreationFailed")
    assert failure is not None
    assert (end.account.status.state, failure.reason, requested) == ("Failed", "CreationTimeout", [])


def test_a_case_that_was_opened_but_not_noted_is_searched_for() -> None:
    decision = decide(seen_first(in_state("PendingVerification")), NOW)
    assert activities(decision) == ["aws.open_support_case"]
    assert decision.actions[0].search is True  # type: ignore[attr-defined]


def test_an_account_that_was_made_but_not_recorded_is_looked_for_by_its_name() -> None:
    decision = decide(seen_first(in_state("Creating", id_="")), NOW)
    assert status_of(decision) == {"state": ""}


@pytest.mark.parametrize("left", [{}, {"state": "", "conditions": []}, {"state": "", "conditions": LIVED}])
def test_a_status_that_tools_emptied_starts_the_account_again_with_the_id_it_has(left: dict[str, Any]) -> None:
    """The shredder replaces the whole status; people's tools blank state and conditions."""
    end, requested = requests_to_aws(seen_first(account(spec={"awsAccountID": AWS_ID}, status=left)))
    creating = condition_of(end.account.status.conditions, "Creating")
    assert creating is not None
    if not left.get("conditions"):
        assert creating.message == "AWS account already created"
    assert end.account.spec.aws_account_id == AWS_ID
    assert end.account.status.state == "PendingVerification"
    assert "aws.create_account" not in [action.activity for action in requested]


@pytest.mark.parametrize("state", ["Pending", "Claimed", "Whatever"])
def test_an_unknown_state_is_reported_and_left(state: str) -> None:
    odd = account(spec={"awsAccountID": AWS_ID}, status={"state": state})
    decision = decide(seen_first(odd), NOW)
    assert (decision.outcome, decision.actions) == (Outcome.WAITING, ())


# --- claims ---


def bound(**fields: Any) -> Account:
    return ready_account(spec=HOLDER, status={"claimed": True, **fields})


def deleted(**fields: Any) -> AccountClaim:
    meta = {"deletionTimestamp": ago(minutes=1), **fields.pop("meta", {})}
    return claim(meta=meta, spec={**SERVED, **fields.pop("spec", {})}, status={"state": "Ready", "conditions": []})


def test_a_bound_claim_stays_bound_without_an_observation_of_its_account() -> None:
    served = claim(spec=SERVED, status={"state": "Ready", "conditions": [condition("Claimed")]})
    for its_account in (bound(), None):
        decision = decide_any(claim_world(served, account=its_account), NOW)
        assert (decision.outcome, decision.actions) == (Outcome.SETTLED, ())


def test_a_half_linked_claim_is_completed_and_gets_no_second_account() -> None:
    of_config = parse_config({"accountpool": "pool: {default: true}"})
    members = (ready_account(spec=HOLDER), ready_account("osd-creds-mgmt-zzzzzz", spec={"awsAccountID": "2" * 12}))
    asks = claim(status={"state": "Pending", "conditions": [condition("Unclaimed")]})
    view = PoolView(pool=pool(), accounts=members, claims=(asks,), config=of_config, room=None)
    bindings, unserved = bind(view)
    assert [(each.account.metadata.name, each.complete) for each in bindings] == [(NAME, True)]
    assert unserved == {}


@pytest.mark.parametrize("spec", [{"accountLink": NAME}, {"accountLink": NAME, "accountOU": "ROOT"}, SERVED])
def test_a_linked_claim_without_ou_or_secret_is_handed_its_account(spec: dict[str, str]) -> None:
    """The OU that was moved to and not noted, and the Secret that is there, are found by the hand-over."""
    linked = claim(spec=spec, status={"state": "Pending", "conditions": [condition("Unclaimed")]})
    end = settle(claim_world(linked, account=bound()))
    assert end.claim.status.state == "Ready"
    assert condition_of(end.claim.status.conditions, "Claimed") is not None


def test_a_release_that_had_not_begun_is_done_as_a_whole() -> None:
    start = claim_world(deleted(), account=bound())
    assert activities(decide_any(start, NOW)) == ["aws.rotate_keys"]


@pytest.mark.parametrize("its_account", [None, free(bound())])
def test_a_release_that_only_lacked_its_last_write_lets_the_claim_go_without_a_call(
    its_account: Account | None,
) -> None:
    end = settle(claim_world(deleted(), account=its_account))
    assert not end.exists


def test_an_account_whose_release_was_half_written_is_completed() -> None:
    entity = {"legalEntity": {"id": "entity-1", "name": "Entity One"}}
    torn = ready_account(spec=entity, status={"claimed": True, "conditions": [condition("Ready")]})
    end, requested = requests_to_aws(seen_first(torn))
    assert (requested, end.account.status.claimed, end.account.status.reused) == ([], False, True)


def test_a_cleanup_that_failed_before_goes_on_and_frees_the_account() -> None:
    failed = free(bound(conditions=[condition("Ready")]), failed=True)
    start = claim_world(deleted(), account=failed)
    assert activities(decide_any(start, NOW)) == ["aws.rotate_keys"]
    refused = Refusal(type=ErrorType.DENIED, message="no", at=NOW, attempts=9)
    again = start.model_copy(update={"refusals": {"aws.rotate_keys": refused}})
    assert "accounts.release" not in activities(decide_any(again, NOW)), "it is shown as Failed already"
    assert not settle(again).exists


def test_a_pool_counts_what_it_finds() -> None:
    of_config = parse_config({"accountpool": "pool: {default: true}"})
    members = (ready_account("a"), bound(), in_state("Creating"), account("b", status={"state": "Failed"}))
    counts = count(pool(), members, None)
    assert (counts.available_accounts, counts.claimed_accounts, counts.accounts_progressing) == (1, 1, 1)
    assert of_config.default_pool == "pool"


def test_deadlines_count_from_what_the_replaced_operator_wrote() -> None:
    began = NOW - timedelta(minutes=20)
    creating = in_state("Creating", since=ago(minutes=20))
    assert decide(seen_first(creating), NOW).deadline == began + timedelta(minutes=25)
