"""What the aws-account-operator does badly with federated access (W27, W28), and which tests hold to better.

W27: a role's finalizer goes before its accesses are cleaned, which then find no role and leak what they made; the role
by which a customer's account was entered is one that no account has any more. W28: a failed access never heals, policy
errors are swallowed, a policy made to be judged may stay in the payer's account and stops the role for ever.
"""

from __future__ import annotations

import pytest
from test_account_weaknesses import OTHER_MATTERS, defined

WEAKNESSES = {
    "W27": (
        "test_w27_a_deleted_role_waits_until_its_accesses_are_gone "
        "test_w27_it_cleans_up_though_its_role_is_gone_and_its_labels_are_too "
        "test_w27_an_access_is_taken_back_whole_though_nobody_knows_its_policy "
        "test_w27_an_account_that_a_claim_has_brought_is_entered_by_its_support_role "
        "test_an_access_is_taken_back_with_its_role_although_the_worker_dies"
    ),
    "W28": (
        "test_w28_an_access_whose_role_is_missing_heals_when_the_role_comes "
        "test_w28_each_step_that_is_refused_fails_it_aloud_and_is_tried_again "
        "test_w28_a_policy_that_iam_refuses_is_told "
        "test_w28_a_role_with_managed_policies_only_is_judged "
        "test_w28_what_a_torn_judging_left_stops_nobody"
    ),
}


def test_these_are_the_rows_that_are_told_here() -> None:
    assert {row for row, matter in OTHER_MATTERS.items() if matter == "federated roles"} == set(WEAKNESSES)


@pytest.mark.parametrize(("row", "tests"), WEAKNESSES.items())
def test_each_row_of_federated_access_is_held_to_by_a_test_that_exists(row: str, tests: str) -> None:
    assert [name for name in tests.split() if name not in defined()] == [], row
