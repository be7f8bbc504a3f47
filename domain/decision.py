"""The types of a decision: a pure answer to "given this state, what should happen now?".

A lifecycle is one function `decide(world, now) -> Decision`. The loop (`domain/runner.py`) starts and cancels actions
accordingly, folds each result into the world and decides again. The actions of one decision may run in parallel; steps
that must follow each other belong to successive decisions.
"""

from __future__ import annotations

from collections import Counter
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
    """The task queues of activities. The values lack the cluster's name, which `task_queue` puts in front.

    Each area has its own queues: only its workers have the informer caches, template evaluators, batched queries and
    RBAC permissions that its activities need.
    """

    KUBE = "kube"
    AWS = "aws"
    CLAIMS = "claims-passes"
    LOAD_BALANCERS = "loadbalancers-passes"
    INSTANCES = "instances-looks"
    INSTANCES_AWS = "instances-aws"
    INSTANCES_NOTIFICATIONS = "instances-notifications"  # webhooks; a hanging webhook must not delay reactions
    THREESCALE = "threescale-passes"
    # Changes through AWS Organizations and Support, whose low call limits all accounts share. Reads use another queue,
    # because they are few: one pass over the organization at a time, and one AwaitAccount for each account in creation
    # (at most five).
    AWS_ORGANIZATION = "aws-organization"


class WhenUnwanted(StrEnum):
    CANCELLED = "cancelled"
    AWAITED = "awaited"  # the action is cancelled, and the loop waits for its outcome
    FINISHED = "finished"  # the action runs to its end


class Facts(Model):
    """A result whose fields are stored in the world's memory under the same names."""


class Earlier(Model):
    """The earlier attempts of an action that is scheduled again because its worker missed a heartbeat."""

    since: datetime  # when the action was first scheduled
    attempts: int = 0  # since then, at least this many attempts were made; each may have taken effect


class Action(Model):
    """One idempotent effect: the input of one activity, and how to run that activity.

    `slot` identifies the target of the action within its object (e.g. one region). The loop runs at most one action per
    slot, and keeps the last refusal of each slot. A running action continues while its slot is still wanted, unless
    `superseded_by` says otherwise. If a decision has two actions with the same slot, the second one waits for the next
    decision.

    `title` is the action's line in the timeline and in `plan`; it may name fields in braces (`create port {name}`).
    `slot_by` names the field whose value becomes part of the slot. `learns` is added to the world's memory when the
    action succeeds.
    """

    activity: ClassVar[str]
    title: ClassVar[str] = ""
    slot_by: ClassVar[str] = ""
    learns: ClassVar[Mapping[str, object]] = {}
    queue: ClassVar[str] = Queue.KUBE  # a `Queue`, or a queue of an external area
    result: ClassVar[type[Model] | None] = None
    start_to_close: ClassVar[timedelta] = timedelta(seconds=60)
    # If the worker sends no heartbeat for this long, the action is scheduled again, with twice the timeout. Quick
    # actions end before their first heartbeat. The timeout is long enough for a worker and a Temporal server that each
    # have only a twentieth of a core.
    heartbeat: ClassVar[timedelta] = timedelta(seconds=20)
    # The server's limit for all attempts together.
    schedule_to_close: ClassVar[timedelta | None] = None
    # The server's pauses between retries of temporary errors (throttled, unavailable, pending), unless the error gives
    # a delay.
    first_retry: ClassVar[timedelta] = timedelta(seconds=1)
    longest_retry: ClassVar[timedelta] = timedelta(minutes=1)
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.CANCELLED
    # Started only when no other action of the object runs: it depends on their outcome, or ends the lifecycle.
    last: ClassVar[bool] = False
    # True: within a pass, such actions run one after the other, because a later one may depend on an earlier one.
    in_turn: ClassVar[bool] = False
    # A local activity: the workflow's own worker runs it within the workflow task. It is quick and costs one event.
    local: ClassVar[bool] = False
    # A read that may last for days and can be restarted at any time; it does not delay continue-as-new.
    renewable: ClassVar[bool] = False
    # A person waits for it, so it has priority in its queue.
    urgent: ClassVar[bool] = False
    # It changes nothing, so it also runs in a dry run and while the object is held.
    reads: ClassVar[bool] = False
    # Observe again after it, instead of folding its result.
    observed_after: ClassVar[bool] = False
    # False: if the action is refused as Conflict or Absent, no new observation follows. Its `refuse` method then has to
    # discard what earlier actions have read.
    outdates: ClassVar[bool] = True
    # Temporary errors that the decision handles itself: the server does not retry them.
    reaches_decision: ClassVar[tuple[ErrorType, ...]] = ()

    earlier: Earlier | None = None

    @property
    def slot(self) -> str:
        return f"{self.activity}/{getattr(self, self.slot_by)}" if self.slot_by else self.activity

    @property
    def summary(self) -> str:
        return self.title.format(**self.__dict__) or self.activity

    @property
    def most_attempts(self) -> int:
        """The number of attempts after which the decision gets a temporary error; with 0, Temporal retries for ever."""
        # With 0, a local activity is tried once (`durable_driver.py`).
        return 0

    def superseded_by(self, wanted: Action) -> bool:
        """Whether this running action is cancelled in favour of `wanted`, which then starts in the same slot."""
        return False

    def fold(self, world: W, result: Model | None) -> W:
        facts = {**self.learns, **(vars(result) if isinstance(result, Facts) else {})}
        return world.learn(**facts) if facts else world

    def cancelled(self, world: W) -> W:
        """The world after the action was cancelled. The action may have had a part of its effect."""
        return world

    def refuse(self, world: W, refusal: Refusal) -> W:
        return world.model_copy(update={"refusals": {**world.refusals, self.slot: refusal}})


