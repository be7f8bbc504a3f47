"""A handle, its resources and its claim, brought together to what they have to be.

    read --> evaluate --> end passed, auto-delete, auto-detach --> (nothing is written: the caller ends it)
       .--------'
       |    .-> spec of the handle, with references (the intent) --> create, adopt, update resources --> evaluate again
       '-----> nothing left to do --> status of the handle --> status of the claim

Safe to repeat at any point: names follow from the handle's, a reference is recorded before its object is made, what
exists is adopted, and every write is made over the version that was read. A resource that cannot be made is a fault in
the status; the others are made all the same, except those that wait for it. What was made while the handle was ended
beside it is taken back: no other pass knows of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self

from pydantic import SerializeAsAny, SkipValidation

from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.conditions import with_handles_stalled, with_stalled
from domain.claims.constants import LIFESPAN_END_CHANGED, LIFESPAN_END_CLEARED, LIFESPAN_EVENT_ACTION
from domain.claims.faults import each_once, summed
from domain.claims.finalizers import in_hand
from domain.claims.objects import GivenObject, JsonObject, object_at, objects_at, text_at, with_spec
from domain.claims.passes import Cadence, ObjectKnown
from domain.claims.plans import Fault, HandlePlan, HandleQuestion, Operations
from domain.claims.timestamps import end_of_handle, passed
from domain.claims.write_backoff import struggle_after, whole
from domain.claims.writes import ClaimsAction, ObjectsWorld, PutObject, PutStatus
from domain.decision import Action, Decision, Outcome, World
from domain.identity import Key
from domain.model import Model
from domain.notices import Notice, normal, warning
from domain.refusal import Refusal
from domain.resource import timestamp

# So often one object is patched in one pass: linked resources lend values to each other down a chain, and a template
# that depends on chance asks for another change each time.
MOST_PATCHES = 4

_SPEC = "spec"
_HANDLES_SPEC, _HANDLES_STATUS = f"{RESOURCE_HANDLE.name} {_SPEC}", f"{RESOURCE_HANDLE.name} status"
_CLAIMS_STATUS = f"{RESOURCE_CLAIM.name} status"
_RECONCILING = Decision(phase="Reconciling", outcome=Outcome.WORKING, why="handle and resources")


class HandleEnded(Model):
    """What came of an end: why the handle ended, and what could not be asked to go."""

    why: str = ""
    refused: tuple[str, ...] = ()


class HandleWorld(ObjectsWorld):
    """A handle as a pass has brought it, with its claim and its resources.

    Attributes:
        question: handle, claim and live objects as they are now; these are read first.
        states_known: the live objects are, because nothing was made yet.
        read: everything that the question names was read.
        handle_before: the handle as it was observed.
        claim_before: the same of the claim.
        answer: the evaluator's, None where something has changed since.
        conditional: the claim's author has written conditions, without which the rest is evaluated if they fail.
        unevaluated: why conditions could not be evaluated.
        failed: why a resource could not be made or changed, by index.
        sent: the patches that were tried, by index of the resource.
        changed: what has changed live objects.
        begun: the definitions of what may have been made, an answer that was lost included.
        begun_upon: the handle as it was then.
        lost: the handle has ended meanwhile, or what was observed is not so any more.
        fresh: handle and claim are as the API server has them.
        asked: the binder was.
        end: what came of the handle's end.
        cadence: when its lifecycle looks again by itself.
    """

    known: ObjectKnown = ObjectKnown()
    question: Annotated[HandleQuestion, SkipValidation]
    states_known: bool = False
    read: bool = False
    handle_before: GivenObject
    claim_before: GivenObject | None = None
    answer: Annotated[HandlePlan | None, SkipValidation] = None
    conditional: bool = False
    unevaluated: tuple[Fault, ...] = ()
    failed: dict[int, Fault] = {}
    sent: dict[int, tuple[tuple[JsonObject, ...], ...]] = {}
    changed: tuple[Operations, ...] = ()
    begun: tuple[GivenObject, ...] = ()
    begun_upon: GivenObject = {}
    lost: bool = False
    fresh: bool = True
    asked: bool = False
    end: SerializeAsAny[HandleEnded] | None = None
    cadence: Cadence = Cadence()

    @classmethod
    def of(cls, key: Key, **more: Any) -> Self:
        """What was observed of handle and claim; other fields of the question and of the world by their names."""
        asked = {name: more.pop(name) for name in HandleQuestion.model_fields if name in more}
        before = {"handle_before": asked["handle"], "claim_before": asked.get("claim")}
        return cls(key=key, question=HandleQuestion.model_construct(**asked), **before, **more)

    def recall(self, before: World) -> Self:
        """What may have been made is known by the pass that made it."""
        kept: dict[str, object] = {"refusals": before.refusals, "known": before.known}
        if isinstance(before, HandleWorld):
            kept |= {"begun": before.begun, "begun_upon": before.begun_upon}
        return self.model_copy(update=kept)

    @property
    def handle(self) -> JsonObject:
        """The handle as it is now."""
        return self.question.handle

    @property
    def claim(self) -> JsonObject | None:
        """The claim as it is now."""
        return self.question.claim

    @property
    def states(self) -> tuple[JsonObject | None, ...]:
        """The live objects as they are now."""
        return self.question.states

    @property
    def plan(self) -> HandlePlan:
        """The evaluator's answer; one that asks for nothing where there is none."""
        return self.answer or HandlePlan()

    @property
    def expired(self) -> bool:
        """Whether its end has come."""
        return passed(self.plan.end, self.question.now)

    @property
    def over(self) -> bool:
        """Whether the handle is to be ended or given up, so that nothing is written."""
        return self.expired or self.plan.auto_delete or self.plan.auto_detach

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What a person has to mend."""
        refused = (Fault(reason="ChangeRefused", message=refusal) for refusal in self.plan.refused)
        return each_once((*self.plan.faults, *self.unevaluated, *self.failed.values(), *refused))

    @property
    def memory(self) -> ObjectKnown:
        """What the lifecycle carries on."""
        struggle = struggle_after(self.known.struggle, self.changed, self.question.now)
        return ObjectKnown(honoured=self.plan.wish, struggle=struggle)

    def stored(self, kind: str, obj: JsonObject) -> HandleWorld:
        """The object as the API server has answered it."""
        field = "handle" if kind == RESOURCE_HANDLE.name else "claim"
        return self.model_copy(update={"question": self.question.model_copy(update={field: obj})})

    def state(self, index: int) -> JsonObject | None:
        """The live object of a resource; one whose entry is new has none yet."""
        states = self.question.states
        return states[index] if index < len(states) else None

    def with_state(self, index: int, outcome: ResourceOutcome) -> HandleWorld:
        """After a resource was made or changed, which is to be evaluated again."""
        if outcome.fault is not None:
            return self.model_copy(update={"failed": {**self.failed, index: outcome.fault}, "answer": None})
        states = [*self.question.states, *[None] * (index + 1 - len(self.question.states))]
        states[index] = outcome.state
        question = self.question.model_copy(update={"states": tuple(states)})
        failed = {of: fault for of, fault in self.failed.items() if of != index}
        return self.model_copy(update={"question": question, "failed": failed, "answer": None})


# --- actions ---


class Read(Model):
    """The question with the live objects, or why it cannot be asked."""

    question: Annotated[HandleQuestion | None, SkipValidation] = None
    fault: Fault | None = None


class ReadResources(ClaimsAction):
    """Read the live objects of the resources, and what else the templates may see."""

    activity: ClassVar[str] = "claims.read_resources"
    title: ClassVar[str] = "read the resources"
    result: ClassVar[type[Model] | None] = Read
    reads: ClassVar[bool] = True

    key: Key
    question: Annotated[HandleQuestion, SkipValidation]
    states_known: bool = False

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        """The whole question."""
        answer = result if isinstance(result, Read) else Read()
        if answer.fault is not None:
            return world.model_copy(update={"read": True, "answer": blind_plan(world.question, answer.fault)})
        return world.model_copy(update={"read": True, "question": answer.question})


class Evaluated(Model):
    """The evaluator's answer, or why there is none."""

    plan: Annotated[HandlePlan | None, SkipValidation] = None
    fault: Fault | None = None


