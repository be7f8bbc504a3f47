"""Calls of the template evaluator. A call that exceeds a limit is a fault like any other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError

from activities.claims.evaluator import EvaluationBug, EvaluationLimit, Evaluator
from domain.claims.claim_evaluation import plan_claim
from domain.claims.evaluator_interface import (
    BindingQuestion,
    ClaimPlan,
    ClaimQuestion,
    Fault,
    HandleBody,
    HandlePlan,
    HandleQuestion,
    PoolQuestion,
    Question,
)
from domain.claims.faults import Faulty, fault_of
from domain.claims.handle_binding import plan_binding
from domain.claims.handle_creation import plan_pool_handle
from domain.claims.handle_evaluation import plan_handle
from domain.claims.json_objects import JsonObject, text_at
from domain.claims.timestamps import end_of_handle, passed
from domain.model import Model
from engine.settings import Settings

TOO_MUCH = "TemplateLimit"
TOO_DEEP = "NestedTooDeep"
BUG = "Bug"
P = TypeVar("P", bound=Model)
Q = TypeVar("Q", bound=Question)


log = logging.getLogger(__name__)


class Beyond(Faulty):
    pass


class Evaluation:
    def __init__(self, evaluator: Evaluator, settings: Settings) -> None:
        self._evaluator = evaluator
        self._newer = not settings.claims_older_templates
        self._operators = settings.claims_namespace

    async def claim(self, question: ClaimQuestion) -> ClaimPlan:
        patient = _ends(question.handle, question.now)
        return await self._ask(plan_claim, question, ClaimPlan, question.claim, patient=patient)

    async def binding(self, question: BindingQuestion) -> HandleBody:
        return await self._ask(plan_binding, question, HandleBody, question.claim)

    async def pool_handle(self, question: PoolQuestion) -> HandleBody:
        return await self._ask(plan_pool_handle, question, HandleBody, question.pool)

    async def handle(self, question: HandleQuestion) -> HandlePlan:
        subject, patient = question.claim or question.handle, _ends(question.handle, question.now)
        return await self._ask(plan_handle, question, HandlePlan, subject, patient=patient)

    async def _ask(
        self, function: Callable[[Q], P], question: Q, answer: type[P], subject: JsonObject, *, patient: bool = False
    ) -> P:
        question = question.model_copy(update={"newer": self._newer})
        namespace, name = (text_at(subject, "metadata", field) for field in ("namespace", "name"))
        try:
            return await self._evaluator.call(
                function,
                question,
                answer,
                key=f"{namespace}/{name}",
                author=namespace,
                # If the queue of slow calls is full, a patient call waits, and any other call fails. Calls for expired
                # handles are patient, and calls for pools and free handles, which belong to administrators.
                patient=patient or namespace == self._operators,
            )
        except EvaluationLimit as error:
            raise Beyond(TOO_MUCH, str(error)) from error


def _ends(handle: JsonObject | None, now: datetime) -> bool:
    """Whether the handle's end has passed."""
    return handle is not None and passed(end_of_handle(handle), now)


def fault_of_evaluation(error: Beyond | EvaluationBug | ValidationError, of: object) -> Fault:
    """The fault for the status. A claim's text may trigger a bug, which must not prevent the claim's expiry. The
    traceback is only logged, because it may quote objects of other users.
    """
    if isinstance(error, Beyond):
        return fault_of(error)
    if isinstance(error, ValidationError):  # the input is JSON: only its depth can be invalid
        return Fault(reason=TOO_DEEP, message="the object, or a related one, is nested too deeply to be parsed")
    log.error("%s could not be evaluated: %s", of, error)
    return Fault(
        reason=BUG,
        message="a bug in Perdure prevents the evaluation of its templates; the worker's log has the details",
    )


FUNCTIONS = (plan_claim, plan_binding, plan_pool_handle, plan_handle)