class World(Model):
    """The complete input of a decision: the observation, and the memory of results and messages.

    `hold` says why nothing may be changed now (observe mode, the replaced operator's lease, a pause). While it is set,
    the loop starts only reads. `recorded` maps digests of notices to the times at which they were recorded as Events.
    For a notice with `each_time`, the time is None, and the entry lasts only while the notice is reported. `news` are
    notices of results, not yet recorded as Events.
    """

    key: Key
    exists: bool = True
    hold: str = ""
    refusals: dict[str, Refusal] = {}
    unsure: bool = False  # an answer was lost: observe the remote side directly, and search before creating anything
    known: Model = Model()  # the area's memory: facts from results and messages that cannot be observed
    recorded: dict[str, datetime | None] = {}
    news: tuple[Notice, ...] = ()

    def recall(self, before: Self) -> Self:
        names = ("refusals", "known", "recorded", "news")
        return self.model_copy(update={name: getattr(before, name) for name in names})

    def learn(self, **facts: object) -> Self:
        return self.model_copy(update={"known": self.known.model_copy(update=facts)})

    def with_news(self, *notices: Notice) -> Self:
        return self.model_copy(update={"news": (*self.news, *notices)})

    def written(self, patch: dict[str, object], resource_version: str, *, gone: bool = False) -> Self:
        """Apply Perdure's own write of the object. Only worlds that contain their object implement this."""
        raise NotImplementedError(f"{type(self).__name__} holds no object to write")

    def refused(self, slot: str, *types: ErrorType) -> Refusal | None:
        refusal = self.refusals.get(slot)
        return refusal if refusal and (not types or refusal.type in types) else None


class Outcome(StrEnum):
    """How far a lifecycle has come. A `failed` lifecycle can be retried (`perdure retry`)."""

    WORKING = "working"
    SETTLED = "settled"
    WAITING = "waiting"  # a change outside Perdure can end it, so each wake leads to a new decision
    FAILED = "failed"  # until a person retries, or makes the edit that `waits_for` names
    GONE = "gone"  # the object no longer exists: the workflow ends


class Decision(Model):
    """What a lifecycle is to do next.

    `phase` is one of the kind's phases, which `perdure list` shows; `why` is a sentence for people. `deadline` (UTC) is
    the next time at which the decision may change without a wake, and `at_deadline` says what happens then. If another
    lifecycle handles the deadline for many objects, this lifecycle decides again only when `patience` has passed since
    the deadline.
    """

    phase: str
    outcome: Outcome
    why: str
    actions: tuple[Action, ...] = ()
    waits_for: tuple[str, ...] = ()
    deadline: datetime | None = None
    at_deadline: str = ""
    patience: timedelta = timedelta(0)
    owner: str = ""  # Kind/namespace/name of the object's owner, shown in lists
    notices: tuple[Notice, ...] = ()
    # Set by a pass that is one activity. `planned` has a line for each action that a dry run or a hold prevented.
    # `blocked` has the slots whose actions are still refused.
    planned: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    def doing(self, *actions: Action) -> Self:
        return self.model_copy(update={"actions": actions})

    @property
    def gone(self) -> bool:
        return self.outcome is Outcome.GONE

    @property
    def summaries(self) -> tuple[str, ...]:
        lines = Counter(action.summary for action in self.actions if not action.reads)
        return (*(line if times == 1 else f"{line} ({times} times)" for line, times in lines.items()), *self.planned)


def earliest(moments: Sequence[datetime | None]) -> datetime | None:
    known = [moment for moment in moments if moment is not None]
    return min(known) if known else None
