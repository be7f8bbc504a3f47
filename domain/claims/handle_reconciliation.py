"""Reconciliation of a handle, its resources and its claim.

    read --> evaluate
        end passed, auto-delete or auto-detach: nothing is written, and the caller ends the handle
        something to do: requested end of the claim --> spec of the handle, with references
            --> create, adopt, update resources --> evaluate again
        nothing left to do: status of the handle --> status of the claim

A pass can be repeated from any point: the names of resources derive from the handle's name, references are recorded
before creation, and existing objects are adopted. A resource that cannot be created is a fault in the status; only its
dependents wait for it. If another process deletes the handle, resources created meanwhile are deleted: no other pass
knows of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import SerializeAsAny, SkipValidation

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.deep_merge import same
from domain.claims.domain_names import DomainNames
from domain.claims.evaluator_interface import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.events import end_events, fault_events
from domain.claims.faults import each_once, summed
from domain.claims.finalizers import in_hand
from domain.claims.json_objects import (
    GivenObject,
    JsonObject,
    key_of,
    object_at,
    only,
    text_at,
    version_of,
    with_added,
    with_spec,
)
from domain.claims.passes import ObjectMemory
from domain.claims.periodic_evaluation import Cadence
from domain.claims.stalled_condition import with_handles_stalled, with_stalled
from domain.claims.timestamps import end_of_handle, passed
from domain.claims.write_backoff import reverted_writes, whole
from domain.claims.writes import ClaimsAction, ObjectsWorld, PutObject, PutStatus
from domain.decision import Action, Decision, Outcome, World
from domain.identity import Key
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal

# The most patches of one object in a pass. Values that pass along a chain of linked resources need several; a random
# template would request another change each time.
MOST_PATCHES = 4

_SPEC = "spec"
_HANDLES_SPEC, _HANDLES_STATUS = f"{RESOURCE_HANDLE.name} {_SPEC}", f"{RESOURCE_HANDLE.name} status"
_CLAIMS_STATUS = f"{RESOURCE_CLAIM.name} status"
_RECONCILING = Decision(phase="Reconciling", outcome=Outcome.WORKING, why="handle and resources")


class HandleEnded(Model):
    why: str = ""
    refused: tuple[str, ...] = ()


class HandleWorld(ObjectsWorld):
    known: ObjectMemory = ObjectMemory()
    question: Annotated[HandleQuestion, SkipValidation]  # handle, claim and live objects: the evaluator's input
    states_known: bool = False  # the live objects need no read, because none was created yet
    read: bool = False  # the live objects and all that templates read are in the question
    handle_before: GivenObject
    claim_before: GivenObject | None = None
    answer: Annotated[HandlePlan | None, SkipValidation] = None  # None before the evaluation and after a change
    conditional: bool = False  # the claim has autoDelete or autoDetach; a failed evaluation is repeated without them
    unevaluated: tuple[Fault, ...] = ()  # why autoDelete and autoDetach could not be evaluated
    failed: dict[int, Fault] = {}  # why a resource could not be created or changed, by index
    sent: dict[int, tuple[tuple[JsonObject, ...], ...]] = {}  # the patches sent in this pass, by index
    changed: tuple[Operations, ...] = ()
    begun: tuple[GivenObject, ...] = ()  # definitions of objects that were created, or may have been (lost answers)
    begun_upon: GivenObject = {}  # the handle at the time when these objects were created
    lost: bool = False  # the handle was deleted, or the observation is outdated
    fresh: bool = True  # handle and claim were read from the API server
    asked: bool = False
    end: SerializeAsAny[HandleEnded] | None = None
    cadence: Cadence = Cadence()  # when its lifecycle evaluates again without a wake

    @classmethod
    def of(cls, key: Key, **more: Any) -> Self:
        answers = {name: more.pop(name) for name in HandleQuestion.model_fields if name in more}
        before = {"handle_before": answers["handle"], "claim_before": answers.get("claim")}
        return cls(key=key, question=HandleQuestion.model_construct(**answers), **before, **more)

    def recall(self, before: World) -> Self:
        world = super().recall(before)  # type: ignore[arg-type]
        if not isinstance(before, HandleWorld):
            return world
        return world.model_copy(update={"begun": before.begun, "begun_upon": before.begun_upon})

    @property
    def handle(self) -> JsonObject:
        return self.question.handle

    @property
    def claim(self) -> JsonObject | None:
        return self.question.claim

    @property
    def states(self) -> tuple[JsonObject | None, ...]:
        return self.question.states

    @property
    def plan(self) -> HandlePlan:
        return self.answer or HandlePlan()

    @property
    def expired(self) -> bool:
        return passed(self.plan.end, self.question.now)

    @property
    def over(self) -> bool:
        return self.expired or self.plan.auto_delete or self.plan.auto_detach

    @property
    def faults(self) -> tuple[Fault, ...]:
        refused = (Fault(reason="ChangeRefused", message=refusal) for refusal in self.plan.refused)
        return each_once((*self.plan.faults, *self.unevaluated, *self.failed.values(), *refused))

    @property
    def memory(self) -> ObjectMemory:
        struggle = reverted_writes(self.known.struggle, self.changed, self.question.now)
        return ObjectMemory(honoured=self.plan.wish, struggle=struggle)

    def asking(self, **answers: object) -> Self:
        return self.model_copy(update={"question": self.question.model_copy(update=answers)})

    def stored(self, kind: str, obj: JsonObject) -> HandleWorld:
        return self.asking(**{"handle" if kind == RESOURCE_HANDLE.name else "claim": obj})

    def state(self, index: int) -> JsonObject | None:
        states = self.question.states
        return states[index] if index < len(states) else None

    def with_state(self, index: int, outcome: ResourceOutcome) -> HandleWorld:
        wrote = tuple(each for each in self.wrote if each not in (_HANDLES_STATUS, _CLAIMS_STATUS))
        changed: dict[str, object] = {"answer": None, "wrote": wrote}
        if outcome.fault is not None:
            return self.model_copy(update={**changed, "failed": {**self.failed, index: outcome.fault}})
        states = [*self.question.states, *[None] * (index + 1 - len(self.question.states))]
        states[index] = outcome.state
        failed = {of: fault for of, fault in self.failed.items() if of != index}
        return self.asking(states=tuple(states)).model_copy(update={**changed, "failed": failed})


class Read(Model):
    question: Annotated[HandleQuestion | None, SkipValidation] = None
    fault: Fault | None = None


class ReadResources(ClaimsAction):
    activity: ClassVar[str] = "claims.read_resources"
    title: ClassVar[str] = "read the resources"
    result: ClassVar[type[Model] | None] = Read
    reads: ClassVar[bool] = True

    key: Key
    question: Annotated[HandleQuestion, SkipValidation]
    states_known: bool = False

    def fold(self, world: HandleWorld, answer: Read) -> HandleWorld:  # type: ignore[override]
        if answer.fault is not None:
            return world.model_copy(update={"read": True, "answer": blind_plan(world.question, answer.fault)})
        return world.model_copy(update={"read": True, "question": answer.question})


class Evaluated(Model):
    plan: Annotated[HandlePlan | None, SkipValidation] = None
    fault: Fault | None = None


class Evaluate(ClaimsAction):
    activity: ClassVar[str] = "claims.evaluate_handle"
    title: ClassVar[str] = "evaluate templates"
    result: ClassVar[type[Model] | None] = Evaluated
    reads: ClassVar[bool] = True

    question: Annotated[HandleQuestion, SkipValidation]

    def fold(self, world: HandleWorld, answer: Evaluated) -> HandleWorld:  # type: ignore[override]
        rest = tuple(each for each in world.wrote if each != _HANDLES_SPEC)
        if answer.fault is None:
            return world.model_copy(update={"answer": answer.plan, "wrote": rest})
        if world.conditional:
            unevaluated = {"conditional": False, "unevaluated": (answer.fault,)}
            return world.asking(push=False).model_copy(update=unevaluated)
        plan = blind_plan(world.question, answer.fault)
        return world.model_copy(update={"answer": plan, "unevaluated": (), "wrote": rest})


class ResourceOutcome(Model):
    state: GivenObject | None = None
    fault: Fault | None = None


class ResourceAction(ClaimsAction):
    result: ClassVar[type[Model] | None] = ResourceOutcome

    @property
    def slot(self) -> str:
        return f"resource {self.place}"

    @property
    def place(self) -> int:
        raise NotImplementedError


class CreateResource(ResourceAction):
    activity: ClassVar[str] = "claims.create_resource"
    in_turn: ClassVar[bool] = True

    handle: GivenObject
    index: int
    definition: GivenObject

    @property
    def place(self) -> int:
        return self.index

    @property
    def summary(self) -> str:
        return f"create {text_at(self.definition, 'kind')} {text_at(self.definition, 'metadata', 'name')}"

    def fold(self, world: HandleWorld, outcome: ResourceOutcome) -> HandleWorld:  # type: ignore[override]
        changed = () if outcome.fault else (whole(self.index, self.definition),)
        after = self._begun(world).with_state(self.index, outcome)
        return after.model_copy(update={"changed": (*world.changed, *changed)})

    def refuse(self, world: HandleWorld, refusal: Refusal) -> HandleWorld:  # type: ignore[override]
        """Record in the world that the object may have been created despite the failure."""
        return super().refuse(self._begun(world), refusal)

    def _begun(self, world: HandleWorld) -> HandleWorld:
        return world.model_copy(update={"begun": (*world.begun, self.definition), "begun_upon": self.handle})


class UpdateResource(ResourceAction):
    activity: ClassVar[str] = "claims.update_resource"

    state: GivenObject
    operations: Annotated[Operations, SkipValidation]

    @property
    def place(self) -> int:
        return self.operations.index

    @property
    def summary(self) -> str:
        return f"patch resource {self.operations.index}: {len(self.operations.patch)} operations"

    def fold(self, world: HandleWorld, outcome: ResourceOutcome) -> HandleWorld:  # type: ignore[override]
        after = world.with_state(self.place, outcome)
        differs = outcome.fault is None and version_of(outcome.state) != version_of(self.state)
        tried = (*world.sent.get(self.place, ()), self.operations.patch)
        changed = (self.operations,) if differs else ()
        return after.model_copy(
            update={"sent": {**world.sent, self.place: tried}, "changed": (*world.changed, *changed)}
        )


class TakenBack(Model):
    ended: bool = False


class TakeBack(ClaimsAction):
    activity: ClassVar[str] = "claims.take_back"
    title: ClassVar[str] = "delete the new resources if the handle is gone or being deleted"
    result: ClassVar[type[Model] | None] = TakenBack

    handle: GivenObject
    definitions: tuple[GivenObject, ...]

    def fold(self, world: HandleWorld, result: TakenBack) -> HandleWorld:  # type: ignore[override]
        return world.model_copy(update={"begun": (), "lost": result.ended})


def begun_with(plan: HandlePlan, handle: JsonObject, names: DomainNames) -> HandlePlan | None:
    """The plan computed before the handle's creation, adapted to the handle; None if it must be evaluated again.

    Templates may read what the creation changes: metadata and the claim's status.
    """
    changed = plan.by_objects or plan.auto_delete or plan.auto_detach or not same(handle.get("spec"), plan.spec)
    if changed or plan.faults or plan.refused:
        return None
    mark = {names.resource_handle_uid_annotation: text_at(handle, "metadata", "uid")}
    creations = tuple((index, with_added(each, annotations=mark)) for index, each in plan.creations)
    return plan.model_copy(update={"creations": creations})


def blind_plan(question: HandleQuestion, fault: Fault) -> HandlePlan:
    """The plan after a failed evaluation: nothing is changed, but the handle still expires."""
    handle, claim = question.handle, question.claim
    return HandlePlan(
        spec=object_at(handle, "spec"),
        end=end_of_handle(handle),
        wish=question.honoured,
        faults=(fault,),
        handle_status=object_at(handle, "status"),
        claim_status=None if claim is None else object_at(claim, "status"),
    )


def decide(world: HandleWorld, now: datetime) -> Decision:
    return reconciled(world, _RECONCILING)


def reconciled(world: HandleWorld, decision: Decision) -> Decision:
    """The decision with its next actions and notices. Events are recorded before the status that shows them, so that
    none is lost if the process dies in between.
    """
    actions, later = _steps(world)
    left = [each for each in actions if not _is_stuck(world, each)]
    shows = world.answer is not None and all(isinstance(each, PutStatus | TakeBack) for each in left)
    notices = tuple(_notices(world)) if shows and not world.over else ()
    planned = tuple(each.summary for each in later)
    return decision.model_copy(update={"actions": actions, "planned": planned, "notices": notices})


def _steps(world: HandleWorld) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    plan, handle = world.plan, world.handle
    if not world.read:
        return (ReadResources(key=world.key, question=world.question, states_known=world.states_known),), ()
    if world.answer is None:
        return (Evaluate(question=world.question),), ()
    if world.over:
        return (), ()
    recorded = _requested_end(world, plan)
    intent: tuple[Action, ...] = tuple(each for each in recorded if not _is_stuck(world, each))
    if not intent and _HANDLES_SPEC not in world.wrote:
        # The handle's end moves only with the claim's, else it would move again in each pass.
        spec = {**plan.spec, **only(object_at(handle, "spec"), "lifespan")} if recorded else plan.spec
        updated = in_hand(world.question.names, RESOURCE_HANDLE, {**handle, "spec": spec})
        intent = world.to_write(PutObject(kind=RESOURCE_HANDLE, before=handle, after=updated, what=_SPEC))
    resources = (*_creations(world, plan), *_updates(world, plan))
    if intent:
        return intent, resources
    actions: tuple[Action, ...] = (*recorded, *resources)
    if all(_is_stuck(world, each) for each in actions):
        actions = (*actions, *_statuses(world, plan))
    if world.begun and any(each.slot in world.refusals for each in actions):
        # No other pass knows the objects created in this pass.
        return (*actions, TakeBack(handle=world.handle, definitions=world.begun)), ()
    return actions or tuple(_last(world)), ()


def _requested_end(world: HandleWorld, plan: HandlePlan) -> tuple[Action, ...]:
    claim = world.claim
    if claim is None or not plan.requested_end or not world.question.shown:
        return ()
    moved = with_spec(claim, lifespan={**object_at(claim, "spec", "lifespan"), "end": plan.requested_end})
    return world.to_write(PutObject(kind=RESOURCE_CLAIM, before=claim, after=moved, what="requested end"))


def _is_stuck(world: HandleWorld, action: Action) -> bool:
    """Whether the action was refused. Throttling does not count: writing it into the status would cost a request."""
    refusal = world.refusals.get(action.slot)
    return refusal is not None and refusal.type is not ErrorType.THROTTLED


def _creations(world: HandleWorld, plan: HandlePlan) -> Iterator[Action]:
    for index, definition in plan.creations:
        if index not in world.failed:
            yield CreateResource(handle=world.handle, index=index, definition=definition)


def _updates(world: HandleWorld, plan: HandlePlan) -> Iterator[Action]:
    for operations in plan.updates:
        state = world.state(operations.index)
        if state is not None and _is_to_send(world, operations):
            yield UpdateResource(state=state, operations=operations)


def _last(world: HandleWorld) -> Iterator[Action]:
    """Check after creations whether the handle still exists, unless a later write of it has succeeded."""
    if world.begun and version_of(world.handle) == version_of(world.begun_upon):
        yield TakeBack(handle=world.handle, definitions=world.begun)


def _is_to_send(world: HandleWorld, operations: Operations) -> bool:
    """Whether to send the patch. No patch is sent twice in a pass: the pass would not end if
    the API server drops its fields.
    """
    tried = world.sent.get(operations.index, ())
    return operations.patch not in tried and len(tried) < MOST_PATCHES


def _statuses(world: HandleWorld, plan: HandlePlan) -> Iterator[Action]:
    handle, claim, now = world.handle, world.claim, world.question.now
    if _HANDLES_STATUS not in world.wrote:
        status = with_stalled(plan.handle_status, summed(world.faults), now)
        if first := world.to_write(PutStatus(kind=RESOURCE_HANDLE, before=handle, after={**handle, "status": status})):
            yield from first
            return
    if claim is None or plan.claim_status is None or not world.question.shown or _CLAIMS_STATUS in world.wrote:
        return
    if _requested_end(world, plan):
        return
    shown = with_handles_stalled(plan.claim_status, world.faults, now, accepted=world.question.push)
    yield from world.to_write(PutStatus(kind=RESOURCE_CLAIM, before=claim, after={**claim, "status": shown}))


def _notices(world: HandleWorld) -> Iterator[Notice]:
    kind, obj = (RESOURCE_HANDLE, world.handle) if world.claim is None else (RESOURCE_CLAIM, world.claim)
    about, before = key_of(kind, obj, world.key.cluster), world.claim_before
    yield from fault_events(about, world.handle_before if before is None else before, world.faults)
    planned = world.plan.claim_status if world.question.shown and _CLAIMS_STATUS not in world.wrote else None
    after = object_at(world.claim, "status") if planned is None else planned
    yield from end_events(about, before, after, world.plan, world.known.honoured)
