"""A handle, its resources and its claim, brought together to what they have to be: the second half of every pass.

    evaluate --> end passed, auto-delete, auto-detach --> (the caller ends it)
       |    .-> spec of the handle, with references (the intent) --> create, adopt, update resources --> evaluate again
       '-----> nothing left to do --> status of the handle --> status of the claim

Safe to repeat at any point: names follow from the handle's, a reference is recorded before its object is made, what
exists is adopted, and every write is made over the version that was read. What was made while the handle ended beside
it is taken back: whoever ended the handle could not know of it. A resource that cannot be made is a fault in
the status; the others are made all the same, except those that wait for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import ValidationError

from activities.claims import metrics
from activities.claims.evaluation import Beyond, Evaluation, fault_of_evaluation
from activities.claims.evaluator import EvaluationBug
from activities.claims.known import Known
from activities.claims.managed import Managed
from activities.claims.provider_conditions import ProviderConditions
from activities.claims.requester import Requesters
from activities.claims.writing import Writer
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.conditions import with_handles_stalled, with_stalled
from domain.claims.constants import LIFESPAN_END_CHANGED, LIFESPAN_END_CLEARED, LIFESPAN_EVENT_ACTION
from domain.claims.domain_names import DomainNames
from domain.claims.faults import each_once, summed
from domain.claims.finalizers import in_hand
from domain.claims.moments import end_of_handle, passed
from domain.claims.objects import JsonObject, object_at, objects_at, text_at, with_spec
from domain.claims.passes import ObjectKnown
from domain.claims.plans import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.struggle import Struggle, struggle_after, whole
from domain.identity import Key
from domain.resource import timestamp
from engine.errors import ApiError, Conflict

# So often one object is patched in one pass: linked resources lend values to each other down a chain, and a template
# that depends on chance asks for another change each time.
MOST_PATCHES = 4


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


@dataclass(frozen=True)
class Settled:
    """What came of it. `ends`: the end has passed; `states` are the live objects, where it is over."""

    handle: JsonObject
    claim: JsonObject | None
    plan: HandlePlan
    faults: tuple[Fault, ...] = ()
    ends: bool = False
    states: tuple[JsonObject | None, ...] = ()
    struggle: Struggle = field(default_factory=Struggle)

    @property
    def over(self) -> bool:
        """Whether the handle is to be ended or given up, so that nothing was written."""
        return self.ends or self.plan.auto_delete or self.plan.auto_detach

    @property
    def known(self) -> ObjectKnown:
        """What the lifecycle carries on."""
        return ObjectKnown(honoured=self.plan.wish, struggle=self.struggle)


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

    async def plan(
        self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None = None
    ) -> HandlePlan:
        """What would have to be, nothing is written; raises `Beyond`."""
        return await self._evaluation.handle(await self._question(bundle, now, states))

    async def settle(self, bundle: Bundle, now: datetime, states: Sequence[JsonObject | None] | None = None) -> Settled:
        """Make it true. `states` of the resources, if they are known already.

        Raises:
            Conflict: somebody has written what was read; look again.
            ApiError: the API server gave no answer.
        """
        made = _Made()
        try:
            question = await self._question(bundle, now, states)
        except ValidationError as error:
            return await self._show_fault(bundle, fault_of_evaluation(error, bundle.key), now)
        try:
            settled = await self._settle(bundle, question, made)
        except ApiError:
            with suppress(ApiError):
                await self._managed.take_back(bundle.handle, made.definitions)
            raise
        # A write of the handle after its resources were made has shown that it still lives; without one it is asked.
        unchanged = text_at(settled.handle, "metadata", "resourceVersion") == made.version
        if unchanged and await self._managed.take_back(bundle.handle, made.definitions):
            raise Conflict(
                f"{bundle.key.path}: its handle was deleted while resources were created", code="HandleEnded"
            )
        await self._provider_conditions.show(question.providers.values(), now)
        return settled

    async def _settle(self, bundle: Bundle, question: HandleQuestion, made: _Made) -> Settled:
        try:
            return await self._make_true(bundle, question, made)
        except (Beyond, EvaluationBug) as error:
            fault = fault_of_evaluation(error, bundle.key)
            if not _has_conditions(bundle):
                return await self._show_fault(bundle, fault, question.now)
        try:  # without the conditions that the claim's author wrote, which then harm nobody but the claim
            return await self._make_true(bundle, question.model_copy(update={"push": False}), made, fault)
        except (Beyond, EvaluationBug) as error:
            return await self._show_fault(bundle, fault_of_evaluation(error, bundle.key), question.now)

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
            now=now,
            names=self._known.names,
            handle=bundle.handle,
            claim=bundle.claim,
            providers=await self._known.providers_for(bundle.key, bundle.handle, bundle.claim),
            assigned=bundle.assigned,
            states=tuple(states),
            requester=requester,
            push=bundle.push,
            shown=bundle.shown,
            honoured=bundle.known.honoured,
            unserved=unserved,
            outdated=outdated,
            unreadable=unreadable,
        )

    async def _make_true(self, bundle: Bundle, question: HandleQuestion, made: _Made, *before: Fault) -> Settled:
        handle = bundle.handle
        faults: dict[int, Fault] = {}
        sent: defaultdict[int, list[tuple[JsonObject, ...]]] = defaultdict(list)
        changed: list[Operations] = []
        while True:
            plan = await self._evaluation.handle(question)
            if passed(plan.end, question.now) or plan.auto_delete or plan.auto_detach:
                return Settled(handle, bundle.claim, plan, ends=passed(plan.end, question.now), states=question.states)
            handle = await self._writer.put(RESOURCE_HANDLE, handle, _kept(self._known.names, handle, plan.spec))
            states = [*question.states, *[None] * (len(objects_at(handle, "spec", "resources")) - len(question.states))]
            acted = False
            for index, definition in plan.creations:
                if index not in faults:
                    acted = True
                    made.begin(handle, definition)
                    outcome = await self._managed.create(handle, definition)
                    changed += [] if isinstance(outcome, Fault) else [whole(index, definition)]
                    self._take(index, outcome, states, faults)
            for operations in plan.updates:
                state = states[operations.index]
                tried = sent[operations.index]
                # Once more where a linked resource has just changed what it lends; never what did not take effect.
                if state is not None and operations.patch not in tried and len(tried) < MOST_PATCHES:
                    acted = True
                    tried.append(operations.patch)
                    after = await self._managed.update(state, operations)
                    changed += [operations] if _differs(state, after) else []
                    self._take(operations.index, after, states, faults)
            question = question.model_copy(update={"handle": handle, "states": tuple(states)})
            if not acted:
                break
        shown = await self._show(replace(bundle, handle=handle), plan, (*before, *faults.values()), question.now)
        return replace(shown, struggle=struggle_after(bundle.known.struggle, changed, question.now))

    @staticmethod
    def _take(
        index: int, outcome: JsonObject | Fault, states: list[JsonObject | None], faults: dict[int, Fault]
    ) -> None:
        if isinstance(outcome, Fault):
            faults[index] = outcome
        else:
            states[index] = outcome
            faults.pop(index, None)

    async def _show(self, bundle: Bundle, plan: HandlePlan, faults: tuple[Fault, ...], now: datetime) -> Settled:
        """Write the statuses, the handle's first; the claim's spec where its end moves."""
        refused = (Fault(reason="ChangeRefused", message=refusal) for refusal in plan.refused)
        told = each_once((*plan.faults, *faults, *refused))
        status = with_stalled(plan.handle_status, summed(told), now)
        handle = await self._writer.put_status(RESOURCE_HANDLE, bundle.handle, status)
        claim = bundle.claim
        if claim is not None and plan.claim_status is not None and bundle.shown:
            if plan.requested_end:
                lifespan: JsonObject = {**object_at(claim, "spec", "lifespan"), "end": plan.requested_end}
                claim = await self._writer.put(RESOURCE_CLAIM, claim, with_spec(claim, lifespan=lifespan))
            status = with_handles_stalled(plan.claim_status, told, now, accepted=bundle.push)
            claim = await self._writer.put_status(RESOURCE_CLAIM, claim, status)
        await self._tell(bundle, handle, claim, plan, told, now)
        return Settled(handle, claim, plan, faults=told)

    async def _tell(
        self,
        bundle: Bundle,
        handle: JsonObject,
        claim: JsonObject | None,
        plan: HandlePlan,
        faults: Sequence[Fault],
        now: datetime,
    ) -> None:
        """Events of what a person may want to know, and counts; a fault is told when it is another than before."""
        kind, before, after = (
            (RESOURCE_CLAIM, bundle.claim, claim)
            if bundle.claim is not None and claim is not None
            else (RESOURCE_HANDLE, bundle.handle, handle)
        )
        shown_before = " ".join(text_at(each, "message") for each in objects_at(before, "status", "conditions"))
        for fault in faults:
            if fault.message not in shown_before:
                await self._writer.tell(kind, after, fault.reason, fault.message, now)
        if plan.end_was_cut and plan.wish is not None and plan.end is not None:
            text = f"lifespan.end {timestamp(plan.wish.end)} is later than allowed: {timestamp(plan.end)}"
            await self._writer.tell(kind, after, "LifespanEndCut", text, now)
        if kind is RESOURCE_CLAIM and _first_ready(after) and not _first_ready(before):
            metrics.claim_ready(after, now, pool=text_at(handle, "spec", "resourcePool", "name"))
        if text := _moved_end(bundle, after, plan):
            reason = LIFESPAN_END_CHANGED if _shown_end(after) else LIFESPAN_END_CLEARED
            await self._writer.tell(kind, after, reason, text, now, normal=True, action=LIFESPAN_EVENT_ACTION)

    async def _show_fault(self, bundle: Bundle, fault: Fault, now: datetime) -> Settled:
        """What could not be evaluated at all: everything stays as it is, but the end still counts."""
        end, honoured = end_of_handle(bundle.handle), bundle.known.honoured
        plan = HandlePlan(spec=object_at(bundle.handle, "spec"), end=end, wish=honoured, faults=(fault,))
        if passed(plan.end, now):
            return Settled(bundle.handle, bundle.claim, plan, faults=(fault,), ends=True)
        shown = plan.model_copy(
            update={
                "handle_status": object_at(bundle.handle, "status"),
                "claim_status": object_at(bundle.claim, "status") if bundle.claim is not None else None,
            }
        )
        return await self._show(bundle, shown, (), now)


def _differs(state: JsonObject, after: JsonObject | Fault) -> bool:
    """Whether an update has changed the object."""
    version = ("metadata", "resourceVersion")
    return not isinstance(after, Fault) and text_at(after, *version) != text_at(state, *version)


def _first_ready(claim: JsonObject) -> str:
    return text_at(claim, "status", "lifespan", "firstReady")


def _has_conditions(bundle: Bundle) -> bool:
    """Whether the claim's author has written conditions that were to be judged."""
    spec = object_at(bundle.claim, "spec")
    return bundle.push and any(object_at(spec, field) for field in ("autoDelete", "autoDetach"))


def _kept(names: DomainNames, handle: JsonObject, spec: JsonObject) -> JsonObject:
    """The handle with its new spec, as one that we look after."""
    return in_hand(names, RESOURCE_HANDLE, {**handle, "spec": spec})


def _shown_end(obj: JsonObject) -> str:
    """The end that a claim shows."""
    return text_at(obj, "status", "lifespan", "end")


def _moved_end(bundle: Bundle, claim: JsonObject, plan: HandlePlan) -> str:
    """What to say of a claim's end that has moved; nothing of the first one, nor of one that rolls on by itself."""
    before, after = _shown_end(bundle.claim or {}), _shown_end(claim)
    rolls = plan.wish is not None and plan.wish == bundle.known.honoured
    if not before or before == after or rolls:
        return ""
    return f"lifespan end is {after}, was {before}" if after else f"lifespan end is cleared, was {before}"
