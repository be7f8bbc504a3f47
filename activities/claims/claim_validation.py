"""What a claim's own object has to be: the evaluator's answer, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pydantic import ValidationError
from temporalio import activity

from activities.claims.evaluation import Beyond, Evaluation, fault_of_evaluation
from activities.claims.evaluator import EvaluationBug
from activities.claims.known import Known
from activities.inline import Effect
from domain.claims.assignment import assign
from domain.claims.claim_validation import Validate, Validated, faulty_plan
from domain.claims.faults import FAULTS, fault_of
from domain.claims.objects import JsonObject, object_at, objects_at, value_at
from domain.claims.plans import ClaimQuestion, Fault


class Validation:
    """Validating claims."""

    def __init__(self, known: Known, evaluation: Evaluation) -> None:
        self._known = known
        self._evaluation = evaluation

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.validate_claim,)

    def effects(self) -> Mapping[str, Effect]:
        """The same for the inline driver."""
        return {Validate.activity: self.validate_claim}

    @activity.defn(name=Validate.activity)
    async def validate_claim(self, action: Validate) -> Validated:
        """What the claim has to be; a fault where that cannot be told, so that its handle still ends."""
        key, claim, handle = action.key, action.claim, action.handle
        unassigned: Fault | None = None
        assigned: tuple[str, ...] = ()
        try:
            assigned = self._assigned(claim)
        except FAULTS as error:
            unassigned = fault_of(error)
        try:
            providers = await self._known.providers_for(key, claim, handle, names=assigned)
            question = ClaimQuestion(
                now=action.at,
                names=self._known.names,
                claim=claim,
                handle=handle,
                providers=providers,
                assigned=assigned,
                unassigned=unassigned,
            )
            return Validated(plan=await self._evaluation.claim(question), assigned=assigned)
        except (Beyond, EvaluationBug, ValidationError) as error:
            plan = faulty_plan(object_at(claim, "status"), fault_of_evaluation(error, key), action.at)
            return Validated(plan=plan, assigned=assigned)

    def _assigned(self, claim: JsonObject) -> tuple[str, ...]:
        if value_at(claim, "spec", "provider") or not objects_at(claim, "spec", "resources"):
            return ()
        return assign(claim, self._known.all_providers())
