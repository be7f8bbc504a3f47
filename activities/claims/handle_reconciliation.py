"""The pass over a handle, its resources and its claim. `domain/claims/handle_reconciliation.py` decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar

from pydantic import ValidationError
from temporalio import activity

from activities.activity_class import Activities
from activities.claims import metrics
from activities.claims.cache import ClaimCache
from activities.claims.evaluation import Beyond, Evaluation, fault_of_evaluation
from activities.claims.evaluator import EvaluationBug
from activities.claims.managed_resources import Managed
from activities.claims.object_writes import WriteActivities, Writer
from activities.claims.provider_conditions import ProviderConditions
from activities.claims.requester import Requesters
from activities.inline_driver import Inline, Passed, effects_of
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.claim_preparation import Validate, Validated, faulty_plan
from domain.claims.evaluator_interface import ClaimQuestion, Fault, HandlePlan, HandleQuestion
from domain.claims.events import VALIDATION_FAILED
from domain.claims.faults import FAULTS, fault_of
from domain.claims.handle_reconciliation import (
    CreateResource,
    Evaluate,
    Evaluated,
    HandleWorld,
    Read,
    ReadResources,
    ResourceOutcome,
    TakeBack,
    TakenBack,
    UpdateResource,
    decide,
)
from domain.claims.json_objects import JsonObject, object_at, objects_at, text_at, value_at, version_of
from domain.claims.passes import ObjectMemory, ObjectWorld, PassClaim, PassHandle
from domain.claims.provider_assignment import assign
from domain.claims.timestamps import end_of_handle, passed
from domain.claims.write_backoff import rest_in
from domain.decision import Decision
from domain.identity import Key
from domain.runner import State
from domain.writes import RecordEvents
from engine.clock import now
from engine.errors import ApiError, Conflict
from engine.kube.events import record_events

H = TypeVar("H", bound=HandleWorld)


class Reconciliation(Activities):
    def __init__(
        self,
        cache: ClaimCache,
        writer: Writer,
        managed: Managed,
        evaluation: Evaluation,
        requesters: Requesters,
        provider_conditions: ProviderConditions,
    ) -> None:
        self._cache = cache
        self._writer = writer
        self._managed = managed
        self._evaluation = evaluation
        self._requesters = requesters
        self._provider_conditions = provider_conditions
        # The activities of claims, handles and pools add their own effects.
        self.effects = effects_of(*WriteActivities(writer).all(), *self.all())
        self.effects[RecordEvents.activity] = self.record_events

    async def settle(self, world: HandleWorld) -> HandleWorld:
        """Reconcile a new handle and its resources; if the handle was deleted meanwhile, delete these resources.

        Raises ApiError if an action is refused, Conflict if another client has written or deleted an object.
        """
        path, handle = world.key.path, world.handle
        passed = await Inline(decide, self.effects).go_on(State(world, dirty=False))
        if passed.refusals:
            with suppress(ApiError):
                await self._managed.take_back(handle, passed.world.begun)
            passed.confirm()
        if passed.world.lost:
            raise Conflict(f"{path}: the handle was deleted while its resources were created", code="HandleEnded")
        await self.show_around(passed.world)
        return passed.world

    async def show_around(self, world: HandleWorld) -> None:
        now, claim = world.question.now, world.claim
        await self._provider_conditions.show(world.question.providers.values(), now)
        if claim is not None and _first_ready(claim) and not _first_ready(world.claim_before or {}):
            metrics.claim_ready(claim, now, pool=text_at(world.handle, "spec", "resourcePool", "name"))

    async def carry_out(
        self,
        look: PassClaim | PassHandle,
        decide: Callable[[H, datetime], Decision],
        observe: Callable[[bool], Awaitable[H]],
        *,
        cached: bool = True,
    ) -> tuple[Passed[H], ObjectWorld]:
        """Make a pass; returns the pass and the result for its workflow. `observe(True)` reads from the API server."""
        passed = await Inline(decide, self.effects, observe, cached=cached).carry_out(look, look.memory)
        world, known = passed.world, look.memory
        if world.answer is not None:
            known = world.memory
            if not (world.hold or look.dry_run):
                await self.show_around(world)
        rest = rest_in(known.struggle, now(), passed.decision.deadline)
        known = known_after(world, known)
        return passed, passed.as_world(ObjectWorld, known=known, rest=rest, at=world.question.now)

    async def planned(
        self,
        key: Key,
        handle: JsonObject,
        now: datetime,
        claim: JsonObject | None = None,
        *,
        assigned: tuple[str, ...] = (),
        push: bool = False,
    ) -> HandlePlan:
        """Plan a new handle. The plan's spec has the resources' references, to avoid a second write.

        Raises Beyond if the evaluation exceeds a limit.
        """
        states = tuple(None for _ in objects_at(handle, "spec", "resources"))
        question = HandleQuestion.model_construct(
            now=now,
            names=self._cache.names,
            handle=handle,
            claim=claim,
            assigned=assigned,
            states=states,
            push=push,
        )
        return await self._evaluation.handle(await self._whole(key, question, read=False))

    # --- effects ---

    @activity.defn(name=Validate.activity)
    async def validate_claim(self, action: Validate) -> Validated:
        """A failed evaluation gives a fault, not an error: the handle must still expire."""
        key, claim, handle = action.key, action.claim, action.handle
        unassigned: Fault | None = None
        assigned: tuple[str, ...] = ()
        try:
            assigned = self._assigned(claim)
        except FAULTS as error:
            unassigned = fault_of(error)
        try:
            providers = await self._cache.providers_for(claim, handle, names=assigned)
            question = ClaimQuestion(
                now=action.at,
                names=self._cache.names,
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
        return assign(claim, self._cache.all_providers())

    @activity.defn(name=ReadResources.activity)
    async def read_resources(self, action: ReadResources) -> Read:
        try:
            return Read(question=await self._whole(action.key, action.question, read=not action.states_known))
        except ValidationError as error:
            return Read(fault=fault_of_evaluation(error, action.key))

    async def _whole(self, key: Key, question: HandleQuestion, *, read: bool) -> HandleQuestion:
        """Add everything that templates use to the question for the evaluators.

        The live objects are read only if `read`. Raises ValidationError.
        """
        handle, claim = question.handle, question.claim
        answers = {name: getattr(question, name) for name in HandleQuestion.model_fields}
        answers["requester"] = await self._requesters.of(claim)
        if read:
            # An expired handle must end, even if the API server gives no answer for a kind of its resources.
            expired = passed(end_of_handle(handle), question.now)
            answers["states"], answers["unreadable"] = await self._managed.states(handle, expired=expired)
            if None in answers["states"]:
                answers["unserved"], answers["outdated"] = await self._managed.unknown_kinds(handle, answers["states"])
        answers["providers"] = await self._cache.providers_for(handle, claim)
        return HandleQuestion(**answers)

    @activity.defn(name=Evaluate.activity)
    async def evaluate_handle(self, action: Evaluate) -> Evaluated:
        name = text_at(action.question.handle, "metadata", "name")
        try:
            return Evaluated(plan=await self._evaluation.handle(action.question))
        except (Beyond, EvaluationBug) as error:
            return Evaluated(fault=fault_of_evaluation(error, name))

    @activity.defn(name=CreateResource.activity)
    async def create_resource(self, action: CreateResource) -> ResourceOutcome:
        return _outcome(await self._managed.create(action.handle, action.definition))

    @activity.defn(name=UpdateResource.activity)
    async def update_resource(self, action: UpdateResource) -> ResourceOutcome:
        return _outcome(await self._managed.update(action.state, action.operations))

    @activity.defn(name=TakeBack.activity)
    async def take_back(self, action: TakeBack) -> TakenBack:
        return TakenBack(ended=await self._managed.take_back(action.handle, action.definitions))

    async def record_events(self, action: RecordEvents) -> None:
        if any(notice.reason == VALIDATION_FAILED for notice in action.notices):
            claim = self._cache.get(RESOURCE_CLAIM, action.key.namespace, action.key.name)
            metrics.validation_failed(text_at(claim, "spec", "provider", "name"))
        await record_events(action, self._writer.api)


def known_after(world: HandleWorld, known: ObjectMemory) -> ObjectMemory:
    objects = {RESOURCE_CLAIM.name: world.claim, RESOURCE_HANDLE.name: world.handle}
    versions = {kind: version_of(each) for kind, each in objects.items()}
    return known.having_written({kind: version for kind, version in versions.items() if version})


def _outcome(outcome: JsonObject | Fault) -> ResourceOutcome:
    return ResourceOutcome(fault=outcome) if isinstance(outcome, Fault) else ResourceOutcome(state=outcome)


def _first_ready(claim: JsonObject) -> str:
    return text_at(claim, "status", "lifespan", "firstReady")
