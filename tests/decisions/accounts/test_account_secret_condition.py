"""A claim whose Secret belongs to another owner says so in a condition and waits until the Secret is gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from account_objects import NAME, NOW, activities, claim, claim_world, condition, config, ready_account, status_of

from domain.accounts.claim_lifecycle import decide
from domain.accounts.constants import SECRET_NOT_OURS
from domain.accounts.problem_conditions import SECRET_UNUSABLE
from domain.refusal import ErrorType, Refusal
from domain.resource import condition_of

REFUSED = Refusal(type=ErrorType.DENIED, message="Secret tenant/aws exists", code=SECRET_NOT_OURS, at=NOW)
SLOT = "accounts.fulfil"


def bound(status: dict[str, Any] | None = None, unit: str = "", **fields: Any) -> Any:
    linked = ready_account(spec={"claimLink": "claim", "claimLinkNamespace": "tenant"}, status={"claimed": True})
    status = status or {"state": "Pending", "conditions": [condition("Unclaimed")]}
    of = claim(spec={"accountLink": NAME, "accountOU": unit}, status=status)
    return claim_world(of, account=linked, config=config(), **fields)


def test_a_refused_secret_is_shown_once_and_tried_again() -> None:
    (slot,) = [action.slot for action in decide(bound(), NOW).actions]
    decision = decide(bound(refusals={slot: REFUSED}), NOW)
    assert activities(decision) == ["kube.patch", slot]
    (reported,) = [each for each in status_of(decision)["conditions"] if each["type"] == SECRET_UNUSABLE]
    assert (reported["status"], reported["reason"], reported["message"]) == (
        "True",
        SECRET_NOT_OURS,
        "Secret tenant/aws exists",
    )
    assert status_of(decision)["state"] == "Pending"
    again = decide(bound(status_of(decision), refusals={slot: REFUSED}), NOW + timedelta(minutes=1))
    assert activities(again) == [slot]


def test_a_new_claim_whose_secret_is_refused_is_pending() -> None:
    new = {"state": "", "conditions": []}
    (slot,) = [action.slot for action in decide(bound(new), NOW).actions]
    shown = status_of(decide(bound(new, refusals={slot: REFUSED}), NOW))
    assert (shown["state"], shown["conditions"][0]["type"]) == ("Pending", "Unclaimed")
    assert activities(decide(bound(shown, refusals={slot: REFUSED}), NOW)) == ["kube.patch", slot]


@pytest.mark.parametrize("code", ["AccessDenied", "NotTheHolder"])
def test_another_refusal_does_not_set_the_secret_condition(code: str) -> None:
    (slot,) = [action.slot for action in decide(bound(), NOW).actions]
    decision = decide(bound(refusals={slot: REFUSED.model_copy(update={"code": code})}), NOW)
    assert activities(decision) == [slot]


def test_the_condition_goes_once_the_claim_has_its_secret() -> None:
    ready = {"state": "Ready", "conditions": [condition("Claimed"), condition(SECRET_UNUSABLE)]}
    decision = decide(bound(ready, unit="ou-1"), NOW)
    conditions = status_of(decision)["conditions"]
    assert [each["type"] for each in conditions] == ["Claimed"]
    assert condition_of((), SECRET_UNUSABLE) is None
