"""What an AWSFederatedRole needs, as a table: judged once per generation, and gone after its accesses."""

from __future__ import annotations

from typing import Any

import pytest
from federated_objects import BOTH, CUSTOM, MOMENT, NOW, condition, live, refusing, role, role_world, seen

from domain.accounts.config import OperatorConfig
from domain.accounts.constants import FINALIZER
from domain.accounts.federated.actions import StampAccesses
from domain.accounts.federated.observed import FederatedRoleWorld, Verdict
from domain.accounts.federated.role import decide
from domain.control_annotations import RETRIED, RETRY
from domain.decision import Action, Outcome
from domain.refusal import ErrorType
from workflows.accounts import FederatedRoleWorkflow

GENERATION = {"generation": 3}
VALID = {"state": "Valid", "conditions": [{"type": "Valid", "status": "True"}], "observedGeneration": 1}
DELETING = {"deletionTimestamp": "2026-05-01T11:00:00Z"}


def saying(valid: bool, reason: str, message: str, detail: str = "") -> Any:
    def effect(action: Action) -> Verdict | None:
        generation = getattr(action, "generation", 0)
        return Verdict(generation=generation, valid=valid, reason=reason, message=message, detail=detail)

    return effect


def test_a_new_role_gets_a_finalizer_is_judged_and_becomes_valid() -> None:
    world, decision, done = live(role_world(role(meta={"finalizers": ["other"]})))
    assert done == ["write object", "validate_policies", "write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.metadata.finalizers == ("other", FINALIZER)
    assert (world.role.status.state, decision.phase, decision.outcome) == ("Valid", "Valid", Outcome.SETTLED)
    found_condition = condition(world.role, "Valid")
    assert found_condition is not None
    shown = (
        found_condition.status,
        found_condition.reason,
        found_condition.message,
        found_condition.last_probe_time,
        found_condition.last_transition_time,
    )
    message = "All managed and custom policies are validated"
    assert shown == ("True", "AllPoliciesValid", message, MOMENT, MOMENT)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("InvalidCustomerPolicy", "Custom Policy is malformed"),
        ("InvalidManagedPolicy", "Managed policy does not exist"),
    ],
)
def test_a_role_that_iam_does_not_take_is_invalid_with_the_reason(reason: str, message: str) -> None:
    world, decision, _ = live(role_world(role(), seen()), saying(False, reason, message, "line 1"))
    assert isinstance(world, FederatedRoleWorld)
    shown = condition(world.role, "Invalid")
    assert shown is not None
    assert (world.role.status.state, shown.reason, shown.message) == ("Invalid", reason, message)
    assert (decision.outcome, decision.waits_for) == (Outcome.WAITING, ("a corrected spec",))


def test_a_role_without_policies_says_so_and_has_no_state() -> None:
    empty = role(awsManagedPolicies=[], awsCustomPolicy={"name": "", "description": "", "awsStatements": []})
    world, decision, done = live(role_world(empty))
    assert done == ["write status"]
    assert isinstance(world, FederatedRoleWorld)
    shown = condition(world.role, "Invalid")
    assert shown is not None
    assert world.role.status.state == ""
    assert shown.reason == "NoAWSCustomPolicyOrAWSManagedPolicies"
    assert shown.message == "AWSCustomPolicy and/or AWSManagedPolicies do not exist"
    assert decision.outcome is Outcome.WAITING


def test_a_role_with_managed_policies_only_is_judged() -> None:
    world, _, done = live(role_world(role(awsCustomPolicy={"name": "", "description": "", "awsStatements": []})))
    assert isinstance(world, FederatedRoleWorld)
    assert "validate_policies" in done
    assert world.role.status.state == "Valid"


@pytest.mark.parametrize("name", ["has space", "x" * 122, "ümlaut"])
def test_a_name_that_iam_would_never_take_is_invalid_without_asking(name: str) -> None:
    world, decision, done = live(role_world(role(awsCustomPolicy={**CUSTOM, "name": name})))
    assert isinstance(world, FederatedRoleWorld)
    assert (done, world.role.status.state) == (["write status"], "Invalid")
    assert name in decision.why


def test_a_settled_role_asks_for_nothing() -> None:
    decision = decide(role_world(role(status=VALID), seen()), NOW)
    assert (decision.actions, decision.outcome) == ((), Outcome.SETTLED)


