"""The semantics of a lifecycle's loop, without Temporal, a clock, or input and output.

    observed --> step(decide, now): which actions start, which are cancelled, until when to wait
       ^              |
       |              +-- finished, failed, cancelled: the result is folded into the world --> step ...
       +-- a wake, a conflict, a deadline that asks for an observation

Two drivers run the steps of a `State`: `workflows/durable_driver.py` with activities and timers,
`activities/inline_driver.py` within one activity.

- A slot is the target of an action (`Action.slot`). At most one action runs in each slot. A refusal is stored by slot;
  its action is retried with backoff, or at once after a wake.
- Running actions that are no longer wanted are cancelled. Some are also cancelled in favour of another action of their
  slot (`Action.superseded_by`).
- After a Conflict or Absent refusal the object is observed again. The action is retried at once, while `second_looks`,
  which each such retry reduces by one, is above 0. At 0, only a write is retried at once, and only after its first
  refusal because the object has a newer version.
- An `Unavailable` refusal (a lost answer) sets `World.unsure`, until no action runs and no such refusal is stored.
- With `in_order`, the actions of a decision run one after the other; a refused action holds up all later ones.
- While the object is held (`World.hold`), and in a dry run, only reading actions start. While the object cannot be
  observed, no action starts, but running actions continue.
- A pass fails after `MOST_ROUNDS` rounds of actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from domain.decision import Action, Decision, WhenUnwanted, World, earliest
from domain.model import Model
from domain.notices import Notice, Reported
from domain.refusal import ErrorType, Refusal
from domain.resource import EVENTS_KEPT
from domain.writes import RecordEvents

W = TypeVar("W", bound=World)

OBSERVE = "observe"  # the slot of the observation itself
BUG = "Bug"  # the phase while a bug of Perdure blocks an action
SUMMARY_LENGTH = 190
# The least time between two observations for deadlines, so that a deadline in the past causes no busy loop.
OBSERVE_REST = timedelta(seconds=1)
# After throttling, a pass waits for its retry only if the pause is at most this long, and at most this many times in a
# row.
SHORT_PAUSE = timedelta(seconds=5)
MOST_SHORT_PAUSES = 5
# Ends a pass whose decisions never run out of actions; the longest lifecycle needs a tenth of these rounds.
MOST_ROUNDS = 100
# How many notices that are no longer reported are remembered. If a forgotten notice recurs, the API server refuses its
# Event as a duplicate, which costs a request.
MOST_RECORDED = 50
# Refusals after which the observation is outdated.
OUTDATED = frozenset({ErrorType.CONFLICT, ErrorType.ABSENT})


@dataclass(frozen=True)
class Step:
    decision: Decision
    start: tuple[Action, ...] = ()  # actions to start now, in order
    cancel: tuple[str, ...] = ()  # slots whose running actions are no longer wanted
    until: datetime | None = None  # when to decide again without an event; None: only after an event
    summary: str = ""  # what the timeline shows while waiting
    overdue: bool = False  # a deadline or retry time passed while the world was observed, so it is observed again


@dataclass(frozen=True)
class State(Generic[W]):
    world: W  # the observation, with results and messages applied
    observes_at_deadline: bool = False  # a deadline requires an observation, not only a decision
    dirty: bool = True  # the world must be observed before the next decision
    outdated: bool = False  # a write was refused because the object has changed
    asked: bool = True  # True: a wake has requested the next observation. False: only time has passed
    woken: bool = True  # the value of `asked` for the current or last observation
    observed_at: datetime | None = None
    eager: frozenset[str] = frozenset()  # refused slots that may be retried at once
    running: Mapping[str, Action] = field(default_factory=dict)  # actions in progress by slot, in start order
    cancelled: frozenset[str] = frozenset()  # slots whose running actions have been asked to stop
    overtaken: frozenset[str] = frozenset()  # slots whose last write was based on an older version
    second_looks: int = 0  # how many actions refused as outdated may still be retried at once

    # --- events ---

    def wake(self) -> State[W]:
        return self.copy(dirty=True, asked=True)

    def observing(self, now: datetime) -> State[W]:
        """The state when an observation begins. Wakes that arrive from now on request another observation."""
        eager = frozenset(self.world.refusals) if self.asked else self.eager
        return self.copy(dirty=False, asked=False, woken=self.asked, eager=eager, observed_at=now)

    def observed(self, seen: W) -> State[W]:
        seen = _without_refusal(seen.recall(self.world), OBSERVE)
        if unsure := self.world.unsure or unanswered(seen.refusals):
            seen = seen.model_copy(update={"unsure": unsure})
        return self.copy(world=seen, outdated=False)

    def not_observed(self, failure: Refusal) -> State[W]:
        refusals = {**self.world.refusals, OBSERVE: self._counted(OBSERVE, failure)}
        return self.copy(world=self.world.model_copy(update={"refusals": refusals}), asked=self.asked or self.woken)

    def finished(self, slot: str, result: Model | None) -> State[W]:
        action = self.running[slot]
        world = _without_refusal(self.world, slot)
        if isinstance(result, Reported):
            world = world.with_news(*result.notices)
        world = action.fold(world, result)
        return self._ended(
            slot, world=world, dirty=self.dirty or action.observed_after, overtaken=self.overtaken - {slot}
        )

    def failed(self, slot: str, failure: Refusal) -> State[W]:
        outdated = failure.type in OUTDATED
        from_budget = outdated and self.second_looks > 0
        first = slot not in self.world.refusals and slot not in self.overtaken
        at_once = from_budget or (failure.stale and first)
        refusal = self._counted(slot, failure, grows=not at_once)
        action = self.running[slot]
        if at_once:
            refusal = refusal.model_copy(update={"pause": timedelta(0), "asked": timedelta(0)})
        world: W = action.refuse(self.world, refusal)
        if refusal.type is ErrorType.UNAVAILABLE:
            world = world.model_copy(update={"unsure": True})
        return self._ended(
            slot,
            world=world,
            dirty=self.dirty or (outdated and action.outdates),
            second_looks=self.second_looks - from_budget,
            outdated=self.outdated or failure.type is ErrorType.CONFLICT,
            overtaken=self.overtaken | {slot} if failure.stale else self.overtaken - {slot},
        )

    def stopped(self, slot: str) -> State[W]:
        return self._ended(slot, world=self.running[slot].cancelled(self.world))

    def moment_came(self, decision: Decision) -> State[W]:
        """The state at a retry time or deadline; `dirty` if the world must be observed before the next decision."""
        return self.copy(dirty=self.dirty or self.observes_at_deadline or bool(self._waiting(decision)))

    def copy(self, **changes: object) -> State[W]:
        """A changed copy. Each action needs three, and `dataclasses.replace` would take ten times as long."""
        state: State[W] = object.__new__(type(self))
        state.__dict__.update(self.__dict__, **changes)
        return state

    # --- the step ---

    def step(
        self,
        decide: Callable[[W, datetime], Decision],
        now: datetime,
        *,
        ending: bool = False,
        dry_run: bool = False,
        in_order: bool = False,
    ) -> tuple[State[W], Step]:
        """The state after a decision, and what to do now.

        Args:
            decide: the lifecycle's decision.
            now: the current time.
            ending: the workflow's run is about to end. `renewable` actions are left to the next run.
            dry_run: act as if the world were held.
            in_order: each action depends on the actions before it. An action that waits after a refusal holds up all
                later ones. A second action of the same slot waits for the next decision and holds up all later ones.
        """
        decision = decide(self.world, now)
        if OBSERVE in self.world.refusals:
            return self, self._waits(decision, now)
        wanted: dict[str, Action] = {}
        held = dry_run or bool(self.world.hold)
        for action in decision.actions:
            if in_order and action.slot in wanted:
                break
            if not (action.renewable and ending) and (action.reads or not held):
                wanted.setdefault(action.slot, action)
        cancel = tuple(
            slot
            for slot, action in self.running.items()
            if not (slot in self.cancelled or action.when_unwanted is WhenUnwanted.FINISHED)
            and (slot not in wanted or action.superseded_by(wanted[slot]))
        )
        running = dict(self.running)
        world = self.world
        if not held and RecordEvents.activity not in running and self._may_start(RecordEvents.activity, now):
            if new := self._new_notices(decision, now):
                running[RecordEvents.activity] = RecordEvents(key=world.key, notices=new, at=now)
            world = world.model_copy(update={"news": ()}) if world.news else world
        for slot, action in wanted.items():
            if slot not in running and not (action.last and running) and self._may_start(slot, now):
                running[slot] = action
            elif in_order:
                break
        start = tuple(action for slot, action in running.items() if slot not in self.running)
        state = self.copy(
            world=world if running else _at_rest(world, decision, now),
            running=running,
            cancelled=self.cancelled.union(cancel),
            eager=self.eager.difference(action.slot for action in start),
        )
        return state, state._waits(decision, now, start, cancel)

    def pauses_until(self, decision: Decision, now: datetime) -> datetime | None:
        """The end of a short pause after throttling; None if the pass should not wait for it."""
        requested = [
            refusal
            for slot, refusal in blocked_by(self.world, decision).items()
            if refusal.type is ErrorType.THROTTLED and slot not in self.running
        ]
        short = [
            refusal.retry_at
            for refusal in requested
            if refusal.attempts <= MOST_SHORT_PAUSES and refusal.retry_at - now <= SHORT_PAUSE
        ]
        return None if self.world.hold else earliest(short)

    def handed_back(self, decision: Decision, *, dry_run: bool = False) -> Decision:
        """The decision as a pass returns it to its workflow. The targets of refused actions (`blocked`) and, in a dry
        run or hold, summaries of the actions (`planned`) replace the actions.
        """
        lines = decision.summaries if dry_run or self.world.hold else ()
        blocked = tuple(blocked_by(self.world, decision)) if self.world.refusals else ()
        if not (decision.actions or lines or blocked or decision.blocked):
            return decision
        return decision.model_copy(update={"actions": (), "planned": lines, "blocked": blocked})

    def rests_until(self, rest: timedelta, gather: timedelta, now: datetime) -> datetime:
        """The earliest time of the next observation: `rest` after the last one.

        If a wake is waiting, the time is also at least `gather` from now, so that further wakes join.
        """
        if self.observed_at is None:
            return now
        return max(now, self.observed_at + rest if rest else now, now + gather if self.asked else now)

    # --- what people see ---

    def phase(self, decision: Decision) -> str:
        blocked = blocked_by(self.world, decision).values()
        return BUG if any(refusal.type is ErrorType.BUG for refusal in blocked) else decision.phase

    # --- parts ---

    def _new_notices(self, decision: Decision, now: datetime) -> tuple[Notice, ...]:
        """The notices to record as Events: `each_time` notices of results, and other notices without an Event."""
        world = self.world
        new = {notice.digest: notice for notice in world.news if notice.each_time}
        for notice in (*world.news, *decision.notices):
            at = world.recorded.get(digest := notice.digest, now - EVENTS_KEPT)
            if at is not None and now - at >= EVENTS_KEPT:
                new.setdefault(digest, notice)
        return tuple(new.values())

    def _ended(self, slot: str, **changes: object) -> State[W]:
        running = {name: action for name, action in self.running.items() if name != slot}
        return self.copy(running=running, cancelled=self.cancelled - {slot}, **changes)

    def _counted(self, slot: str, failure: Refusal, *, grows: bool = True) -> Refusal:
        before = self.world.refusals.get(slot)
        if before is None:
            return failure
        return failure.model_copy(update={"attempts": before.attempts + grows, "since": before.lasts_since})

    def _may_start(self, slot: str, now: datetime) -> bool:
        refusal = self.world.refusals.get(slot)
        return refusal is None or slot in self.eager or now >= refusal.retry_at

    def _waiting(self, decision: Decision) -> dict[str, datetime]:
        blocked = blocked_by(self.world, decision) if self.world.refusals else {}
        return {slot: refusal.retry_at for slot, refusal in blocked.items() if slot not in self.running}

    def _waits(
        self,
        decision: Decision,
        now: datetime,
        start: tuple[Action, ...] = (),
        cancel: tuple[str, ...] = (),
    ) -> Step:
        deadline, retries = self._deadline(decision), self._waiting(decision)
        until = earliest([moment for moment in (deadline, *retries.values()) if moment and moment > now])
        summary = wait_summary(decision, until, retries) if until else ""
        overdue = self.observes_at_deadline and OBSERVE not in self.world.refusals
        late = overdue and deadline is not None and deadline <= now
        return Step(decision, start, cancel, until, summary, late or self._missed_retry(decision, now))

    def _missed_retry(self, decision: Decision, now: datetime) -> bool:
        """Whether all retry times passed before the pass returned, so that no timer fires for them."""
        if self.world.hold or OBSERVE in self.world.refusals:
            return False
        moments = [moment for slot, moment in self._waiting(decision).items() if slot in decision.blocked]
        return bool(moments) and max(moments) <= now

    def _deadline(self, decision: Decision) -> datetime | None:
        moment = decision.deadline and decision.deadline + decision.patience
        if moment and self.observes_at_deadline and self.observed_at:
            return max(moment, self.observed_at + OBSERVE_REST)
        return moment


def blocked_by(world: World, decision: Decision) -> dict[str, Refusal]:
    """The refusals of the observation and of actions that are still wanted, keyed by `Action.slot`."""
    wanted = {OBSERVE, *(action.slot for action in decision.actions), *decision.blocked}
    return {slot: refusal for slot, refusal in world.refusals.items() if slot in wanted}


def endless(world: World, rounds: int, actions: Iterable[Action]) -> str:
    """Why a pass may not run another round of actions; empty if it may."""
    if rounds <= MOST_ROUNDS:
        return ""
    names = ", ".join(action.summary for action in actions)
    return f"{world.key.path}: after {MOST_ROUNDS} rounds of actions, its decisions still ask for: {names}"


def wait_summary(decision: Decision, until: datetime, retries: Mapping[str, datetime]) -> str:
    then = decision.at_deadline or "decide again"
    if decision.deadline and decision.patience and until == decision.deadline + decision.patience:
        seconds = decision.patience.total_seconds()
        observed = f"the object is observed again {seconds:g} s after that time"
        return f"until {decision.deadline:%H:%M:%S} UTC, then: {then}; {observed}"[:SUMMARY_LENGTH]
    if until != decision.deadline and until in retries.values():
        then = f"try again {', '.join(slot for slot, moment in retries.items() if moment == until)}"
    return f"until {until:%H:%M:%S} UTC, then: {then}"[:SUMMARY_LENGTH]


def unanswered(refusals: Mapping[str, Refusal]) -> bool:
    return any(refusal.type is ErrorType.UNAVAILABLE for refusal in refusals.values())


def _at_rest(world: W, decision: Decision, now: datetime) -> W:
    """The world after a decision without actions: no longer `unsure`, unless one of its refusals is `Unavailable`.

    Recorded notices that are no longer reported are forgotten. A notice without `each_time` is forgotten only after the
    API server has deleted its Event, or when there are too many.
    """
    changes: dict[str, object] = {}
    if world.unsure and not unanswered(world.refusals):
        changes["unsure"] = False
    stand = {notice.digest for notice in decision.notices} if world.recorded else ()
    gone = [digest for digest in world.recorded if not (world.hold or digest in stand)]
    lasting = [digest for digest in gone if (at := world.recorded[digest]) and now - at < EVENTS_KEPT]
    if forgotten := {*gone}.difference(lasting[-MOST_RECORDED:]):
        changes["recorded"] = {digest: at for digest, at in world.recorded.items() if digest not in forgotten}
    return world.model_copy(update=changes) if changes else world


def _without_refusal(world: W, slot: str) -> W:
    if slot not in world.refusals:
        return world
    rest = {name: refusal for name, refusal in world.refusals.items() if name != slot}
    return world.model_copy(update={"refusals": rest})
