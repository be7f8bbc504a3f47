"""The pass over a handle, its resources and its claim: what it observes and its effects.

`domain/claims/handle_reconciliation.py` decides. What was made while the handle was ended beside it is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import ValidationError
from temporalio import activity

from activities.claims import metrics
from activities.claims.evaluation import Beyond, Evaluation, fault_of_evaluation
from activities.claims.evaluator import EvaluationBug
from activities.claims.known import Known
from activities.claims.managed import Managed
from activities.claims.provider_conditions import ProviderConditions
from activities.claims.requester import Requesters
from activities.claims.writing import WriteActivities, Writer
from activities.inline import Effect, Inline
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.handle_reconciliation import (
    CreateResource,
    Evaluate,
    Evaluated,
    HandleWorld,
    ResourceOutcome,
    UpdateResource,
    blind_plan,
    decide,
)
from domain.claims.objects import JsonObject, object_at, text_at
from domain.claims.passes import ObjectKnown
from domain.claims.plans import Fault, HandlePlan, HandleQuestion
from domain.identity import Key
from domain.notices import Notice, NoticeType
from domain.runner import State
from engine.errors import ApiError, Conflict


@dataclass(frozen=True)
class Bundle:
    """What a pass has in its hands.

    `shown`: the claim's own object may be written.
    """

    key: Key
    handle: JsonObject
    claim: JsonObject | None = None
    assigned: tuple[str, ...] = ()
    push: bool = False
    shown: bool = True
    known: ObjectKnown = field(default_factory=ObjectKnown)


@dataclass
class _Made:
    """What a pass has begun to make, and the version of the handle that it did so upon."""

    definitions: list[JsonObject] = field(default_factory=list)
    version: str = ""

    def begin(self, handle: JsonObject, definition: JsonObject) -> None:
        """Note it before it is asked for: the answer may be lost."""
        self.definitions.append(definition)
        self.version = text_at(handle, "metadata", "resourceVersion")


class Bundles:
    """Settling bundles."""

    def __init__(
        self,
        known: Known,
        writer: Writer,
        managed: Managed,
        evaluation: Evaluation,
        requesters: Requesters,
        provider_conditions: ProviderConditions,
    ) -> None:
        self._known = known
        self._writer = writer
        self._managed = managed
        self._evaluation = evaluation
        self._requesters = requesters
        self._provider_conditions = provider_conditions

    def all(self) -> Sequence[Callable[..., object]]:
        """Every activity, for the worker."""
        return (self.evaluate_handle, self.create_resource, self.update_resource)

    async def plan(
        self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None = None
    ) -> HandlePlan:
        """What would have to be, nothing is written; raises `Beyond`."""
        return await self._evaluation.handle(await self._question(bundle, now, states))

    async def settle(
        self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None = None
    ) -> HandleWorld:
        """Make it true. `states` of the resources, if they are known already.

        What was made while the handle was ended beside it is taken back: nobody else knows of it.

        Raises:
            Conflict: an object was written by others; observe again.
            ApiError: the API server gave no answer.
        """
        made = _Made()
        inline = Inline(decide, self._effects(made), tell=partial(self._tell, bundle, now))
        passed = await inline.go_on(State(await self._world(bundle, now, states), dirty=False))
        if passed.refusals:
            with suppress(ApiError):
                await self._managed.take_back(bundle.handle, made.definitions)
            passed.confirm()
        world = passed.world
        # A write of the handle after its resources were made has shown that it still lives; without one it is asked.
        unchanged = text_at(world.handle, "metadata", "resourceVersion") == made.version
        if unchanged and await self._managed.take_back(bundle.handle, made.definitions):
            raise Conflict(
                f"{bundle.key.path}: its handle was deleted while resources were created", code="HandleEnded"
            )
        await self._provider_conditions.show(world.question.providers.values(), now)
        claim = world.claim
        if claim is not None and _first_ready(claim) and not _first_ready(bundle.claim or {}):
            metrics.claim_ready(claim, now, pool=text_at(world.handle, "spec", "resourcePool", "name"))
        return world

    async def _world(self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None) -> HandleWorld:
        plan: HandlePlan | None = None
        try:
            question = await self._question(bundle, now, states)
        except ValidationError as error:
            question = HandleQuestion.model_construct(**self._of(bundle, now))
            plan = blind_plan(question, fault_of_evaluation(error, bundle.key))
        conditional = _has_conditions(bundle)
        return HandleWorld.of(bundle.key, question, plan, known=bundle.known, conditional=conditional)

    def _of(self, bundle: Bundle, now: datetime) -> dict[str, Any]:
        """What a question says of the bundle itself."""
        return {
            "now": now,
            "names": self._known.names,
            "handle": bundle.handle,
            "claim": bundle.claim,
            "assigned": bundle.assigned,
            "push": bundle.push,
            "shown": bundle.shown,
            "honoured": bundle.known.honoured,
        }

    async def _question(
        self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None
    ) -> HandleQuestion:
        requester = await self._requesters.of(bundle.key, bundle.claim)
        unserved: tuple[int, ...] = ()
        outdated: tuple[int, ...] = ()
        unreadable: tuple[int, ...] = ()
        if states is None:
            states, unreadable = await self._managed.states(bundle.handle)
            if None in states:
                unserved, outdated = await self._managed.unknown_kinds(bundle.handle, states)
        return HandleQuestion(
            **self._of(bundle, now),
            providers=await self._known.providers_for(bundle.key, bundle.handle, bundle.claim),
            states=tuple(states),
            requester=requester,
            unserved=unserved,
            outdated=outdated,
            unreadable=unreadable,
        )

    # --- effects ---

    def _effects(self, made: _Made) -> Mapping[str, Effect]:
        return {
            **WriteActivities(self._writer).effects(),
            Evaluate.activity: self.evaluate_handle,
            CreateResource.activity: partial(self._create, made),
            UpdateResource.activity: self.update_resource,
        }

    async def _create(self, made: _Made, action: CreateResource) -> ResourceOutcome:
        made.begin(action.handle, action.definition)
        return await self.create_resource(action)

    @activity.defn(name=Evaluate.activity)
    async def evaluate_handle(self, action: Evaluate) -> Evaluated:
        """What handle, resources and statuses have to be."""
        name = text_at(action.question.handle, "metadata", "name")
        try:
            return Evaluated(plan=await self._evaluation.handle(action.question))
        except (Beyond, EvaluationBug) as error:
            return Evaluated(fault=fault_of_evaluation(error, name))

    @activity.defn(name=CreateResource.activity)
    async def create_resource(self, action: CreateResource) -> ResourceOutcome:
        """Make a resource, or adopt the object that is there."""
        return _outcome(await self._managed.create(action.handle, action.definition))

    @activity.defn(name=UpdateResource.activity)
    async def update_resource(self, action: UpdateResource) -> ResourceOutcome:
        """Change a live resource."""
        return _outcome(await self._managed.update(action.state, action.operations))

    async def _tell(self, bundle: Bundle, now: datetime, notice: Notice) -> None:
        """An Event on the claim, on the handle where there is none."""
        kind, obj = (RESOURCE_HANDLE, bundle.handle) if bundle.claim is None else (RESOURCE_CLAIM, bundle.claim)
        is_normal = notice.type is NoticeType.NORMAL
        await self._writer.tell(kind, obj, notice.reason, notice.message, now, normal=is_normal, action=notice.action)


def _outcome(outcome: JsonObject | Fault) -> ResourceOutcome:
    return ResourceOutcome(fault=outcome) if isinstance(outcome, Fault) else ResourceOutcome(state=outcome)


def _first_ready(claim: JsonObject) -> str:
    return text_at(claim, "status", "lifespan", "firstReady")


def _has_conditions(bundle: Bundle) -> bool:
    """Whether the claim's author has written conditions that were to be judged."""
    spec = object_at(bundle.claim, "spec")
    return bundle.push and any(object_at(spec, field) for field in ("autoDelete", "autoDetach"))
