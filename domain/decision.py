"""What a decision is: the pure answer to "given what is known, what should happen now?".

A lifecycle is one function `decide(world, now) -> Decision`. The loop (`domain/runner.py`) makes the decision true:
it starts the actions that are wanted and not running, cancels those that run and are wanted no more, folds each result
into the world and decides again; when nothing is left to do it waits for a wake or for the deadline. Steps follow one
another because each decision sees what the last action brought; what can run at the same time stands in one decision.
Writing the status is an action like any other, so `plan` lists it and a decision that changes nothing writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Self, TypeVar

from domain.identity import Key
from domain.model import Model
from domain.notices import Notice
from domain.refusal import ErrorType, Refusal

W = TypeVar("W", bound="World")


class Queue(StrEnum):
    """The activity task queues by their plain names: one per API family for accounts, and those of each other area.

    An area has its own, as its activities stand on what only its own workers hold: mirrors, evaluators, questions that
    are gathered into one call, and rights in the cluster. So a worker of some areas never meets another's work.
    """

    KUBE = "kube"
    AWS = "aws"
    CLAIMS = "claims-passes"
    LOAD_BALANCERS = "loadbalancers-passes"
    INSTANCES = "instances-looks"
    INSTANCES_AWS = "instances-aws"
    THREESCALE = "threescale-passes"
    AWS_ORGANIZATION = "aws-organization"  # Organizations and Support: few calls for the whole company


class Facts(Model):
    """A result whose fields the world's memory keeps under their names."""


class Earlier(Model):
    """What came before an action that is scheduled again because nothing was heard of its worker in time."""

    since: datetime  # when it was scheduled first
    attempts: int = 0  # made since then, at least; each may have had its effect


class Action(Model):
    """One idempotent effect: the input of one activity, and how to run it.

    A subclass names its activity and says with `fold` what its result adds to the world. `slot` identifies what it does
    within its object (e.g. one region): the loop runs at most one action per slot, lets a running one finish while its
    slot is still wanted, and keeps the last refusal by slot. Of two actions of one slot in a decision the first runs;
    the next decision asks for the other.

    `title` is its line for the timeline of the web UI and for `plan`, with fields in braces (`create port {name}`);
    `slot_by` is the field that tells its slots apart. `learns` is what the world's memory keeps once it is done, beside
    the fields of a result that is `Facts`.
    """

    activity: ClassVar[str]
    title: ClassVar[str] = ""
    slot_by: ClassVar[str] = ""
    learns: ClassVar[Mapping[str, object]] = {}
    queue: ClassVar[str] = Queue.KUBE  # of the `Queue`s, or one of an area from elsewhere
    result: ClassVar[type[Model] | None] = None
    start_to_close: ClassVar[timedelta] = timedelta(seconds=60)
    # After how long it is tried elsewhere when its worker has died; what is quick never comes to a heartbeat. Long
    # enough for a worker and a Temporal that get a twentieth of a core; each time that nothing was heard all the same
    # the next heartbeat is given twice as long.
    heartbeat: ClassVar[timedelta] = timedelta(seconds=20)
    # How long the server goes on trying again, all attempts together; None: for ever.
    schedule_to_close: ClassVar[timedelta | None] = None
    # The server's retries of what passes by itself (throttled, unavailable, pending), unless the error names a delay.
    first_retry: ClassVar[timedelta] = timedelta(seconds=1)
    longest_retry: ClassVar[timedelta] = timedelta(minutes=1)
    # True: when the action is no longer wanted, wait until it has ended, because what it leaves behind must be known.
    awaited_when_cancelled: ClassVar[bool] = False
    # True: started only when nothing else of the object runs, because afterwards nothing looks after it.
    last: ClassVar[bool] = False
    # True: carried out by the worker that runs the workflow, within its task: quick, and costs the server one event.
    local: ClassVar[bool] = False
    # True: a look that may last for days and can be begun again at any moment: it never keeps a history from ending.
    renewable: ClassVar[bool] = False
    # True: a person waits for it, so it goes before others in its queue.
    urgent: ClassVar[bool] = False
    # True: it changes nothing, and is done also while the object is held and in a dry run.
    reads: ClassVar[bool] = False
    # True: what it leaves behind is not folded but observed.
    observed_after: ClassVar[bool] = False
    # False: its conflict or absence says nothing of what was observed; `refuse` forgets what earlier actions have read.
    outdates: ClassVar[bool] = True
    # Errors that pass by themselves and that the decision wants to know of at once: the server does not try again.
    reaches_decision: ClassVar[tuple[ErrorType, ...]] = ()

    earlier: Earlier | None = None

    @property
    def slot(self) -> str:
        """Its place within the object: one per activity, or one for each value of `slot_by`."""
        return f"{self.activity}/{getattr(self, self.slot_by)}" if self.slot_by else self.activity

    @property
    def summary(self) -> str:
        """A line for the timeline of the web UI and for `plan`."""
        return self.title.format(**self.__dict__) or self.activity

    @property
    def most_attempts(self) -> int:
        """After how many attempts also what passes by itself is told to the decision; 0: the server tries for ever."""
        return 0

    def fold(self, world: W, result: Model | None) -> W:
        """The world with what the action has brought: what it always `learns`, and a result's `Facts`."""
        facts = {**self.learns, **(vars(result) if isinstance(result, Facts) else {})}
        return world.learn(**facts) if facts else world

    def refuse(self, world: W, refusal: Refusal) -> W:
        """The world after the action has failed for now; by default the refusal is remembered."""
        return world.model_copy(update={"refusals": {**world.refusals, self.slot: refusal}})


