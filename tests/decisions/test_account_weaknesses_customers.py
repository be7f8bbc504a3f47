"""What the aws-account-operator does badly for customers', fleet managers' and fake claims, and what holds better.

Rows of the area's reference that concern these paths beside pools; C7 is told here alone.
"""

from __future__ import annotations

import pytest
from test_account_weaknesses import OTHER_TRAPS, defined

ROWS = {
    "W9": (
        "test_a_region_that_the_account_cannot_use_fails_it_at_once_and_by_name "
        "test_a_failed_account_makes_the_claim_an_error_with_the_accounts_reason"
    ),
    "W10": "test_only_our_own_launches_are_ended_in_a_customers_account",
    "W12": "test_the_account_that_was_made_is_linked_and_the_state_stays_blank",
    "W14": "test_another_tenants_account_is_neither_used_nor_deleted test_a_key_of_another_account_is_not_used",
    "W15": "test_the_role_goes_before_anything_else_of_a_release",
    "W16": "test_a_customers_account_wakes_its_claim_by_its_state_and_by_its_trouble",
    "W18": "test_a_person_has_an_account_let_go_that_cannot_be_cleaned_and_nobody_gets_it",
    "W19": (
        "test_an_account_that_cannot_be_entered_any_more_says_so_and_tries_on "
        "test_after_a_day_it_is_let_go test_a_person_can_have_it_let_go_at_once "
        "test_a_claim_whose_customer_has_shut_every_door_says_so_and_a_person_lets_it_go"
    ),
    "W20": "test_a_role_that_is_there_already_is_made_right",
    "W24": "test_a_missing_jump_role_is_waited_for_by_name test_a_claim_without_regions_needs_none",
    "C7": "test_ready_comes_before_the_secret_and_the_support_role",
    "C8": "test_a_failed_account_makes_the_claim_an_error_with_the_accounts_reason",
    "C11": "test_nothing_is_released_while_others_hold_the_claim",
    "C22": "test_another_tenants_account_is_neither_used_nor_deleted",
}


def test_the_trap_of_customers_accounts_is_told_here() -> None:
    assert {row for row, matter in OTHER_TRAPS.items() if matter == "customers' accounts"} <= set(ROWS)


@pytest.mark.parametrize(("row", "tests"), ROWS.items())
def test_each_row_of_customers_claims_is_held_to_by_a_test_that_exists(row: str, tests: str) -> None:
    assert [name for name in tests.split() if name not in defined()] == [], row
