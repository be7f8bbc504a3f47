"""The durable driver of a lifecycle: observe, decide, act, wait.

    woken --> observe (one activity) --> decide (pure) --> start what is wanted, cancel what is not
                 ^                          ^   |
                 |                          |   +-- an action ends: fold its result into the world
                 +--- wake ------ wait -----+       (a deadline passes: only decide again)

`domain/runner.py` says which actions start and stop. Here each action is an activity, and each wait ends when an
activity ends, a wake comes, or the nearest deadline is reached. An action that misses its heartbeat is scheduled again
at once with a longer timeout: a dead worker is noticed soon, and a slow worker can finish.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, TypeVar, cast

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, TimeoutError, TimeoutType, is_cancelled_exception

from domain.carried_memory import Carry, newest
from domain.control_annotations import PAUSED, RETRY
from domain.decision import Action, Decision, Earlier, Outcome, WhenUnwanted, World
from domain.identity import Key, task_queue
from domain.refusal import ErrorType, Refusal
from domain.runner import OBSERVE, SUMMARY_LENGTH, State, Step
from domain.urgency import is_urgent_activity
from domain.why import Why, details, explain
from domain.writes import JsonPatch, LeverPatch, Patch, Write
from engine.temporal import OP_DEADLINE, OP_OWNER, OP_PHASE, OP_WAITS_FOR, URGENT, listed
from workflows import continue_as_new

W = TypeVar("W", bound=World)

# What a failed action raises: ActivityError for an activity, the error itself for a local activity.
FAILED = (ActivityError, ApplicationError)
# The server's name for a missed heartbeat: the workflow itself retries the activity, with a longer timeout.
MISSED_HEARTBEAT = "TemporalTimeout:Heartbeat"
LONGEST_HEARTBEAT = timedelta(minutes=2)
# `plan` runs at most this many rounds of reads, and then shows what it knows so far.
MOST_READS = 10
# For how long after a missed heartbeat the lifecycle's actions get longer heartbeat timeouts.
SLOW_FOR = timedelta(minutes=10)


@dataclass
class Running:
    action: Action
    handle: workflow.ActivityHandle[Any]
    since: datetime


@dataclass
class Timer:
    until: datetime
    task: asyncio.Task[None]


class Entity(Generic[W]):
    """One object's lifecycle, which runs this module's loop.

    If `looks_at_deadline` is set, it observes again at each deadline; kinds whose pass is one activity need this.
    """

    observe: ClassVar[type[Action]]
    looks_at_deadline: ClassVar[bool] = False
    has_object: ClassVar[bool] = True  # False: there is no custom resource that could be annotated
    retryable_phases: ClassVar[Container[str]] = ()  # phases whose cause a person can repair without causing an event

    def __init__(self, carry: Carry, before: W, decide: Callable[[W, datetime], Decision]) -> None:
        self.key: Key = carry.key
        self._seen = dict(carry.seen)
        memory = type(before.known).model_validate(carry.known)
        world: W = before.model_copy(update={"known": memory, "refusals": carry.refusals, "recorded": carry.recorded})
        carried = carry.world is not None  # a run begins with an observation, unless its start carries a world
        if carried:
            world = type(before).model_validate(carry.world).recall(world)
        self.state: State[W] = State(
            world, observes_at_deadline=self.looks_at_deadline, dirty=not carried, asked=not carried
        )
        self.decision: Decision | None = None
        self._decide = decide
        self._world_replaced = False  # a message has changed the world
        self._unheard = carried  # a carried or signalled world has not been decided upon yet
        self._activities: dict[str, Running] = {}
        self._timer: Timer | None = None
        self._missed_heartbeats = 0  # missed in a row, each within `SLOW_FOR` of the previous one
        self._missed_heartbeat_at: datetime | None = None
        self._shown = _shown_at_start() if carried else ()
        self._looks = 0  # observations started
        self._looks_ended = 0  # observations ended, successfully or not

    @property
    def world(self) -> W:
        return self.state.world

    @world.setter
    def world(self, world: W) -> None:
        self.state = self.state.copy(world=world)

    @property
    def dirty(self) -> bool:
        return self.state.dirty

    @dirty.setter
    def dirty(self, dirty: bool) -> None:
        self.state = self.state.copy(dirty=dirty)

    @property
    def woken(self) -> bool:
        """Whether anything but a deadline has caused the observation."""
        return self.state.woken

    @property
    def rest(self) -> timedelta:
        """The least time between two observations, for kinds that many objects wake."""
        return timedelta(0)

    @property
    def gather(self) -> timedelta:
        """How long a wake waits for further wakes, so that one observation serves all of them."""
        return timedelta(0)

    def observation(self, *, dry_run: bool = False) -> Action:
        """The activity that observes the object; it may make the whole pass. Its input is taken from `offered`."""
        offered = {**self.offered(), "dry_run": dry_run}
        fields = self.observe.model_fields
        return self.observe(**{name: value for name, value in offered.items() if name in fields})

    def offered(self) -> dict[str, object]:
        return {
            "key": self.key,
            "memory": self.world.known,
            "woken": self.woken,
            "outdated": self.state.outdated,
            "seen": dict(self._seen),
        }

    def begin(self) -> None:
        """A hook for subclasses, called after `__init__`."""

    async def life(self) -> None:
        await self.live()

    # --- the loop ---

    async def live(self) -> None:
        while True:
            if self.dirty and not (self._activities or self._unheard) and continue_as_new.may_leave_observation():
                continue_as_new.next_run(self._carry())
            if self.dirty:
                await self._look()
            self.state, step = self.state.step(self._decide, workflow.now(), ending=continue_as_new.is_due())
            self.decision = step.decision
            self._show(step.decision)
            self._make_true(step)
            self._unheard = False
            if step.decision.gone and not self._activities:
                return
            if continue_as_new.is_due() and not self._activities:
                if await continue_as_new.handlers_finished(unless=lambda: self.dirty):
                    continue_as_new.next_run(self._carry())
                continue
            await self._wait(step)
            self._fold_what_ended()

    async def _look(self) -> None:
        now = workflow.now()
        if (begins := self.state.rests_until(self.rest, self.gather, now)) > now:
            await workflow.sleep(begins - now, summary="wait for further changes")
        self.state = self.state.observing(workflow.now())
        self._looks += 1
        action = self.observation()
        try:
            seen = cast("W", await self._run(action, self.summary_of_look(action), at_deadline=not self.woken))
        except FAILED as error:
            if is_cancelled_exception(error):
                raise
            self.state = self.state.not_observed(_failure(error))
            self._looks_ended = self._looks
            return
        self.state = self.state.observed(seen)
        self._looks_ended = self._looks
        self.observed()

    def summary_of_look(self, look: Action) -> str:
        return look.summary

    def observed(self) -> None:
        pass

    def _make_true(self, step: Step) -> None:
        for slot in step.cancel:
            self._activities[slot].handle.cancel()
        for action in step.start:
            self._activities[action.slot] = Running(action, self._start(action), since=workflow.now())

    async def _wait(self, step: Step) -> None:
        self._set_timer(step)
        self.dirty = self.dirty or step.overdue
        await workflow.wait_condition(self._has_news)
        self._world_replaced = False
        if self._timer and self._timer.task.done():
            self._timer = None
            self.state = self.state.moment_came(step.decision)

    def _has_news(self) -> bool:
        timer_fired = self._timer is not None and self._timer.task.done()
        return (
            self.dirty or self._world_replaced or timer_fired or any(r.handle.done() for r in self._activities.values())
        )

    def _set_timer(self, step: Step) -> None:
        """Set the timer for `step.until`, unless it is set already: a timer for each result would fill the history."""
        until = step.until
        if self._timer and self._timer.until != until:
            self._timer.task.cancel()
            self._timer = None
        if until and self._timer is None:
            task = asyncio.create_task(workflow.sleep(until - workflow.now(), summary=step.summary))
            self._timer = Timer(until, task)

    def _fold_what_ended(self) -> None:
        for slot, running in [item for item in self._activities.items() if item[1].handle.done()]:
            del self._activities[slot]
            try:
                result = running.handle.result()
            except (*FAILED, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error):
                    self.state = self.state.stopped(slot)
                elif _missed_heartbeat(error) and slot not in self.state.cancelled:
                    again = self._again(running.action, running.since)
                    self._activities[slot] = Running(again, self._start(again), since=workflow.now())
                else:
                    self.state = self.state.failed(slot, _failure(error))
                continue
            self.state = self.state.finished(slot, result)

    async def _run(self, action: Action, summary: str = "", *, at_deadline: bool = False) -> Any:
        while True:
            since = workflow.now()
            try:
                return await self._start(action, summary, at_deadline=at_deadline)
            except FAILED as error:
                if not _missed_heartbeat(error):
                    raise
                action = self._again(action, since)

    def _again(self, action: Action, since: datetime) -> Action:
        """Count a missed heartbeat. Returns the action with a note (`earlier`) that it may have taken effect."""
        self._missed_heartbeats = self._missed_heartbeats + 1 if self._is_slow else 1
        self._missed_heartbeat_at = workflow.now()
        before = action.earlier or Earlier(since=since)
        return action.model_copy(update={"earlier": Earlier(since=before.since, attempts=before.attempts + 1)})

    @property
    def _is_slow(self) -> bool:
        missed = self._missed_heartbeat_at
        return missed is not None and workflow.now() < missed + SLOW_FOR

    def _heartbeat_of(self, action: Action) -> timedelta:
        if not self._is_slow:
            return action.heartbeat
        longer: timedelta = action.heartbeat * 2**self._missed_heartbeats
        return max(action.heartbeat, min(longer, LONGEST_HEARTBEAT))

    def _start(self, action: Action, summary: str = "", *, at_deadline: bool = False) -> workflow.ActivityHandle[Any]:
        summary = (summary or action.summary)[:SUMMARY_LENGTH]
        if action.local:
            return workflow.start_local_activity(
                action.activity,
                action,
                result_type=action.result,
                start_to_close_timeout=action.start_to_close,
                retry_policy=RetryPolicy(
                    initial_interval=action.first_retry, maximum_attempts=max(1, action.most_attempts)
                ),
                summary=summary,
            )
        awaited = action.when_unwanted is WhenUnwanted.AWAITED
        return workflow.start_activity(
            action.activity,
            action,
            task_queue=task_queue(self._queue_of(action), self.key.cluster),
            result_type=action.result,
            start_to_close_timeout=action.start_to_close,
            schedule_to_close_timeout=action.schedule_to_close,
            heartbeat_timeout=self._heartbeat_of(action),
            retry_policy=RetryPolicy(
                initial_interval=action.first_retry,
                maximum_interval=max(action.first_retry, action.longest_retry),
                maximum_attempts=action.most_attempts,
                non_retryable_error_types=[MISSED_HEARTBEAT, *action.reaches_decision],
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
            if awaited
            else workflow.ActivityCancellationType.TRY_CANCEL,
            summary=summary,
            priority=URGENT if is_urgent_activity(action, at_deadline=at_deadline) else Priority.default,
        )

    def _queue_of(self, action: Action) -> str:
        """A write goes to the queue of the observation, because workers of other areas may lack the permission."""
        return self.observation().queue if isinstance(action, Write) else action.queue

    def _carry(self) -> Carry:
        return Carry(
            key=self.key,
            known=self.world.known.model_dump(mode="json"),
            refusals=self.world.refusals,
            recorded=self.world.recorded,
            seen=self._seen,
        )

    # --- what people see ---

    def _show(self, decision: Decision) -> None:
        phase = self.state.phase(decision)
        waits_for = listed(decision.waits_for)
        shown = (phase, tuple(waits_for), decision.deadline, decision.owner)
        if shown != self._shown:
            self._shown = shown
            workflow.upsert_search_attributes(
                [
                    OP_PHASE.value_set(phase),
                    OP_WAITS_FOR.value_set(waits_for),
                    OP_DEADLINE.value_set(decision.deadline) if decision.deadline else OP_DEADLINE.value_unset(),
                    OP_OWNER.value_set(decision.owner) if decision.owner else OP_OWNER.value_unset(),
                ]
            )
        workflow.set_current_details(details(self._why()))

    def _why(self) -> Why:
        return explain(self.key, self.state, self.decision)

    @workflow.query(description="The lifecycle's state, what it waits for, until when, and what was refused.")
    def why(self) -> Why:
        return self._why()

    # --- requests of people ---

    @workflow.signal(description="Reconcile now. Harmless at any time.")
    def wake(self, seen: dict[str, str] | None = None) -> None:
        """Observe again. `seen` maps kinds to the resourceVersions that the observation must reach."""
        self._seen = newest(self._seen, seen or {})
        self.state = self.state.wake()

    def replace_world(self, world: W) -> None:
        self.world = world
        self._world_replaced = self._unheard = True

    @property
    def up_to_date(self) -> bool:
        """Whether the last observation succeeded, and no message has come since it began."""
        return not self.dirty and self._looks == self._looks_ended and OBSERVE not in self.world.refusals

    async def look_now(self) -> bool:
        """Await an observation that begins now; True if it succeeded."""
        wanted = self._looks + 1
        self.wake()
        await workflow.wait_condition(lambda: self._looks_ended >= wanted)
        return OBSERVE not in self.world.refusals

    @workflow.update(description="Retry what has failed or was refused; fails if there is nothing to retry.")
    async def retry(self, reason: str) -> str:
        """Annotate the object, so that the retry outlives this workflow."""
        await workflow.wait_condition(lambda: self.decision is not None)
        why = self._why()
        if not self.retryable(why):
            advice = "there is nothing to retry" if self.has_object else "to repeat refused actions at once, wake it"
            raise ApplicationError(
                f"{self.key.path} is {why.phase} ({why.why}): {advice}", type="NothingToRetry", non_retryable=True
            )
        await self._annotate({RETRY: f"{workflow.uuid4()} {reason}".strip()[:200]})
        return "tried again"

    @workflow.signal(
        name="retry", description="The retry update as a signal; no effect where there is nothing to retry."
    )
    async def retry_signal(self, reason: str = "from the web UI") -> None:
        await workflow.wait_condition(lambda: self.decision is not None)
        if self.retryable(self._why()):
            await self._try_to_annotate({RETRY: f"{workflow.uuid4()} {reason}".strip()[:200]})

    @workflow.signal(name="retry_now", description="The former name of the signal `retry`.")
    async def retry_now_signal(self, reason: str = "from the web UI") -> None:
        await self.retry_signal(reason)

    def retryable(self, why: Why) -> bool:
        """Whether a retry has an effect. A retry annotates the object; without an object, a retry has no effect."""
        standing = why.outcome == Outcome.FAILED or why.phase in self.retryable_phases
        return self.has_object and (standing or bool(why.hindrances))

    @workflow.update(description="Pause: nothing is changed in the cluster or in a cloud until the object is resumed.")
    async def pause(self, reason: str = "") -> str:
        await self._annotate({PAUSED: "true"})
        return f"{self.key.path} is paused"

    @workflow.update(description="Resume after a pause.")
    async def resume(self, reason: str = "") -> str:
        await self._annotate({PAUSED: None})
        return f"{self.key.path} is resumed"

    @workflow.signal(name="pause", description="The pause update as a signal, which waits for no answer.")
    async def pause_signal(self, reason: str = "") -> None:
        await self._try_to_annotate({PAUSED: "true"})

    @workflow.signal(name="resume", description="The resume update as a signal, which waits for no answer.")
    async def resume_signal(self, reason: str = "") -> None:
        await self._try_to_annotate({PAUSED: None})

    @workflow.signal(name="pause_now", description="The former name of the signal `pause`.")
    async def pause_now_signal(self) -> None:
        await self.pause_signal()

    @workflow.signal(name="resume_now", description="The former name of the signal `resume`.")
    async def resume_now_signal(self) -> None:
        await self.resume_signal()

    @workflow.update(description="Observe now and say what would be done. Nothing is changed.")
    async def plan(self) -> Why:
        """Observe once, outside the lifecycle's loop, and decide without acting."""
        seen = cast("W", await self._run(self.observation(dry_run=True)))
        return await self.planned(seen, workflow.now, self._answer)

    async def planned(self, seen: W, now: Callable[[], datetime], ask: Callable[[Action], Awaitable[Any]]) -> Why:
        """What would be done after the observation `seen`. `ask` runs a read; it returns the result or a `Refusal`."""
        beside = self.state.observed(seen).copy(running={})
        for _ in range(MOST_READS):
            beside, step = beside.step(self._decide, now(), dry_run=True)
            if not step.start:
                break
            for read in step.start:
                answer = await ask(read)
                refused = isinstance(answer, Refusal)
                beside = beside.failed(read.slot, answer) if refused else beside.finished(read.slot, answer)
        return explain(self.key, beside.copy(running=self.state.running), self._decide(beside.world, now()))

    async def _answer(self, read: Action) -> Any:
        try:
            return await self._run(read)
        except FAILED as error:
            return _failure(error)

    async def _try_to_annotate(self, annotations: dict[str, str | None]) -> None:
        """Annotate the object on a signal. The sender does not wait: the write is retried during an outage or pause."""
        with contextlib.suppress(*FAILED):
            await self._annotate(annotations, Patch)

    async def _annotate(self, annotations: dict[str, str | None], write: type[Patch] = LeverPatch) -> None:
        if not self.has_object:
            raise ApplicationError(
                f"{self.key.path} has no object that could be paused; `perdure pause --area` pauses its whole area",
                type="NoObject",
                non_retryable=True,
            )
        patch: JsonPatch = {"metadata": {"annotations": annotations}}
        annotating = write(key=self.key, patch=patch, note=f"annotate {', '.join(annotations)}")
        await self._run(annotating)
        self.wake()


def _shown_at_start() -> tuple[object, ...]:
    found = workflow.info().typed_search_attributes
    if (phase := found.get(OP_PHASE)) is None:
        return ()
    return phase, tuple(found.get(OP_WAITS_FOR, ())), found.get(OP_DEADLINE), found.get(OP_OWNER, "")


def _failure(error: ActivityError | ApplicationError) -> Refusal:
    cause = error.cause if isinstance(error, ActivityError) else error
    type_, code, message, delay = ErrorType.UNAVAILABLE, "", str(cause or error), timedelta(0)
    if isinstance(cause, ApplicationError):
        type_ = ErrorType(cause.type) if cause.type in set(ErrorType) else ErrorType.BUG
        code, message = (str(cause.details[0]) if cause.details else ""), cause.message
        delay = cause.next_retry_delay or delay
    return Refusal(type=type_, message=message, code=code, at=workflow.now(), asked=delay)


def _missed_heartbeat(error: BaseException) -> bool:
    cause = error.cause if isinstance(error, ActivityError) else None
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.HEARTBEAT
