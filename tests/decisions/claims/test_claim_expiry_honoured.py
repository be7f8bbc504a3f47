"""An expiry is honoured: whatever an evaluation meets, and whether or not the claim may be written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import Parts, reconciling, settle

from activities.claims.evaluation import Evaluation
from activities.claims.evaluator import EvaluationBug
from domain.claims.claim_preparation import Validate
from domain.claims.evaluator_interface import ClaimPlan, ClaimQuestion, Halt, HandlePlan, HandleQuestion
from domain.identity import Key
from domain.resource import timestamp
from engine.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(kind="ResourceClaim", namespace="users", name="mine", uid="1")
CLAIM: dict[str, Any] = {
    "metadata": {"namespace": "users", "name": "mine"},
    "spec": {"autoDelete": {"when": "odd"}, "provider": {"name": "base"}},
}


def ending_at(moment: str) -> dict[str, Any]:
    return {"metadata": {"name": "guid-b7k2q"}, "spec": {"lifespan": {"end": moment}}}


class Api(Parts):
    """All that a pass works with; its evaluations meet a bug, at least where the claim's conditions are judged."""

    def __init__(self, *, always: bool = True) -> None:
        self.always = always
        self.shown: list[str] = []
        self.asked: list[Any] = []

    async def claim(self, question: Any) -> Any:
        raise EvaluationBug("plan_claim: KeyError: 'a secret'")

    async def handle(self, question: Any) -> HandlePlan:
        self.asked.append(question)
        if self.always or question.push:
            raise EvaluationBug("plan_handle: KeyError: 'a secret'")
        return HandlePlan(spec=question.handle["spec"])

    async def put_status(self, kind: object, before: Any, status: Any) -> Any:
        self.shown += [each["message"] for each in status.get("conditions", [])]
        return before


async def plan_of(api: Api, claim: Any) -> ClaimPlan:
    return (await reconciling(api).validate_claim(Validate(key=KEY, at=NOW, claim=claim))).plan


@pytest.mark.parametrize("moment", [timestamp(NOW), "2026-01-01t00:00:00z"])
@pytest.mark.parametrize("push", [True, False])
async def test_a_passed_expiry_is_honoured_whatever_the_templates_do(push: bool, moment: str) -> None:
    assert (await settle(Api(), ending_at(moment), CLAIM, NOW, push=push)).expired


@pytest.mark.parametrize("always", [True, False])
async def test_a_bug_is_shown_without_what_it_may_quote(always: bool, caplog: pytest.LogCaptureFixture) -> None:
    api = Api(always=always)
    handle = ending_at(timestamp(NOW + timedelta(hours=1)))
    settled = await settle(api, handle, CLAIM, NOW)
    assert ([fault.reason for fault in settled.faults], settled.over) == (["Bug"], False)
    assert api.shown
    assert not any("secret" in message for message in api.shown)
    assert "KeyError: 'a secret'" in caplog.text


async def test_a_claim_that_cannot_be_validated_halts_so_that_its_handle_still_ends() -> None:
    api = Api()
    plan = await plan_of(api, CLAIM)
    assert (plan.halt, plan.fault and plan.fault.reason) == (Halt.FAULT, "Bug")


@pytest.mark.parametrize("shown", [True, False])
async def test_an_evaluation_knows_whether_the_claim_can_record_what_it_finds(shown: bool) -> None:
    api = Api(always=False)
    await settle(api, ending_at(""), CLAIM, NOW, shown=shown, push=False)
    assert {question.shown for question in api.asked} == {shown}


async def test_a_claim_nested_too_deeply_to_be_asked_about_ends_all_the_same() -> None:
    deep: dict[str, Any] = {}
    for _ in range(400):
        deep = {"deeper": deep}
    claim: Any = {**CLAIM, "spec": {"provider": {"name": "base", "parameterValues": deep}}}
    api = Api(always=False)
    plan = await plan_of(api, claim)
    assert (plan.halt, plan.fault and plan.fault.reason) == (Halt.FAULT, "NestedTooDeep")
    settled = await settle(api, ending_at(timestamp(NOW)), claim, NOW, push=False)
    assert settled.expired
    settled = await settle(api, ending_at(timestamp(NOW + timedelta(hours=1))), claim, NOW, push=False)
    assert ([fault.reason for fault in settled.faults], settled.expired) == (["NestedTooDeep"], False)


async def test_whose_end_has_come_is_evaluated_however_many_wait_before_it() -> None:
    patience: list[bool] = []

    class Waits:
        async def call(self, function: object, question: object, answer: Any, **how: Any) -> Any:
            patience.append(how["patient"])
            return answer()

    evaluation = Evaluation(cast(Any, Waits()), Settings())
    claim = {"metadata": {"namespace": "users", "name": "mine"}}
    for end in (NOW - timedelta(seconds=1), NOW + timedelta(hours=1)):
        handle: Any = {"metadata": {}, "spec": {"lifespan": {"end": timestamp(end)}}}
        await evaluation.claim(ClaimQuestion(names=NAMES, now=NOW, claim=claim, handle=handle))
        await evaluation.handle(HandleQuestion(names=NAMES, now=NOW, claim=claim, handle=handle))
    await evaluation.claim(ClaimQuestion(names=NAMES, now=NOW, claim=claim))
    assert patience == [True, True, False, False, False]
