"""What the aws-account-operator is known to do badly, and the traps of replacing it: where each is held to.

The first part names, for every weakness (W1 to W35 of the area's reference) and every trap of its checklist (C1 to
C24), the tests that would fail on that behaviour; a renamed or removed test is missed here. What has no better
place is tested below; those of quotas are in `test_account_weaknesses_quotas.py`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from account_objects import (
    AWS_ID,
    NAME,
    NOW,
    POOL_COUNTS,
    account,
    activities,
    claim,
    claim_world,
    condition,
    config,
    pool,
    ready_account,
    settle,
    world,
)

from domain.accounts.account_lifecycle import decide
from domain.accounts.account_validation import enabled
from domain.accounts.actions import account_creation, support_cases
from domain.accounts.actions.iam_identities import EnsureAdminUser, EnsureSupportRole
from domain.accounts.claim_lifecycle import decide as decide_claim
from domain.accounts.config import OperatorConfig
from domain.accounts.pool import PoolView, Room
from domain.accounts.pool import decide as decide_pool
from domain.accounts.resources import AccountClaimStatus, AccountPoolStatus
from domain.accounts.state_conditions import release_failed, released
from domain.decision import Outcome, Queue
from domain.refusal import ErrorType, Refusal

TESTS = Path(__file__).parents[2]

WEAKNESSES = {
    "W1": "test_a_request_by_a_killed_process_is_found_by_name_and_not_repeated",
    "W2": "test_a_created_account_is_recorded_in_the_spec_before_the_state "
    "test_a_state_without_an_aws_account_is_blanked_to_search_for_the_account",
    "W3": "test_a_request_under_way_is_observed_again_later_each_time",
    "W4": "test_denials_and_bugs_do_not_fail_an_account_that_has_none_yet "
    "test_the_pause_doubles_from_one_minute_to_an_hour",
    "W5": "test_the_limit_counts_what_is_being_created_and_what_is_promised "
    "test_several_pools_at_once_never_pass_the_limit_and_use_all_of_it",
    "W6": "test_pool_size_and_limit_delta_are_published test_an_empty_pool_is_filled_up_to_what_may_be_in_flight",
    "W7": "test_accounts_that_count_as_supply",
    "W8": "test_region_initialisation_fails_after_3060_seconds_to_the_second "
    "test_a_drained_worker_hands_the_initialisation_to_the_next",
    "W9": "test_an_account_whose_every_region_refused_fails_and_says_so",
    "W10": "test_instances_left_by_a_killed_process_are_terminated_by_the_next_attempt",
    "W11": "test_another_clients_write_is_a_conflict_and_both_survive",
    "W12": "test_a_claim_that_an_account_names_already_is_completed_not_given_a_second_one",
    "W13": "test_an_unfit_account_is_never_given test_a_fresh_looking_account_of_another_legal_entity_is_never_given",
    "W14": "test_nothing_is_copied_from_an_account_that_does_not_name_the_claim",
    "W15": "test_rotation_kills_the_old_key test_a_release_names_the_account_the_key_and_the_secret",
    "W16": "test_an_account_getting_ready_wakes_its_pool",
    "W17": "test_a_tenants_region_is_emptied test_buckets_go_with_every_version_upload_and_region",
    "W18": "test_a_cleanup_that_fails_is_shown_failed_after_three_refusals_and_goes_on",
    "W19": "test_a_deletion_held_up_for_long_is_shown_failed_and_goes_on",
    "W20": "test_a_correct_role_is_only_observed",
    "W21": "test_a_lost_answer_leaves_one_case",
    "W23": "test_continuing_as_new_carries_what_cannot_be_observed",
    "W24": "test_input_that_crashed_the_replaced_operator_is_only_input",
    "W25": "test_many_regions_at_once_assume_the_role_once",
    "W26": "test_pending_quotas_are_observed_again_by_the_server_without_history",
    "W29": "test_an_account_held_by_a_living_claim_stays_and_reports_so_once",
    "W30": "test_a_deletion_whose_identities_cannot_be_deleted_keeps_the_account",
    "W31": "test_each_check_has_its_own_flag "
    "test_all_accounts_are_observed_as_soon_as_the_configuration_has_changed "
    "test_a_missing_owner_tag_hides_no_other_check",
    "W32": "test_a_failed_account_says_what_failed_it test_every_decision_is_explained_and_names_what_it_waits_for",
    "W33": "test_an_expired_session_is_renewed_within_the_call",
    "W34": "test_units_that_meet_another_change_are_made_one_after_the_other",
    "W35": "test_scarce_calls_have_a_queue_of_their_own test_a_limit_of_cases_passes_and_a_denial_does_not",
    "W22": "test_a_request_that_failed_is_never_shown_as_under_way test_no_end_of_a_request_leads_to_another_request"
    " test_more_requests_than_there_should_be_are_still_looked_at"
    " test_an_account_that_a_denial_failed_can_be_tried_again_with_its_id",
}
# In a file of its own.

TRAPS = {
    "C1": "test_a_status_that_tools_emptied_starts_the_account_again_with_the_id_it_has",
    "C2": "test_only_the_dot_com_annotation_with_true_pauses",
    "C3": "test_statuses_with_required_fields_are_always_whole",
    "C4": "test_an_account_counts_where_the_reference_says",
    "C5": "test_accounts_that_count_as_supply",
    "C6": "test_a_claim_can_be_ready_before_its_account_says_claimed",
    "C8": "test_a_broken_claim_is_in_error_and_a_broken_account_failed",
    "C9": "test_conditions_accumulate_and_keep_their_order",
    "C10": "test_a_reused_account_of_the_same_legal_entity_comes_before_a_fresh_one",
    "C11": "test_nothing_is_released_while_another_finalizer_remains",
    "C12": "test_permits_end_at_the_limit_which_counts_every_active_account",
    "C13": "test_each_missing_key_stops_its_own_step_and_is_named",
    "C14": "test_closing_accounts_is_a_dry_run_unless_the_key_says_false",
    "C15": "test_names_are_the_same_that_tools_derive",
    "C16": "test_a_life_that_was_under_way_before_searches_before_it_creates",
    "C17": "test_one_call_looks_at_all_cases",
    "C18": "test_a_session_in_another_account_deletes_nothing",
    "C19": "test_only_usable_regions_are_listed",
    "C20": "test_a_definite_refusal_is_the_regions_outcome",
    "C21": "test_an_account_held_by_a_living_claim_stays_and_reports_so_once",
    "C22": "test_nothing_is_copied_from_an_account_that_does_not_name_the_claim "
    "test_a_fresh_looking_account_of_another_legal_entity_is_never_given",
    "C23": "test_a_pool_neither_counts_nor_gives_accounts_outside_the_operators_namespace "
    "test_accounts_of_every_namespace_are_watched",
    "C24": "test_development_mode_opens_no_case",
}
# The same rows for claims of customers and of fleet managers, and fake ones.
OF_CUSTOMERS = {
    "W9": (
        "test_a_region_that_the_account_cannot_use_fails_it_at_once_and_by_name "
        "test_a_failed_account_makes_the_claim_an_error_with_the_accounts_reason"
    ),
    "W10": "test_only_our_own_launches_are_ended_in_a_customers_account",
    "W12": "test_the_account_that_was_made_is_linked_and_the_state_stays_blank",
    "W14": "test_another_tenants_account_is_neither_used_nor_deleted test_a_key_of_another_account_is_not_used",
    "W15": "test_the_role_goes_before_anything_else_of_a_release",
    "W16": "test_a_customers_account_wakes_its_claim_by_its_state_and_by_its_trouble",
    "W18": "test_a_person_can_release_an_account_that_cannot_be_cleaned_from_all_use",
    "W19": (
        "test_an_account_that_cannot_be_entered_any_more_says_so_and_tries_on "
        "test_after_a_day_it_is_released test_a_person_can_release_it_at_once "
        "test_a_claim_whose_customer_has_shut_every_door_says_so_and_a_person_lets_it_go"
    ),
    "W20": "test_a_role_that_is_there_already_is_made_right",
    "W24": "test_a_missing_jump_role_is_waited_for_by_name test_a_claim_without_regions_needs_none",
    "C7": "test_ready_comes_before_the_secret_and_the_support_role",
    "C8": "test_a_failed_account_makes_the_claim_an_error_with_the_accounts_reason",
    "C11": "test_nothing_is_released_while_others_hold_the_claim",
    "C22": "test_another_tenants_account_is_neither_used_nor_deleted",
}

# W27: a role's finalizer goes before its accesses are cleaned, which then find no role and leak what they made; the
# role by which a customer's account was entered is not any account's any more. W28: a failed access never heals,
# policy errors are swallowed, a policy made to be judged may stay in the payer's account and stops the role for ever.
OF_FEDERATED_ACCESS = {
    "W27": (
        "test_a_deleted_role_waits_until_its_accesses_are_gone "
        "test_it_cleans_up_though_its_role_is_gone_and_its_labels_are_too "
        "test_an_access_is_revoked_whole_although_its_policy_is_unknown "
        "test_an_account_that_a_claim_has_brought_is_entered_by_its_support_role "
        "test_claims_and_an_access_go_although_the_worker_dies"
    ),
    "W28": (
        "test_an_access_whose_role_is_missing_heals_when_the_role_comes "
        "test_each_step_that_is_refused_fails_it_aloud_and_is_tried_again "
        "test_a_policy_that_iam_refuses_is_reported "
        "test_a_role_with_managed_policies_only_is_judged "
        "test_leftovers_of_an_interrupted_judgement_block_no_other"
    ),
}


@cache
def defined() -> frozenset[str]:
    """Every test by name."""
    sources = (path.read_text() for path in TESTS.rglob("test_*.py"))
    return frozenset(name for source in sources for name in re.findall(r"^(?:async )?def (test_\w+)", source, re.M))


def test_every_weakness_and_every_trap_is_listed() -> None:
    listed = {*WEAKNESSES, *TRAPS, *OF_CUSTOMERS, *OF_FEDERATED_ACCESS}
    assert listed == {f"W{number}" for number in range(1, 36)} | {f"C{number}" for number in range(1, 25)}


@pytest.mark.parametrize(
    ("row", "tests"),
    [each for rows in (WEAKNESSES, TRAPS, OF_CUSTOMERS, OF_FEDERATED_ACCESS) for each in rows.items()],
)
def test_each_row_is_held_to_by_a_test_that_exists(row: str, tests: str) -> None:
    assert [name for name in tests.split() if name not in defined()] == [], row


# --- what has no better place ---


@pytest.mark.parametrize(("reused", "claimed"), [(False, False), (True, False)])
def test_a_fresh_looking_account_of_another_legal_entity_is_never_given(reused: bool, claimed: bool) -> None:
    """W13: the shredder clears `reused` and leaves the legal entity."""
    shredded = ready_account(
        spec={"legalEntity": {"id": "another", "name": ""}}, status={"reused": reused, "claimed": claimed}
    )
    view = PoolView(
        pool=pool(size=0),
        accounts=(shredded,),
        claims=(claim(status={"state": "Pending"}),),
        config=config(),
        room=None,
    )
    decision = decide_pool(view, NOW)
    assert (decision.bind, list(decision.unserved)) == ((), ["tenant/claim"])


@pytest.mark.parametrize(
    "start",
    [
        claim_world(
            claim(
                meta={"deletionTimestamp": "2026-05-01T11:00:00Z"}, spec={"accountLink": NAME, "aws": {"regions": []}}
            ),
            account=ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}),
        ),
        claim_world(claim(spec={"customTags": "no equals sign\n=\n", "accountLink": ""})),
        world(account(spec={"awsAccountID": AWS_ID}, status={"state": "Creating"})),
        world(account(spec={"awsAccountID": AWS_ID}, status={"state": "InitializingRegions"})),
        world(account(spec={"awsAccountID": AWS_ID}, status={"state": "PendingVerification"})),
        world(account(spec={"awsAccountID": AWS_ID}, status={"state": "Ready"})),
        world(account(spec={"awsAccountID": AWS_ID}, status={"state": "Creating"}), config=config(sts_jump_role=None)),
    ],
)
def test_input_that_crashed_the_replaced_operator_is_only_input(start: Any) -> None:
    """W24: an empty list of regions, a tag without `=`, states set by hand without their condition, a missing key."""
    settle(start)


def test_a_deletion_whose_identities_cannot_be_deleted_keeps_the_account() -> None:
    """W30: the replaced operator logs the error and lets the object, and with it all knowledge of them, go."""
    gone = ready_account(meta={"deletionTimestamp": "2026-05-01T11:59:00Z"})
    refused = Refusal(type=ErrorType.DENIED, message="AccessDenied", at=NOW, attempts=50)
    start = world(gone).model_copy(update={"refusals": {"aws.delete_identities": refused}})
    decision = decide(start, NOW)
    assert "aws.delete_identities" in activities(decision)
    assert not any(getattr(action, "note", "") == "drop the finalizer" for action in decision.actions)


def test_a_missing_owner_tag_hides_no_other_check() -> None:
    """W31: without the owner tag, and without the right to set it, nothing below was ever checked."""
    flags = {"feature.validation_move_account": "true", "feature.accountpool_validation": "true"}
    assert {"place", "quotas"} <= set(enabled(config(**flags)))


@pytest.mark.parametrize("scarce", ["CreateAccount", "OpenSupportCase", "TagAccount"])
def test_scarce_calls_have_a_queue_of_their_own(scarce: str) -> None:
    """W35: Organizations and Support take few changes for the whole company; the queue's rate bounds all workers."""

    action = getattr(support_cases, scarce, None) or getattr(account_creation, scarce)
    assert action.queue is Queue.AWS_ORGANIZATION