class Evaluate(ClaimsAction):
    """Ask what handle, resources and statuses have to be."""

    activity: ClassVar[str] = "claims.evaluate_handle"
    title: ClassVar[str] = "evaluate templates"
    result: ClassVar[type[Model] | None] = Evaluated
    reads: ClassVar[bool] = True

    question: Annotated[HandleQuestion, SkipValidation]

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        """The plan; where there is none, it is asked for without the conditions that the claim's author wrote."""
        answer = result if isinstance(result, Evaluated) else Evaluated()
        rest = tuple(each for each in world.wrote if each != _HANDLES_SPEC)
        if answer.fault is None:
            return world.model_copy(update={"answer": answer.plan, "wrote": rest})
        if world.conditional:
            question = world.question.model_copy(update={"push": False})
            return world.model_copy(update={"question": question, "conditional": False, "unevaluated": (answer.fault,)})
        plan = blind_plan(world.question, answer.fault)
        return world.model_copy(update={"answer": plan, "unevaluated": (), "wrote": rest})


class ResourceOutcome(Model):
    """A live object after it was made or changed, or why it was not."""

    state: GivenObject | None = None
    fault: Fault | None = None


class ResourceAction(ClaimsAction):
    """Something done to one resource of a handle."""

    result: ClassVar[type[Model] | None] = ResourceOutcome

    @property
    def slot(self) -> str:
        """One action at a time per resource."""
        return f"resource {self.place}"

    @property
    def place(self) -> int:
        """The resource's index."""
        raise NotImplementedError


