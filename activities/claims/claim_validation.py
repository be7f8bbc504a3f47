"""The first half of every pass over a claim: what its own object has to be, written down, and whether it goes on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import ValidationError

from activities.claims import metrics
from activities.claims.evaluation import Beyond, Evaluation, fault_of_evaluation
from activities.claims.evaluator import EvaluationBug
from activities.claims.known import Known
from activities.claims.writing import Writer
from domain.claims import RESOURCE_CLAIM
from domain.claims.assignment import assign
from domain.claims.conditions import with_own_stalled
from domain.claims.domain_names import DomainNames
from domain.claims.faults import FAULTS, fault_of
from domain.claims.finalizers import in_hand
from domain.claims.matching import Wanted
from domain.claims.objects import JsonObject, object_at, objects_at, only, text_at, value_at, with_metadata, with_spec
from domain.claims.plans import ClaimPlan, ClaimQuestion, Fault, Halt
from domain.identity import Key


@dataclass(frozen=True)
class Judged:
    """How a claim was judged, and the claim as it is now.

    `shown` is the status that others can see, which may be older than that of `claim` (`show` of `judge`). `lacks`:
    what it asks for, where no free handle fits it and none may be made.
    """

    claim: JsonObject
    plan: ClaimPlan
    assigned: tuple[str, ...] = ()
    shown: JsonObject = field(default_factory=dict)
    lacks: Wanted | None = None

    @property
    def halted(self) -> bool:
        """Whether the pass goes no further."""
        return self.plan.halt is not Halt.NONE

    @property
    def before(self) -> JsonObject:
        """The claim with the status that others can see."""
        return {**self.claim, "status": self.shown}

    def waiting_for(self, wanted: Wanted, claim: JsonObject) -> Judged:
        """The same for a claim that no free handle fits and that may have none made."""
        return replace(self, claim=claim, lacks=wanted)


class Judging:
    """Judging claims."""

    def __init__(self, known: Known, writer: Writer, evaluation: Evaluation) -> None:
        self._known = known
        self._writer = writer
        self._evaluation = evaluation

    async def judge(
        self, key: Key, claim: JsonObject, now: datetime, *, handle: JsonObject | None = None, show: bool = True
    ) -> Judged:
        """What the claim has to be, written.

        Unless `show`, the status is left to the next step where the pass goes on: the claim given back has it already.
        """
        plan, assigned = await self.plan(key, claim, now, handle=handle)
        claim = await self._writer.put(RESOURCE_CLAIM, claim, _prepared(self._known.names, claim, plan))
        judged = Judged({**claim, "status": plan.status}, plan, assigned, shown=object_at(claim, "status"))
        if not (judged.halted or show):
            return judged
        written = await self._writer.put_status(RESOURCE_CLAIM, claim, plan.status)
        await self._tell(claim, plan, now)
        return replace(judged, claim=written)

    async def plan(
        self, key: Key, claim: JsonObject, now: datetime, *, handle: JsonObject | None = None
    ) -> tuple[ClaimPlan, tuple[str, ...]]:
        """What the claim has to be, nothing is written, and the providers of its entries (list mode)."""
        unassigned: Fault | None = None
        assigned: tuple[str, ...] = ()
        try:
            assigned = self._assigned(claim)
        except FAULTS as error:
            unassigned = fault_of(error)
        try:
            providers = await self._known.providers_for(key, claim, handle, names=assigned)
            question = ClaimQuestion(
                now=now,
                names=self._known.names,
                claim=claim,
                handle=handle,
                providers=providers,
                assigned=assigned,
                unassigned=unassigned,
            )
            return await self._evaluation.claim(question), assigned
        except (Beyond, EvaluationBug, ValidationError) as error:
            return _faulty(claim, fault_of_evaluation(error, key), now), assigned

    async def fault(self, judged: Judged, fault: Fault, now: datetime) -> Judged:
        """The claim with a fault that was found after it was judged.

        Raises:
            Conflict: what was judged was written meanwhile; observe again.
        """
        # The plan was without fault: whether this one is new is seen by the conditions that others see.
        status = {**object_at(judged.claim, "status"), **only(judged.shown, "conditions")}
        plan = _faulty({**judged.claim, "status": status}, fault, now)
        claim = await self._writer.put_status(RESOURCE_CLAIM, judged.before, plan.status)
        await self._tell(judged.before, plan, now)
        return replace(judged, claim=claim, plan=plan)

    def _assigned(self, claim: JsonObject) -> tuple[str, ...]:
        if value_at(claim, "spec", "provider") or not objects_at(claim, "spec", "resources"):
            return ()
        return assign(claim, self._known.all_providers())

    async def _tell(self, before: JsonObject, plan: ClaimPlan, now: datetime) -> None:
        """An Event and a count where the status says something new."""
        if plan.halt is Halt.INVALID:
            errors = _errors(plan.status)
            if errors and errors != _errors(object_at(before, "status")):
                metrics.validation_failed(plan.provider)
                await self._writer.tell(RESOURCE_CLAIM, before, "ValidationFailed", "; ".join(errors), now)
        if plan.fault is not None and plan.fault.message not in _messages(before):
            await self._writer.tell(RESOURCE_CLAIM, before, plan.fault.reason, plan.fault.message, now)


def _prepared(names: DomainNames, claim: JsonObject, plan: ClaimPlan) -> JsonObject:
    """The claim as one that we look after, with what its plan adds."""
    prepared = in_hand(names, RESOURCE_CLAIM, claim)
    for part, added in (("annotations", plan.annotations), ("labels", plan.labels)):
        if added:
            prepared = with_metadata(prepared, **{part: {**object_at(prepared, "metadata", part), **added}})
    return prepared if plan.resources is None else with_spec(prepared, resources=[*plan.resources])


def _faulty(claim: JsonObject, fault: Fault, now: datetime) -> ClaimPlan:
    status = with_own_stalled(object_at(claim, "status"), fault, now, bound=False)
    return ClaimPlan(status=status, halt=Halt.FAULT, fault=fault)


def _errors(status: JsonObject) -> list[str]:
    of_values = value_at(status, "provider", "validationErrors")
    of_entries = [text_at(entry, "validationError") for entry in objects_at(status, "resources")]
    return [str(each) for each in (of_values if isinstance(of_values, list) else [])] + [e for e in of_entries if e]


def _messages(claim: JsonObject) -> str:
    return " ".join(text_at(each, "message") for each in objects_at(claim, "status", "conditions"))