def test_a_changed_spec_is_judged_again_and_its_accesses_stamped_before_the_status() -> None:
    changed = role(status=VALID, meta={"generation": 2})
    world, _, done = live(role_world(changed, seen(), seen("going", deleting=True)))
    assert done == ["validate_policies", "stamp_accesses", "write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.status.observed_generation == 2


def test_the_stamp_is_written_as_go_writes_times_by_rfc_850() -> None:
    verdict = Verdict(generation=1, valid=True, reason="AllPoliciesValid", message="")
    (action,) = decide(role_world(role(), seen()).learn(verdict=verdict), NOW).actions
    assert isinstance(action, StampAccesses)
    assert action.stamp == "Friday, 01-May-26 12:00:00 UTC"


def test_the_replaced_operators_verdict_is_believed_without_a_call_of_aws() -> None:
    found = role(status={"state": "Valid", "conditions": []}, meta=GENERATION)
    world, _, done = live(role_world(found))
    assert done == ["write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.status.observed_generation == 3


def test_a_corrected_role_shows_its_present_error_and_then_that_it_is_valid() -> None:
    broken, _, _ = live(role_world(role()), saying(False, "InvalidCustomerPolicy", "Custom Policy is malformed"))
    assert isinstance(broken, FederatedRoleWorld)
    changed = broken.role.model_copy(
        update={"metadata": broken.role.metadata.model_copy(update={"generation": 2, "resource_version": "7"})}
    )
    other, _, _ = live(role_world(changed), saying(False, "InvalidManagedPolicy", "Managed policy does not exist"))
    assert isinstance(other, FederatedRoleWorld)
    shown = condition(other.role, "Invalid")
    assert shown is not None
    assert shown.reason == "InvalidManagedPolicy"
    corrected, _, _ = live(
        role_world(
            other.role.model_copy(
                update={"metadata": other.role.metadata.model_copy(update={"generation": 3, "resource_version": "8"})}
            )
        )
    )
    assert isinstance(corrected, FederatedRoleWorld)
    assert corrected.role.status.state == "Valid"
    assert {c.type for c in corrected.role.status.conditions} == {"Valid", "Invalid"}


def test_a_denied_judgement_is_reported_and_retried() -> None:
    world, decision, _ = live(role_world(role()), refusing("aws.validate_policies"))
    assert decision.outcome is Outcome.WAITING
    assert "is refused" in decision.why
    assert [action.activity for action in decision.actions] == ["aws.validate_policies"]
    assert world.refusals


def test_a_persons_retry_has_it_judged_once_more() -> None:
    world, decision, done = live(role_world(role(status=VALID, meta={"annotations": {RETRY: "1"}})))
    assert decision.phase in FederatedRoleWorkflow.retryable_phases
    assert done == ["write status", "write object", "validate_policies", "write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.metadata.annotations[RETRIED] == "1"
    assert world.role.status.state == "Valid"


def test_a_blanked_status_is_written_again() -> None:
    world, _, done = live(role_world(role(status={"state": "", "conditions": []})))
    assert done == ["validate_policies", "write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.status.state == "Valid"


@pytest.mark.parametrize("state", ["", "Bogus"])
def test_a_state_that_people_have_changed_is_judged_again(state: str) -> None:
    world, decision, done = live(role_world(role(status={**VALID, "state": state})))
    assert done == ["validate_policies", "write status"]
    assert isinstance(world, FederatedRoleWorld)
    assert (world.role.status.state, decision.outcome) == ("Valid", Outcome.SETTLED)


def test_a_role_that_people_call_valid_and_no_judgement_has_is_invalid_again() -> None:
    refused = {"type": "Invalid", "status": "True", "reason": "InvalidManagedPolicy"}
    called = role(status={**VALID, "conditions": [refused]})
    world, _, _ = live(role_world(called), saying(False, "InvalidManagedPolicy", "Managed policy does not exist"))
    assert isinstance(world, FederatedRoleWorld)
    assert world.role.status.state == "Invalid"


def test_under_fedramp_a_role_is_left_alone() -> None:
    decision = decide(role_world(role(meta={"finalizers": []}), config=OperatorConfig(fedramp=True)), NOW)
    assert (decision.actions, decision.phase, decision.outcome) == ((), "Skipped", Outcome.SETTLED)


def test_a_deleted_role_waits_until_its_accesses_are_gone() -> None:
    going = role(meta=DELETING, **BOTH)
    waiting = decide(role_world(going, seen("late", deleting=True)), NOW)
    assert (waiting.actions, waiting.outcome) == ((), Outcome.WAITING)
    assert "tenant/late" in waiting.why
    _, _, done = live(role_world(going, seen(), seen("other")))
    assert done == ["delete_accesses", "clear_validation", "drop"]


def test_a_role_goes_though_the_payer_may_not_look_for_leftovers() -> None:
    _, decision, done = live(role_world(role(meta=DELETING)), refusing("aws.clear_validation", ErrorType.DENIED))
    assert done == ["clear_validation", "drop"]
    assert decision.gone


def test_a_deleted_role_keeps_others_finalizers() -> None:
    decision = decide(role_world(role(meta={**DELETING, "finalizers": ["other"]})), NOW)
    assert decision.actions == ()
    assert "other" in decision.why
