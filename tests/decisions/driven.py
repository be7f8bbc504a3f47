"""A durable lifecycle driven without Temporal: observed and decided turn by turn, its real activities called directly.

What the workflow does between turns (wait for a wake or a moment) is left out. An activity that the server would try
again (`Pending`) stays under way until the next turn.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, TypeVar

from temporalio import activity
from temporalio.testing import ActivityEnvironment

from domain.decision import Action, Decision, World
from domain.refusal import RETRIED_BY_SERVER, Refusal
from domain.runner import State
from engine.errors import ApiError

W = TypeVar("W", bound=World)


class Driven(Generic[W]):
    """One object's lifecycle."""

    def __init__(
        self,
        world: W,
        decide: Callable[[W, datetime], Decision],
        observation: Callable[[State[W]], Action],
        activities: Iterable[Callable[..., object]],
    ) -> None:
        self.state = State(world)
        self.until: datetime | None = None  # when it would be observed again if nothing happened
        self._decide = decide
        self._observation = observation
        self._activities = {activity._Definition.must_from_callable(each).name: each for each in activities}
        self._attempts: dict[str, int] = {}

    async def turn(self, now: datetime) -> Decision:
        """One observation, and everything that can be done then."""
        self.state = self.state.wake().observing(now)
        self.state = self.state.observed(await self._run(self._observation(self.state), now))
        for slot in [*self.state.running]:
            await self._go_on(slot, now)
        while True:
            self.state, step = self.state.step(self._decide, now)
            for slot in step.cancel:
                self.state = self.state.stopped(slot)
            for action in step.start:
                self._attempts[action.slot] = 0
                await self._go_on(action.slot, now)
            if self.state.dirty and step.start:
                self.state = self.state.observing(now)
                self.state = self.state.observed(await self._run(self._observation(self.state), now))
            elif not step.start:
                self.until = step.until
                return step.decision

    async def _go_on(self, slot: str, now: datetime) -> None:
        action = self.state.running[slot]
        self._attempts[slot] += 1
        try:
            result = await self._run(action, now, self._attempts[slot])
        except ApiError as error:
            if error.type in RETRIED_BY_SERVER and error.type not in action.reaches_decision:
                return
            refusal = Refusal(type=error.type, message=error.message, code=error.code, at=now)
            self.state = self.state.failed(slot, refusal)
        else:
            self.state = self.state.finished(slot, result)

    async def _run(self, action: Action, now: datetime, attempt: int = 1) -> Any:
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt, started_time=now)
        answer = environment.run(self._activities[action.activity], action)
        return await answer if inspect.isawaitable(answer) else answer
