"""The inline driver: a whole pass within one activity, its actions called directly.

    observe --> decide --> act, side by side; results and refusals are folded --> decide --> ... --> nothing left to do
       ^                        |
       +------ outdated --------+

An action whose activity is not in `effects` is left to the object's own workflow. Running effects are never cancelled:
each is one quick call whose answer would be lost. A refusal is returned to the workflow, which decides when to try
again. The pass itself tries again only after an outdated observation or a short pause for throttling. An answer that
`fold` cannot use (`UnusableAnswerError`) counts as lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from temporalio import activity

from activities import attempt
from domain.decision import Action, Decision, World
from domain.model import Model
from domain.passes import Pass, PassedWorld
from domain.refusal import RETRIED_BY_SERVER, Refusal, UnusableAnswerError, doubled
from domain.runner import State, blocked_by, endless, unanswered
from domain.writes import RecordEvents
from engine.clock import now
from engine.errors import ApiError, Unavailable, api_error, as_error

W = TypeVar("W", bound=World)
P = TypeVar("P", bound=PassedWorld)

Effect = Callable[[Any], Awaitable[Model | None]]

SECOND_LOOKS = 5
# An API server answers this many concurrent requests without slowing down.
AT_ONCE = 16


def effects_of(*functions: Callable[..., object]) -> dict[str, Effect]:
    return {str(activity._Definition.must_from_callable(each).name): cast(Effect, each) for each in functions}


@dataclass(frozen=True)
class Passed(Generic[W]):
    """The result of a pass: the world with all results, and the last decision, without its actions."""

    world: W
    decision: Decision

    @property
    def refusals(self) -> dict[str, Refusal]:
        return blocked_by(self.world, self.decision)

    def confirm(self) -> None:
        for refusal in self.refusals.values():
            raise as_error(refusal)

    def as_world(self, kind: type[P], **more: object) -> P:
        fields: dict[str, object] = {
            "key": self.world.key,
            "exists": not self.decision.gone,
            "hold": self.world.hold,
            "refusals": self.refusals,
            "known": self.world.known,
            "recorded": self.world.recorded,
            "news": self.world.news,
            "decision": self.decision,
            **more,
        }
        return kind(**fields)


@dataclass(frozen=True)
class Inline(Generic[W]):
    decide: Callable[[W, datetime], Decision]
    effects: Mapping[str, Effect]  # the functions that run the actions, by activity name
    # Reads the world: from the API if called with True, possibly from a cache if called with False. If this is None, a
    # pass ends at the first refusal.
    observe: Callable[[bool], Awaitable[W]] | None = None
    # Limits concurrent actions; passes over many objects share it.
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    cached: bool = False  # the first observation of a pass may come from a cache even after a wake
    in_order: bool = False  # each action of a decision depends on the actions before it
    second_looks: int = SECOND_LOOKS  # how many actions refused as outdated a pass retries at once

    async def carry_out(self, request: Pass, known: Model) -> Passed[W]:
        """Observe and act until the decision has no action that can run now.

        Raises:
            ApiError: the object could not be observed.
            Unavailable: the decisions never run out of actions.
        """
        unsure = attempt.repeated() or unanswered(request.refusals)
        before = World(
            key=request.key, refusals=request.refusals, unsure=unsure, known=known, recorded=request.recorded
        )
        state: State[Any] = State(before, asked=request.woken, second_looks=self.second_looks)
        return await self.go_on(state, dry_run=request.dry_run)

    async def go_on(self, state: State[W], *, dry_run: bool = False) -> Passed[W]:
        rounds = 0
        while True:
            if state.dirty and self.observe is not None:
                requested = state.asked and not self.cached
                fresh = requested or state.world.unsure or state.observed_at is not None
                state = state.observing(now())
                state = state.observed(await self.observe(fresh))
            state, step = state.step(self.decide, now(), dry_run=dry_run, in_order=self.in_order)
            served = [action for action in step.start if action.activity in self.effects]
            if served:
                rounds += 1
                if why := endless(state.world, rounds, served):
                    raise Unavailable(why, code="NoEnd")
                state = await (self._act_in_order if self.in_order else self._act)(state, served)
            until = state.pauses_until(step.decision, now()) if self.in_order or not served else None
            if until is None and served and not (state.world.refusals and self.observe is None):
                continue
            if until is None:
                return Passed(state.world, state.handed_back(step.decision, dry_run=dry_run))
            await asyncio.sleep((until - now()).total_seconds())

    async def _act(self, state: State[W], actions: Sequence[Action]) -> State[W]:
        """Run `in_turn` actions one after the other and all others concurrently; fold the results in the decision's
        order. Events are recorded before any other action starts.
        """
        if isinstance(actions[0], RecordEvents):  # the other actions' results may remove the reason for the Events
            state, _ = _ended(state, actions[0], await self._one(actions[0]))
            actions = actions[1:]
        if len(actions) == 1:  # the usual case; a task of its own would cost more
            ended: list[Model | Exception | None] = [await self._one(actions[0])]
        else:
            turns = asyncio.Lock()
            ended = [*await asyncio.gather(*(self._one(each, turns) for each in actions))]
        bugs: list[Exception] = []
        for action, result in zip(actions, ended, strict=True):
            try:
                state, _ = _ended(state, action, result)
            except Exception as bug:
                bugs.append(bug)
        if bugs:
            raise bugs[0]
        return state

    async def _act_in_order(self, state: State[W], actions: Sequence[Action]) -> State[W]:
        for number, action in enumerate(actions):
            state, done = _ended(state, action, await self._one(action))
            if not done or state.dirty:
                for left in actions[number + 1 :]:
                    state = state.stopped(left.slot)
                break
        return state

    async def _one(self, action: Action, turns: asyncio.Lock | None = None) -> Model | Exception | None:
        async with turns if turns and action.in_turn else nullcontext(), self.places:
            try:
                return await self.effects[action.activity](action)
            except Exception as error:
                return error


def _ended(state: State[W], action: Action, result: Model | Exception | None) -> tuple[State[W], bool]:
    if not isinstance(result, Exception):
        try:
            return state.finished(action.slot, result), True
        except UnusableAnswerError as unusable:
            result = Unavailable(str(unusable), code="UnreadableAnswer")
    error = api_error(result)
    if error is None:
        raise result
    return state.failed(action.slot, _refusal(action, error, state.world.refusals.get(action.slot))), False


def _refusal(action: Action, error: ApiError, before: Refusal | None) -> Refusal:
    """The error as a refusal. A temporary error gets the pause that Temporal's server would make."""
    pause = error.delay
    if pause is None and error.type in RETRIED_BY_SERVER:
        pause = doubled((before.attempts if before else 0) + 1, action.first_retry, action.longest_retry)
    delay = error.delay or timedelta(0)
    return Refusal(type=error.type, message=error.message, code=error.code, at=now(), pause=pause, asked=delay)
