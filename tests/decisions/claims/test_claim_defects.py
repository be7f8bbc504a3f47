"""The thirty known defects of the replaced operator, each with the tests that hold what Perdure does instead.

Most fail on that operator's behaviour; those of D15, D20 and D26 retain its behaviour, as users rely on it.
D23 was a slip of its code without a behaviour to hold.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
DECISIONS, CLAIMS = "decisions/claims", "integration/claims"

HELD: dict[str, tuple[str, ...]] = {
    "D1 a start is ignored": (
        f"{DECISIONS}/test_claim_lifespan.py::test_a_claim_begins_when_its_spec_says_until_its_status_says_otherwise",
        f"{CLAIMS}/test_claim_lifespans.py::test_before_its_start_nothing_is_done_for_a_claim_and_nothing_is_written",
    ),
    "D2 handles that are about to end are bound": (
        f"{DECISIONS}/test_claim_matching.py::test_a_candidate_differs_only_where_it_is_tolerated",
        f"{CLAIMS}/test_claim_binding.py::test_an_unhealthy_different_or_expiring_handle_is_not_bound",
    ),
    "D3 the relative maximum is read from the maximum": (
        f"{DECISIONS}/test_claim_lifespan.py::test_the_end_at_creation",
        f"{DECISIONS}/test_claim_plans.py::test_the_end_is_what_is_asked_for_else_what_the_terms_give",
    ),
    "D4 a pool writes the relative maximum into the maximum": (
        f"{DECISIONS}/test_claim_lifespan.py::test_a_pool_without_lifespan_takes_its_providers_each_in_its_place",
        f"{CLAIMS}/test_claim_lifespans.py::test_a_pools_handle_takes_its_providers_terms_each_in_its_place",
    ),
    "D5 conditions of claims run code": (
        f"{DECISIONS}/test_claim_templates_hostile.py::test_no_attribute_leads_out",
        f"{CLAIMS}/test_claim_faults.py::test_a_hostile_condition_of_a_claim_is_named_and_does_nothing",
    ),
    "D6 a Namespace without annotations stops a handle": (
        f"{CLAIMS}/test_claims.py::test_a_claim_by_provider_gets_a_handle_and_what_the_provider_defines",
        f"{CLAIMS}/test_claim_reactions.py::test_a_requester_named_later_is_written_as_well",
    ),
    "D7 core kinds are not watched": (f"{CLAIMS}/test_claims.py::test_a_config_map_is_followed_like_any_other_kind",),
    "D8 one object's fault stops the watch of others": (
        f"{CLAIMS}/test_claim_faults.py::test_a_hostile_override_is_named_while_others_go_on",
        "decisions/watch/test_watch_projection.py::test_an_object_that_cannot_be_read_counts_whole",
    ),
    "D9 a longer list is appended whole": (
        f"{DECISIONS}/test_claim_deep_merge.py::test_merging_with_and_without_overwrite",
    ),
    "D10 a maximum of mixed units": (
        f"{CLAIMS}/test_claim_lifespans.py::test_a_maximum_of_mixed_units_is_shown_in_one",
    ),
    "D11 a list that grows": (
        f"{DECISIONS}/test_claim_resource_entries.py::test_entries_are_never_moved_removed_or_given_to_another_provider",
        f"{CLAIMS}/test_claim_upkeep.py::test_a_link_is_omitted_while_its_condition_is_false_and_changes_nothing_later",
    ),
    "D12 a handle being deleted counts as none": (
        f"{CLAIMS}/test_claims.py::test_a_claim_whose_handle_is_being_deleted_takes_no_other",
    ),
    "D13 a refused provider's template is taken": (
        f"{DECISIONS}/test_handle_edits.py::test_another_provider_at_an_index_is_refused_template_and_all",
        f"{CLAIMS}/test_claim_faults.py::test_a_resource_keeps_its_provider_and_its_template_when_the_claim_lists_another",
    ),
    "D14 a handle whose claim is gone goes on": (
        f"{CLAIMS}/test_claim_takeover.py::test_a_deletion_that_was_under_way_is_brought_to_its_end",
        "decisions/watch/test_watch_claims.py::test_after_a_start_a_handle_is_woken_for_the_claim_that_it_misses",
    ),
    "D15 filters may strip what others set (retained)": (
        f"{CLAIMS}/test_claim_upkeep.py::test_a_filter_that_allows_removal_strips_what_others_have_added",
    ),
    "D16 a rolling end moves at every look": (
        f"{DECISIONS}/test_claim_lifespan.py::test_a_rolling_end_moves_only_when_half_of_the_relative_maximum_is_left",
        f"{DECISIONS}/test_handle_evaluation.py::test_a_rolling_end_moves_late_and_is_announced_once",
    ),
    "D17 approval, auto-delete, links and pools wait for polls": (
        f"{CLAIMS}/test_claim_values.py::test_a_claim_is_pending_until_an_approver_says_so_and_served_at_once_then",
        f"{CLAIMS}/test_claim_reactions.py::test_a_claim_is_deleted_as_soon_as_its_condition_holds",
        f"{CLAIMS}/test_claim_upkeep.py::test_a_resource_waits_for_the_linked_one_and_takes_values_from_it",
        f"{CLAIMS}/test_claim_pools.py::test_unhealthy_handles_are_replaced_from_the_pools_present_spec",
    ),
    "D18 in a link's `when` the provider is the link": (
        f"{DECISIONS}/test_claim_providers.py::test_a_link_counts_while_its_when_holds",
    ),
    "D19 functions of time": (f"{DECISIONS}/test_claim_templates.py::test_names_and_filters",),
    "D20 the ignore label drops the finalizer (retained)": (
        f"{CLAIMS}/test_claim_reactions.py::test_deleting_an_ignored_claim_leaves_its_ignored_handle",
    ),
    "D21 a pool's status lags": (
        f"{CLAIMS}/test_claim_pools.py::test_a_new_pool_is_filled_at_once_and_says_so",
        f"{CLAIMS}/test_claim_pools.py::test_the_status_follows_what_becomes_of_the_handles",
    ),
    "D22 an existing object is an error": (
        f"{CLAIMS}/test_claim_upkeep.py::test_an_object_that_has_the_name_already_is_adopted",
        f"{CLAIMS}/test_claim_upkeep.py::test_an_object_of_another_living_handle_is_left_to_it",
    ),
    "D24 unknown readiness is ordered oddly": (
        f"{DECISIONS}/test_claim_matching.py::test_readiness_that_is_unknown_counts_as_not_ready",
    ),
    "D25 a handle without resources is healthy": (
        f"{DECISIONS}/test_claim_resource_health.py::test_without_resources_health_is_unknown",
        f"{CLAIMS}/test_claim_pools.py::test_handles_without_resources_are_of_unknown_health",
    ),
    "D26 health is as it was last seen (retained)": (
        f"{CLAIMS}/test_claim_pools.py::test_no_more_handles_are_made_than_may_be_unready",
    ),
    "D27 writers of one status lose each other's words": (
        f"{CLAIMS}/test_claim_reactions.py::test_a_person_and_the_product_write_one_status_and_neither_loses_a_word",
    ),
    "D28 links in a ring": (
        f"{DECISIONS}/test_claim_providers.py::test_providers_that_link_in_a_ring_are_an_error_that_names_it",
        f"{CLAIMS}/test_claim_faults.py::test_providers_that_link_in_a_ring_are_named",
    ),
    "D29 auto-delete sees the status before": (
        f"{CLAIMS}/test_claim_reactions.py::test_a_condition_on_readiness_sees_the_readiness_of_the_same_moment",
        f"{DECISIONS}/test_handle_evaluation.py::test_the_authors_conditions_are_judged_on_the_new_statuses",
    ),
    "D30 edits of providers reach nothing": (
        f"{CLAIMS}/test_claim_reactions.py::test_an_edit_of_a_provider_reaches_the_claims_that_use_it",
        f"{CLAIMS}/test_claim_reactions.py::test_an_edit_of_a_linked_provider_reaches_the_claims_above_it",
    ),
}


@cache
def _functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("defect", HELD)
def test_every_defect_is_held_by_tests_that_exist(defect: str) -> None:
    missing = []
    for test in HELD[defect]:
        file, _, function = test.partition("::")
        if function not in _functions(file):
            missing.append(test)
    assert HELD[defect]
    assert missing == []


def test_no_defect_is_left_out() -> None:
    assert {defect.split(" ")[0] for defect in HELD} == {f"D{number}" for number in range(1, 31)} - {"D23"}