class CreateResource(ResourceAction):
    """Make a resource from its definition, or adopt the object that is there."""

    activity: ClassVar[str] = "claims.create_resource"

    handle: GivenObject
    index: int
    definition: GivenObject

    @property
    def place(self) -> int:
        """The resource's index."""
        return self.index

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"create {text_at(self.definition, 'kind')} {text_at(self.definition, 'metadata', 'name')}"

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        """The resource is there, or cannot be made."""
        outcome = result if isinstance(result, ResourceOutcome) else ResourceOutcome()
        changed = () if outcome.fault else (whole(self.index, self.definition),)
        after = self._begun(world).with_state(self.index, outcome)
        return after.model_copy(update={"changed": (*world.changed, *changed)})

    def refuse(self, world: HandleWorld, refusal: Refusal) -> HandleWorld:  # type: ignore[override]
        """It may have been made all the same."""
        return super().refuse(self._begun(world), refusal)

    def _begun(self, world: HandleWorld) -> HandleWorld:
        return world.model_copy(update={"begun": (*world.begun, self.definition), "begun_upon": self.handle})


class UpdateResource(ResourceAction):
    """Change a live resource, as it was read."""

    activity: ClassVar[str] = "claims.update_resource"

    state: GivenObject
    operations: Annotated[Operations, SkipValidation]

    @property
    def place(self) -> int:
        """The resource's index."""
        return self.operations.index

    @property
    def summary(self) -> str:
        """For the timeline."""
        return f"patch resource {self.operations.index}: {len(self.operations.patch)} operations"

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        """The resource as it is then; what the API server takes without changing anything is no change."""
        outcome = result if isinstance(result, ResourceOutcome) else ResourceOutcome()
        after = world.with_state(self.place, outcome)
        version = ("metadata", "resourceVersion")
        differs = outcome.fault is None and text_at(outcome.state, *version) != text_at(self.state, *version)
        tried = (*world.sent.get(self.place, ()), self.operations.patch)
        changed = (self.operations,) if differs else ()
        return after.model_copy(
            update={"sent": {**world.sent, self.place: tried}, "changed": (*world.changed, *changed)}
        )


class TakenBack(Model):
    """Whether the handle had ended."""

    ended: bool = False


class TakeBack(ClaimsAction):
    """Delete what was made if the handle has ended meanwhile.

    Its end is marked before its resources are deleted: what came after that no other pass sees.
    """

    activity: ClassVar[str] = "claims.take_back"
    title: ClassVar[str] = "take back what was made beside the handle's end"
    result: ClassVar[type[Model] | None] = TakenBack

    handle: GivenObject
    definitions: tuple[GivenObject, ...]

    def fold(self, world: HandleWorld, result: Model | None) -> HandleWorld:  # type: ignore[override]
        """Nothing is left to take back."""
        return world.model_copy(update={"begun": (), "lost": isinstance(result, TakenBack) and result.ended})


# --- the decision ---


def blind_plan(question: HandleQuestion, fault: Fault) -> HandlePlan:
    """Of what could not be evaluated at all everything stays as it is, but the end still counts."""
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
    """What is to be done now for the handle, its resources and its claim; how they stand is the caller's to say."""
    return reconciled(world, _RECONCILING)


def reconciled(world: HandleWorld, stands: Decision) -> Decision:
    """This decision with what is to be done now and what follows on it; people are told when all is done."""
    actions, later = _steps(world)
    notices = () if actions or world.over else tuple(_notices(world))
    planned = tuple(each.summary for each in later)
    return stands.model_copy(update={"actions": actions, "planned": planned, "notices": notices})


