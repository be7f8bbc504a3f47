"""The loop that every lifecycle runs: observe, decide, make the decision true, wait.

    woken --> observe (one activity) --> decide (pure) --> start what is wanted, cancel what is not
                 ^                          ^   |
                 |                          |   +-- an action ends: fold its result into the world
                 +--- wake ------ wait -----+       (a deadline passes: only decide again)

Wakes only set a flag, cleared before the observation: a wake that comes meanwhile leads to one more look. Actions are
started when a decision wants them and cancelled when a later one does not; every wait for an action is therefore a race
with wakes, deletion and the deadline. One whose worker is not heard of in time is scheduled again at once, and that
worker is given longer: a dead one is noticed soon, and a slow one comes to an end. There is one timer at a time, for
the nearest moment that matters.

What an action's failure means is the decision's business; the loop only keeps it (`World.refusals`) and starts
that action again when its time has come, or at once when somebody wakes the object. A failure outside our classes is a
bug: shown as phase `Bug` and tried again by the same growing delay.

Continue-as-new carries what cannot be observed again (`domain.carry.Carry`) and happens only while nothing runs; looks
that can be renewed (`Action.renewable`) are given up for it. It ends a history that has grown long, and is how a
lifecycle goes over to another version of the workers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError,
    TimeoutType,
    is_cancelled_exception,
)

with workflow.unsafe.imports_passed_through():
    from domain.carry import Carry
    from domain.decision import Action, Decision, Earlier, Outcome, Queue, World, earliest
    from domain.identity import Key, task_queue
    from domain.levers import PAUSED, RETRY
    from domain.refusal import ErrorType, Refusal
    from domain.why import Hindrance, Why
    from domain.writes import JsonPatch, LeverPatch, Patch
    from engine.temporal import OP_DEADLINE, OP_OWNER, OP_PHASE, OP_WAITS_FOR

W = TypeVar("W", bound=World)

# Histories stay short, so that a run that has left the cache replays in well under a second.
LONGEST_HISTORY = 600
OBSERVE = "observe"
BUG = "Bug"  # the phase
SUMMARY_LENGTH = 190
# A local activity's own error comes as it is.
FAILED = (ActivityError, ApplicationError)
# The least time from one look to the next where deadlines ask for looks: a deadline that stays in the past is no spin.
LOOK_REST = timedelta(seconds=1)
# How the server names a missed heartbeat in a retry policy: the workflow retries it, as only that can give it longer.
MISSED_HEARTBEAT = "TemporalTimeout:Heartbeat"
LONGEST_HEARTBEAT = timedelta(minutes=2)
# For so long after a missed heartbeat the lifecycle's actions are given longer.
SLOW_FOR = timedelta(minutes=10)


@dataclass
class Running:
    """An action under way."""

    action: Action
    handle: workflow.ActivityHandle[Any]
    since: datetime
    cancelled: bool = False


@dataclass
class Timer:
    """The one timer."""

    until: datetime
    task: asyncio.Task[None]


class Entity(Generic[W]):
    """A lifecycle. A subclass says how to observe, how to decide, and declares `run`.

    `looks_at_deadline` is for lifecycles whose pass is one activity: their deadline asks for a new pass.
    """

    looks_at_deadline: ClassVar[bool] = False
    has_object: ClassVar[bool] = True  # False: it stands for no custom resource that levers could be written on
    retryable_phases: ClassVar[Container[str]] = ()  # what is at fault there may have been mended and nobody told of it

    def __init__(self, carry: Carry, before: W, decide: Callable[[W, datetime], Decision]) -> None:
        self.key: Key = carry.key
        self.runs = carry.runs
        memory = type(before.known).model_validate(carry.known)
        self.world: W = before.model_copy(update={"known": memory, "refusals": carry.refusals})
        self.decision: Decision | None = None
        self.dirty = carry.world is None  # a new run looks, unless it is told what somebody has just seen
        if carry.world is not None:
            self.world = type(before).model_validate(carry.world).recall(self.world)
        self._decide = decide
        self.woken = True  # whether the look under way was asked for; False: only a moment has come
        self._woken = self.dirty
        self._told = False  # a message has changed the world
        self._unheard = carry.world is not None  # what was told has not been decided upon yet
        self._eager: set[str] = set()  # refused slots that may be tried again at once
        self._running: dict[str, Running] = {}
        self._timer: Timer | None = None
        self._missed_heartbeats = 0  # one after the other, each within `SLOW_FOR` of the one before
        self._missed_heartbeat_at: datetime | None = None
        self._looked_at: datetime | None = None
        self._shown: tuple[object, ...] = ()
        self._looks = 0  # begun so far
        self._looked = 0  # ended so far, whether anything was seen or not

    @property
    def rest(self) -> timedelta:
        """The least time between two observations: for kinds that many others wake."""
        return timedelta(0)

    @property
    def gather(self) -> timedelta:
        """How long a wake waits for others that come with it, so that one observation serves them all."""
        return timedelta(0)

    def observation(self, *, dry_run: bool = False) -> Action:
        """The activity that observes (or, where a pass is one activity, does the whole pass)."""
        raise NotImplementedError

    # --- the loop ---

    async def live(self) -> None:
        """Run until the object is gone."""
        while True:
            if self.dirty and self._may_move_at_once:
                self._end_run()
            if self.dirty:
                await self._look()
            decision = self._decide(self.world, workflow.now())
            self.decision = decision
            self._show(decision)
            self._make_true(decision)
            self._unheard = False
            if decision.gone and not self._running:
                return
            if self._grown_old():
                # A handler may itself wait for a look.
                await workflow.wait_condition(lambda: workflow.all_handlers_finished() or self.dirty)
                if workflow.all_handlers_finished():
                    self._end_run()
                continue
            await self._wait(decision)
            self._fold_what_ended()

    async def _look(self) -> None:
        """Observe, and recall what observing cannot show."""
        if self._looked_at:
            rest = self._looked_at + self.rest - workflow.now() if self.rest else timedelta(0)
            pause = max(rest, self.gather if self._woken else timedelta(0))
            if pause > timedelta(0):
                await workflow.sleep(pause, summary="wait for further changes")
        self.dirty = False  # before the read, never after
        self._looks += 1
        self.woken, self._woken = self._woken, False
        if self.woken:
            self._eager = set(self.world.refusals)
        action = self.observation()
        self._looked_at = workflow.now()
        try:
            seen = cast("W", await self._run(action, self.told_of_look(action)))
        except FAILED as error:
            if is_cancelled_exception(error):
                raise
            refusal = self._refusal(OBSERVE, error)
            self.world = self.world.model_copy(update={"refusals": {**self.world.refusals, OBSERVE: refusal}})
            self._woken = self._woken or self.woken  # what was asked for has not been looked at yet
            self._looked = self._looks
            return
        self.world = self._without_refusal(seen.recall(self.world), OBSERVE)
        self._looked = self._looks
        self.observed()

    def told_of_look(self, look: Action) -> str:
        """What the timeline says of a look."""
        return look.summary

    def observed(self) -> None:
        """Told after each observation, for lifecycles that go on from what it brought."""

    def _make_true(self, decision: Decision) -> None:
        """Start what the decision wants, cancel what it does not; hold still where nothing may be changed."""
        if OBSERVE in self.world.refusals:
            return  # blind: nothing begins, and what runs is left alone
        wanted: dict[str, Action] = {}
        for action in () if self.world.hold else decision.actions:
            if not (action.renewable and self._is_long):
                wanted.setdefault(action.slot, action)
        for slot, running in self._running.items():
            if slot not in wanted and not running.cancelled:
                running.cancelled = True
                running.handle.cancel()
        for slot, action in wanted.items():
            if action.last and self._running:
                continue  # what still runs may leave something behind that changes the decision
            if slot not in self._running and self._may_start(slot):
                self._eager.discard(slot)
                self._running[slot] = Running(action, self._start(action), since=workflow.now())

    def _may_start(self, slot: str) -> bool:
        refusal = self.world.refusals.get(slot)
        return refusal is None or slot in self._eager or workflow.now() >= refusal.retry_at

    async def _wait(self, decision: Decision) -> None:
        """Until something ends, somebody wakes, or the nearest moment comes."""
        self._set_timer(decision)
        self.dirty = self.dirty or self._overdue(decision)
        await workflow.wait_condition(self._has_news)
        self._told = False
        if self._timer and self._timer.task.done():
            self._timer = None
            if self.looks_at_deadline or self._refused(decision):
                self.dirty = True  # what was refused is looked at again before it is tried again

    def _deadline(self, decision: Decision) -> datetime | None:
        """When to act; where that is a look, not sooner after the last look than looks may follow."""
        moment = decision.deadline and decision.deadline + decision.patience
        if moment and self.looks_at_deadline and self._looked_at:
            return max(moment, self._looked_at + LOOK_REST)
        return moment

    def _overdue(self, decision: Decision) -> bool:
        """True if the moment for the next look was over when the last look's answer came: a worker died with it."""
        deadline = self._deadline(decision)
        looks = self.looks_at_deadline and OBSERVE not in self.world.refusals
        return looks and deadline is not None and deadline <= workflow.now()

    def _refused(self, decision: Decision) -> list[str]:
        """The refused slots that are still wanted and do not run."""
        return [slot for slot in _hindering(self.world, decision) if slot not in self._running]

    def _has_news(self) -> bool:
        timer_fired = self._timer is not None and self._timer.task.done()
        return self.dirty or self._told or timer_fired or any(r.handle.done() for r in self._running.values())

    def _set_timer(self, decision: Decision) -> None:
        """Keep the running timer if it is for the same moment: a new one for each result would fill the history."""
        now = workflow.now()
        retries = {slot: self.world.refusals[slot].retry_at for slot in self._refused(decision)}
        moments = [moment for moment in (self._deadline(decision), *retries.values()) if moment and moment > now]
        until = earliest(moments)
        if self._timer and self._timer.until != until:
            self._timer.task.cancel()
            self._timer = None
        if until and self._timer is None:
            task = asyncio.create_task(workflow.sleep(until - now, summary=_timer_summary(decision, until, retries)))
            self._timer = Timer(until, task)

    def _fold_what_ended(self) -> None:
        """Fold results into the world in the order in which the actions were started."""
        for slot, running in [item for item in self._running.items() if item[1].handle.done()]:
            del self._running[slot]
            action = running.action
            try:
                result = running.handle.result()
            except (*FAILED, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) or is_cancelled_exception(error):
                    continue
                if _missed_heartbeat(error) and not running.cancelled:
                    again = self._again(action, running.since)
                    self._running[slot] = Running(again, self._start(again), since=workflow.now())
                    continue
                refusal = self._refusal(slot, error)
                self.world = action.refuse(self.world, refusal)
                if refusal.type in (ErrorType.CONFLICT, ErrorType.ABSENT):
                    self.dirty = True  # what was believed does not hold any more
                continue
            self.world = action.fold(self._without_refusal(self.world, slot), result)
            self.dirty = self.dirty or action.observed_after

    async def _run(self, action: Action, told: str = "", *, queue: Queue | None = None) -> Any:
        """The result of an action that is waited for."""
        while True:
            since = workflow.now()
            try:
                return await self._start(action, told, queue=queue)
            except FAILED as error:
                if not _missed_heartbeat(error):
                    raise
                action = self._again(action, since)

    def _again(self, action: Action, since: datetime) -> Action:
        """The action once more, after a missed heartbeat: it knows that it may have had its effect."""
        self._missed_heartbeats = self._missed_heartbeats + 1 if self._is_slow else 1
        self._missed_heartbeat_at = workflow.now()
        before = action.earlier or Earlier(since=since)
        return action.model_copy(update={"earlier": Earlier(since=before.since, attempts=before.attempts + 1)})

    @property
    def _is_slow(self) -> bool:
        missed = self._missed_heartbeat_at
        return missed is not None and workflow.now() < missed + SLOW_FOR

    def _heartbeat_of(self, action: Action) -> timedelta:
        """The action's own, doubled for each that was missed lately."""
        if not self._is_slow:
            return action.heartbeat
        longer: timedelta = action.heartbeat * 2**self._missed_heartbeats
        return max(action.heartbeat, min(longer, LONGEST_HEARTBEAT))

    def _start(self, action: Action, told: str = "", *, queue: Queue | None = None) -> workflow.ActivityHandle[Any]:
        summary = (told or action.summary)[:SUMMARY_LENGTH]
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
        awaited = action.awaited_when_cancelled
        return workflow.start_activity(
            action.activity,
            action,
            task_queue=task_queue((queue or action.queue).value, self.key.cluster),
            result_type=action.result,
            start_to_close_timeout=action.start_to_close,
            schedule_to_close_timeout=action.schedule_to_close,
            heartbeat_timeout=self._heartbeat_of(action),
            retry_policy=RetryPolicy(
                initial_interval=action.first_retry,
                maximum_interval=max(action.first_retry, action.longest_retry),
                maximum_attempts=action.most_attempts,
                non_retryable_error_types=[MISSED_HEARTBEAT],
            ),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
            if awaited
            else workflow.ActivityCancellationType.TRY_CANCEL,
            summary=summary,
        )

    def _refusal(self, slot: str, error: ActivityError | ApplicationError) -> Refusal:
        before = self.world.refusals.get(slot)
        cause = error.cause if isinstance(error, ActivityError) else error
        type_, code, message = ErrorType.UNAVAILABLE, "", str(cause or error)
        if isinstance(cause, ApplicationError):
            type_ = ErrorType(cause.type) if cause.type in set(ErrorType) else ErrorType.BUG
            code, message = (str(cause.details[0]) if cause.details else ""), cause.message
        return Refusal(
            type=type_,
            message=message,
            code=code,
            at=workflow.now(),
            attempts=before.attempts + 1 if before else 1,
        )

    @staticmethod
    def _without_refusal(world: W, slot: str) -> W:
        if slot not in world.refusals:
            return world
        rest = {name: refusal for name, refusal in world.refusals.items() if name != slot}
        return world.model_copy(update={"refusals": rest})

    @property
    def _is_long(self) -> bool:
        """True when the run should end: looks that can be renewed are given up, and the next run begins them."""
        info = workflow.info()
        long = info.is_continue_as_new_suggested() or info.get_current_history_length() > LONGEST_HISTORY
        return long or self._moves

    @property
    def _moves(self) -> bool:
        """True once another version of the workers is current: the next run begins there (engine.worker_versions)."""
        return workflow.info().is_target_worker_deployment_version_changed()

    @property
    def _may_move_at_once(self) -> bool:
        """True where the next run can look in this one's place, and nothing said meanwhile would be lost by that."""
        return self._moves and not (self._running or self._unheard) and workflow.all_handlers_finished()

    def _end_run(self) -> NoReturn:
        upgrade = workflow.ContinueAsNewVersioningBehavior.AUTO_UPGRADE
        workflow.continue_as_new(self._carry(), initial_versioning_behavior=upgrade if self._moves else None)

    def _grown_old(self) -> bool:
        return self._is_long and not self._running

    def _carry(self) -> Carry:
        return Carry(
            key=self.key,
            known=self.world.known.model_dump(mode="json"),
            refusals=self.world.refusals,
            runs=self.runs + 1,
        )

    # --- what people see ---

    def _show(self, decision: Decision) -> None:
        """The search attributes when they change, and the current details."""
        phase = self._phase(decision)
        shown = (phase, decision.waits_for, decision.deadline, decision.owner)
        if shown != self._shown:
            self._shown = shown
            workflow.upsert_search_attributes(
                [
                    OP_PHASE.value_set(phase),
                    OP_WAITS_FOR.value_set(list(decision.waits_for)),
                    OP_DEADLINE.value_set(decision.deadline) if decision.deadline else OP_DEADLINE.value_unset(),
                    OP_OWNER.value_set(decision.owner) if decision.owner else OP_OWNER.value_unset(),
                ]
            )
        workflow.set_current_details(details(self._why()))

    def _phase(self, decision: Decision) -> str:
        """The decision's, unless a bug of ours hinders what is wanted."""
        if _has_bug(_hindering(self.world, decision)):
            return BUG
        # Histories from before this patch go on showing a bug in what has been given up since.
        if _has_bug(self.world.refusals) and not workflow.patched("bugs-that-hinder"):
            return BUG
        return decision.phase

    def _why(self) -> Why:
        return self._told_about(self.world, self.decision)

    def _told_about(self, world: W, decision: Decision | None) -> Why:
        if decision is None:
            return Why(object=self.key.path, phase="Unknown", outcome=Outcome.WORKING.value, why="not observed yet")
        return Why(
            object=self.key.path,
            phase=decision.phase,
            outcome=decision.outcome.value,
            why=decision.why,
            waits_for=decision.waits_for,
            deadline=decision.deadline,
            at_deadline=decision.at_deadline,
            hold=world.hold,
            running=tuple(running.action.summary for running in self._running.values()),
            planned=(*(action.summary for action in decision.actions), *decision.planned),
            hindrances=tuple(
                Hindrance(
                    action=slot,
                    type=refusal.type.value,
                    message=refusal.message,
                    attempts=refusal.attempts,
                    retry_at=refusal.retry_at,
                )
                for slot, refusal in _hindering(world, decision).items()
            ),
            owner=decision.owner,
        )

    @workflow.query(description="How it stands, what it waits for, until when, and what hinders it.")
    def why(self) -> Why:
        """How it stands."""
        return self._why()

    # --- a person's levers ---

    @workflow.signal(description="Look again: harmless at any time.")
    def wake(self) -> None:
        """Look again."""
        self._woken = True
        self.dirty = True

    def tell(self, world: W) -> None:
        """For message handlers of the areas: the world has become this one by a message."""
        self.world = world
        self._told = self._unheard = True

    @property
    def up_to_date(self) -> bool:
        """Whether the last look saw everything, and nobody has spoken since it began."""
        return not self.dirty and self._looks == self._looked and OBSERVE not in self.world.refusals

    async def look_now(self) -> bool:
        """For update handlers of the areas: have a look made that begins after this call; True if it could be."""
        wanted = self._looks + 1
        self.wake()
        await workflow.wait_condition(lambda: self._looked >= wanted)
        return OBSERVE not in self.world.refusals

    @workflow.update(
        description="Try again what has failed or was refused; refused itself when there is nothing to retry."
    )
    async def retry(self, reason: str) -> str:
        """Write a retry onto the object, where it outlives this workflow; it is honoured once."""
        await workflow.wait_condition(lambda: self.decision is not None)
        why = self._why()
        if not self.retryable(why):
            advice = "there is nothing to retry" if self.has_object else "wake it, and what hinders it is tried again"
            raise ApplicationError(
                f"{self.key.path} is {why.phase} ({why.why}): {advice}", type="NothingToRetry", non_retryable=True
            )
        await self._annotate({RETRY: f"{workflow.uuid4()} {reason}".strip()[:200]})
        return f"{self.key.path} is tried again"

    @workflow.signal(
        name="retry", description="The retry update as a signal; no effect where there is nothing to retry."
    )
    async def retry_signal(self, reason: str = "from the web UI") -> None:
        """As the update; without effect where there is nothing to retry."""
        await workflow.wait_condition(lambda: self.decision is not None)
        if self.retryable(self._why()):
            await self._try_to_annotate({RETRY: f"{workflow.uuid4()} {reason}".strip()[:200]})

    @workflow.signal(name="retry_now", description="The signal retry by its former name.")
    async def retry_now_signal(self, reason: str = "from the web UI") -> None:
        """As `retry`."""
        await self.retry_signal(reason)

    def retryable(self, why: Why) -> bool:
        """True where a person's retry means something; without an object to write it onto a wake is all it needs."""
        standing = why.outcome == Outcome.FAILED or why.phase in self.retryable_phases
        return self.has_object and (standing or bool(why.hindrances))

    @workflow.update(description="Hold everything: nothing outside is changed until it is resumed.")
    async def pause(self, reason: str = "") -> str:
        """Write the pause onto the object."""
        await self._annotate({PAUSED: "true"})
        return f"{self.key.path} is paused"

    @workflow.update(description="Go on after a pause.")
    async def resume(self, reason: str = "") -> str:
        """Take the pause off the object."""
        await self._annotate({PAUSED: None})
        return f"{self.key.path} goes on"

    @workflow.signal(name="pause", description="The pause update as a signal, which waits for no answer.")
    async def pause_signal(self, reason: str = "") -> None:
        """As the update."""
        await self._try_to_annotate({PAUSED: "true"})

    @workflow.signal(name="resume", description="The resume update as a signal, which waits for no answer.")
    async def resume_signal(self, reason: str = "") -> None:
        """As the update."""
        await self._try_to_annotate({PAUSED: None})

    @workflow.signal(name="pause_now", description="The signal pause by its former name.")
    async def pause_now_signal(self) -> None:
        """As `pause`."""
        await self.pause_signal()

    @workflow.signal(name="resume_now", description="The signal resume by its former name.")
    async def resume_now_signal(self) -> None:
        """As `resume`."""
        await self.resume_signal()

    @workflow.update(description="Look now and say what would be done; nothing is done by asking.")
    async def plan(self) -> Why:
        """Observe beside the loop, and decide."""
        seen = cast("W", await self._run(self.observation(dry_run=True)))
        world = seen.recall(self.world)
        return self._told_about(world, self._decide(world, workflow.now()))

    async def _try_to_annotate(self, annotations: dict[str, str | None]) -> None:
        """For signals, which answer nobody: what cannot be written stands in the timeline and ends nothing.

        What passes by itself (an outage, a pause of the area) is outlasted: nobody would know to send it again.
        """
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
        lever = write(key=self.key, patch=patch, note=f"annotate {', '.join(annotations)}")
        # Where the object is looked at: workers of other areas may not be allowed to write it.
        await self._run(lever, queue=self.observation().queue)
        self.wake()


