"""The condition that says what a person has to correct, on claims, handles and pools."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from claim_scenes import NOW

from domain.claims.evaluator_interface import Fault
from domain.claims.events import fault_events
from domain.claims.faults import LONGEST_MESSAGE, summed
from domain.claims.stalled_condition import with_handles_stalled, with_own_stalled, with_stalled

A = Fault(reason="ProviderMissing", message="ResourceProvider a: not found")
B = Fault(reason="TemplateFailed", message="ResourceProvider b, override: 'x' is undefined")
FOREIGN = {"type": "Reviewed", "status": "True"}
LATER = NOW + timedelta(minutes=1)
SINCE, THEN = "2026-11-21T12:00:00Z", "2026-11-21T12:01:00Z"


def stalled(fault: Fault, since: str = SINCE) -> dict[str, Any]:
    fields = {"reason": fault.reason, "message": fault.message}
    return {"type": "Stalled", "status": "True", **fields, "lastTransitionTime": since}


HANDLES = Fault(reason="ResourceHandleStalled", message=B.message)


@pytest.mark.parametrize(
    ("before", "fault", "after"),
    [
        ({}, None, {}),
        ({"healthy": True}, A, {"healthy": True, "conditions": [stalled(A, THEN)]}),
        ({"conditions": [FOREIGN]}, A, {"conditions": [FOREIGN, stalled(A, THEN)]}),
        ({"conditions": [stalled(A)]}, A, {"conditions": [stalled(A)]}),
        ({"conditions": [stalled(B)]}, A, {"conditions": [stalled(A, THEN)]}),
        ({"conditions": [{**stalled(A), "status": "False"}]}, A, {"conditions": [stalled(A, THEN)]}),
        ({"conditions": [{"type": "Stalled"}]}, A, {"conditions": [stalled(A, THEN)]}),
        ({"conditions": [stalled(A), FOREIGN]}, None, {"conditions": [FOREIGN]}),
        ({"conditions": [stalled(A)], "ready": True}, None, {"ready": True}),
        ({"conditions": []}, None, {}),
    ],
)
def test_the_condition_is_there_while_the_fault_is(before: Any, fault: Fault | None, after: Any) -> None:
    assert with_stalled(before, fault, LATER) == after


def test_another_message_of_the_same_reason_is_no_transition() -> None:
    other = Fault(reason=A.reason, message="ResourceProvider c: not found")
    assert with_stalled({"conditions": [stalled(A)]}, other, LATER) == {"conditions": [stalled(other)]}


def test_several_faults_are_reported_in_one_message_each_once() -> None:
    assert summed([A, B, A]) == Fault(reason=A.reason, message=f"{A.message}; {B.message}")
    assert summed([]) is None


def test_a_message_stays_readable_however_many_faults_there_are() -> None:
    many = summed(Fault(reason="ProviderMissing", message=f"ResourceProvider {n}: not found") for n in range(1000))
    assert many is not None
    assert len(many.message) == LONGEST_MESSAGE + 1


def test_a_fault_is_reported_although_a_longer_message_that_begins_so_is_shown() -> None:
    served, beta = (Fault(reason="UnknownKind", message=f"no kind Gadget of lab/{each}") for each in ("v1", "v1beta1"))
    before: dict[str, Any] = {"status": with_stalled({}, summed([A, beta]), NOW)}
    assert [notice.message for notice in fault_events(None, before, [A, beta, served])] == [served.message]


# A claim has its own faults and those of its handle


def test_a_handles_faults_are_shown_under_one_reason() -> None:
    status = with_handles_stalled({}, [B], NOW, accepted=True)
    assert status == {"conditions": [stalled(HANDLES)]}
    assert with_handles_stalled(status, [B], LATER, accepted=False) == status
    assert with_handles_stalled(status, [], LATER, accepted=False) == {}


def test_a_claim_without_fault_leaves_what_its_handles_pass_said() -> None:
    status: dict[str, Any] = {"conditions": [stalled(HANDLES)]}
    assert with_own_stalled(status, None, LATER, bound=True) == status
    assert with_own_stalled(status, None, LATER, bound=False) == {}
    assert with_own_stalled({"conditions": [stalled(A)]}, None, LATER, bound=True) == {}


@pytest.mark.parametrize("faults", [[], [B]])
def test_a_claims_own_fault_comes_first_until_it_is_accepted(faults: list[Fault]) -> None:
    own = with_own_stalled({"conditions": [stalled(HANDLES)]}, A, LATER, bound=True)
    assert own == {"conditions": [stalled(A, THEN)]}
    assert with_handles_stalled(own, faults, LATER, accepted=False) == own
    accepted = with_handles_stalled(own, faults, LATER, accepted=True)
    assert accepted == ({"conditions": [stalled(HANDLES, THEN)]} if faults else {})