def _steps(world: HandleWorld) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """The actions that can be done now, and those that follow on them as far as they are known."""
    plan, handle = world.plan, world.handle
    if not world.read:
        return (ReadResources(key=world.key, question=world.question, states_known=world.states_known),), ()
    if world.answer is None:
        return (Evaluate(question=world.question),), ()
    if world.over:
        return (), ()
    intent: tuple[Action, ...] = ()
    if _HANDLES_SPEC not in world.wrote:
        kept = in_hand(world.question.names, RESOURCE_HANDLE, {**handle, "spec": plan.spec})
        intent = world.to_write(PutObject(kind=RESOURCE_HANDLE, before=handle, after=kept, what=_SPEC))
    resources = (*_creations(world, plan), *_updates(world, plan))
    if intent:
        return intent, resources
    actions = resources or tuple(_statuses(world, plan)) or tuple(_last(world))
    if world.begun and any(each.slot in world.refusals for each in actions):
        # No other pass knows what was made.
        return (*actions, TakeBack(handle=world.handle, definitions=world.begun)), ()
    return actions, ()


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
    """A write of the handle after its resources were made has shown that it lives; without one it is asked."""
    version = ("metadata", "resourceVersion")
    if world.begun and text_at(world.handle, *version) == text_at(world.begun_upon, *version):
        yield TakeBack(handle=world.handle, definitions=world.begun)


def _is_to_send(world: HandleWorld, operations: Operations) -> bool:
    """Once more where a linked resource has just changed what it lends; never what did not take effect."""
    tried = world.sent.get(operations.index, ())
    return operations.patch not in tried and len(tried) < MOST_PATCHES


def _statuses(world: HandleWorld, plan: HandlePlan) -> Iterator[Action]:
    """The handle's first; the claim's spec where its end moves."""
    handle, claim, now = world.handle, world.claim, world.question.now
    if _HANDLES_STATUS not in world.wrote:
        status = with_stalled(plan.handle_status, summed(world.faults), now)
        if first := world.to_write(PutStatus(kind=RESOURCE_HANDLE, before=handle, after={**handle, "status": status})):
            yield from first
            return
    if claim is None or plan.claim_status is None or not world.question.shown or _CLAIMS_STATUS in world.wrote:
        return
    if plan.requested_end:
        lifespan: JsonObject = {**object_at(claim, "spec", "lifespan"), "end": plan.requested_end}
        moved = with_spec(claim, lifespan=lifespan)
        if first := world.to_write(PutObject(kind=RESOURCE_CLAIM, before=claim, after=moved, what="requested end")):
            yield from first
            return
    shown = with_handles_stalled(plan.claim_status, world.faults, now, accepted=world.question.push)
    yield from world.to_write(PutStatus(kind=RESOURCE_CLAIM, before=claim, after={**claim, "status": shown}))


# --- what a person is told ---


def _notices(world: HandleWorld) -> Iterator[Notice]:
    """A fault is told when it is another than before, an end when it was cut or has moved."""
    plan = world.plan
    before = world.handle_before if world.claim_before is None else world.claim_before
    shown = " ".join(text_at(each, "message") for each in objects_at(before, "status", "conditions"))
    yield from (warning(fault.reason, fault.message) for fault in world.faults if fault.message not in shown)
    if plan.end_was_cut and plan.wish is not None and plan.end is not None:
        text = f"lifespan.end {timestamp(plan.wish.end)} is later than allowed: {timestamp(plan.end)}"
        yield warning("LifespanEndCut", text)
    if world.claim_before is not None and (text := _moved_end(world, plan)):
        reason = LIFESPAN_END_CHANGED if _shown_end(world.claim) else LIFESPAN_END_CLEARED
        yield normal(reason, text, action=LIFESPAN_EVENT_ACTION)


def _moved_end(world: HandleWorld, plan: HandlePlan) -> str:
    """What to say of a claim's end that has moved; nothing of the first one, nor of one that rolls on by itself."""
    before, after = _shown_end(world.claim_before), _shown_end(world.claim)
    rolls = plan.wish is not None and plan.wish == world.known.honoured
    if not before or before == after or rolls:
        return ""
    return f"lifespan end is {after}, was {before}" if after else f"lifespan end is cleared, was {before}"


def _shown_end(claim: JsonObject | None) -> str:
    """The end that a claim shows."""
    return text_at(claim, "status", "lifespan", "end")