def _hindering(world: World, decision: Decision) -> dict[str, Refusal]:
    """The refusals of what is still wanted, by slot; the rest is given up."""
    wanted = {OBSERVE, *(action.slot for action in decision.actions)}
    return {slot: refusal for slot, refusal in world.refusals.items() if slot in wanted}


def _missed_heartbeat(error: BaseException) -> bool:
    cause = error.cause if isinstance(error, ActivityError) else None
    return isinstance(cause, TimeoutError) and cause.type is TimeoutType.HEARTBEAT


def _has_bug(refusals: Mapping[str, Refusal]) -> bool:
    return any(refusal.type is ErrorType.BUG for refusal in refusals.values())


def _timer_summary(decision: Decision, until: datetime, retries: dict[str, datetime]) -> str:
    """What the timeline says of the timer: until when, and what then."""
    then = decision.at_deadline or "decide again"
    if decision.deadline and decision.patience and until == decision.deadline + decision.patience:
        seconds = decision.patience.total_seconds()
        return f"until {decision.deadline:%H:%M:%S} UTC, then: {then}; by itself {seconds:g} s later"[:SUMMARY_LENGTH]
    if until != decision.deadline and until in retries.values():
        then = f"try again {', '.join(slot for slot, moment in retries.items() if moment == until)}"
    return f"until {until:%H:%M:%S} UTC, then: {then}"[:SUMMARY_LENGTH]


def details(why: Why) -> str:
    """The current details in the web UI, as markdown."""
    lines = [f"**{why.phase}**: {why.why}"]
    if why.hold:
        lines.append(f"Held: {why.hold}. Would do: {', '.join(why.planned) or 'nothing'}.")
    if why.waits_for:
        until = f" until {why.deadline:%Y-%m-%d %H:%M:%S} UTC" if why.deadline else ""
        lines.append(f"Waits for {', '.join(why.waits_for)}{until}.")
        if not why.deadline and why.outcome == Outcome.WAITING.value:
            lines.append("There is no deadline: it waits as long as it takes.")
    elif why.deadline:
        lines.append(f"Deadline {why.deadline:%Y-%m-%d %H:%M:%S} UTC.")
    if why.deadline and why.at_deadline:
        lines.append(f"Then: {why.at_deadline}.")
    lines += [f"- running: {summary}" for summary in why.running]
    lines += [
        f"- refused ({h.type}, attempt {h.attempts}): {h.message}; next try {h.retry_at:%H:%M:%S} UTC"
        for h in why.hindrances
    ]
    return "\n\n".join(lines[:30])