def test_statuses_with_required_fields_are_always_whole() -> None:
    """C3: `conditions: []` and never null."""
    assert AccountClaimStatus().model_dump(mode="json", exclude_none=True) == {"conditions": [], "state": ""}
    assert set(AccountPoolStatus().model_dump(mode="json")) >= POOL_COUNTS


def test_a_claim_can_be_ready_before_its_account_says_claimed() -> None:
    """C6: `claimed` is the Account's own to say, after the link."""
    linked = ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"})
    bound = claim(spec={"accountLink": NAME}, status={"state": "Pending", "conditions": [condition("Unclaimed")]})
    end = settle(claim_world(bound, account=linked))
    assert (end.claim.status.state, linked.status.claimed) == ("Ready", False)
    assert settle(world(linked)).account.status.claimed


def test_a_broken_claim_is_in_error_and_a_broken_account_failed() -> None:
    """C8: clients that poll a claim for `Failed` hang, as they did."""
    faulty = claim(spec={"awsCredentialSecret": {"name": "aws", "namespace": "another"}})
    assert settle(claim_world(faulty)).claim.status.state == "Error"
    assert release_failed(ready_account().status, NOW).state == "Failed"
    assert released(ready_account().status, NOW).state == "Ready"


@pytest.mark.parametrize(
    ("of_config", "key", "step"),
    [
        (config(ami_owner=None), "ami-owner", "account"),
        (config(support_jump_role=None), "support-jump-role", "account"),
        (config(root=None), "root", "claim"),
        (config(base=None), "base", "claim"),
        (config(account_limit=None), "account-limit", "pool"),
        (config(accountpool=None), "accountpool", "pool"),
    ],
)
def test_each_missing_key_stops_its_own_step_and_is_named(of_config: OperatorConfig, key: str, step: str) -> None:
    """C13: hard stops, each at another step; what does not need the key goes on."""
    creating = account(
        spec={"awsAccountID": AWS_ID}, status={"state": "Creating", "conditions": [condition("Creating")]}
    )
    linked = ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}, status={"claimed": True})
    bound = claim(spec={"accountLink": NAME}, status={"state": "Pending", "conditions": [condition("Unclaimed")]})
    room = Room(active=1, limit=10, free=9, budget=9)
    decisions = {
        "account": decide(world(creating, config=of_config), NOW),
        "claim": decide_claim(claim_world(bound, account=linked, config=of_config), NOW),
    }
    filling = decide_pool(PoolView(pool=pool(), accounts=(), claims=(), config=of_config, room=room), NOW)
    stopped = {name: decision.outcome is Outcome.WAITING for name, decision in decisions.items()}
    assert {**stopped, "pool": not filling.create} == {name: name == step for name in ("account", "claim", "pool")}
    assert key in (filling.why if step == "pool" else decisions[step].why)


def test_in_govcloud_every_name_is_of_its_partition_and_no_region_is_initialised() -> None:
    creating = account(
        spec={"awsAccountID": AWS_ID}, status={"state": "Creating", "conditions": [condition("Creating")]}
    )
    decision = decide(world(creating, config=config(fedramp="true")), NOW)
    partitions = {
        action.partition for action in decision.actions if isinstance(action, EnsureSupportRole | EnsureAdminUser)
    }
    assert partitions == {"aws-us-gov"}
    end = settle(world(creating, config=config(fedramp="true")))
    assert (end.account.status.state, end.known.outcomes) == ("PendingVerification", {})