class World(Model):
    """Everything one decision sees: what was observed, and what is known from results and messages.

    `hold` says why nothing may be changed now (observe mode, the replaced operator's live lease, pause), empty if free
    to act: the loop then shows the decision and starts nothing. `refusals` are the last failures by slot.
    """

    key: Key
    exists: bool = True
    hold: str = ""
    refusals: dict[str, Refusal] = {}
    unsure: bool = False  # an answer was lost: look at the other side itself, and look up before anything is created
    known: Model = Model()  # the area's memory: what results and messages brought, which observing cannot show

    def recall(self, before: Self) -> Self:
        """This newly observed world with what `before` knew."""
        return self.model_copy(update={"refusals": before.refusals, "known": before.known})

    def learn(self, **facts: object) -> Self:
        """This world with new facts known."""
        return self.model_copy(update={"known": self.known.model_copy(update=facts)})

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """This world after a write of the object itself. Areas whose worlds hold their object define it."""
        raise NotImplementedError(f"{type(self).__name__} holds no object to write")

    def refused(self, slot: str, *types: ErrorType) -> Refusal | None:
        """The slot's last failure, if it is of one of the types (of any, when none is given)."""
        refusal = self.refusals.get(slot)
        return refusal if refusal and (not types or refusal.type in types) else None


class Outcome(StrEnum):
    """How a lifecycle stands, for lists and for the `retry` lever."""

    WORKING = "working"
    SETTLED = "settled"
    WAITING = "waiting"  # an observation can lift it: decided again at each wake
    FAILED = "failed"  # no observation can lift it: left by a new generation or a person's retry
    GONE = "gone"  # the object does not exist any more: the workflow ends


class Decision(Model):
    """What should be, and what to do now to come nearer to it.

    `phase` is the kind's own word (what `kubectl get` shows). `why` is a sentence for a person. `waits_for` names what
    must happen next; `deadline` (UTC) is the nearest moment at which deciding again may give something else, and
    `at_deadline` says what happens then. Where another lifecycle does that, for many at once, this one does it only if
    it has not been done after some `patience`.
    """

    phase: str
    outcome: Outcome
    why: str
    actions: tuple[Action, ...] = ()
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    at_deadline: str = ""
    patience: timedelta = timedelta(0)
    owner: str = ""  # Kind/namespace/name of what owns the object, for lists
    notices: tuple[Notice, ...] = ()
    # Where a pass is one activity: what it would have done if it might, a line each, and the slots that stay refused.
    planned: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def doing(self, *actions: Action) -> Self:
        """The same with these actions."""
        return self.model_copy(update={"actions": actions})

    @property
    def gone(self) -> bool:
        """True when nothing is left to look after."""
        return self.outcome is Outcome.GONE


def earliest(moments: Sequence[datetime | None]) -> datetime | None:
    """The nearest of several moments that may be absent."""
    known = [moment for moment in moments if moment is not None]
    return min(known) if known else None
