"""The inline driver of a lifecycle: its decisions made true within one activity, the actions called directly.

    decide --> act, one action after the other, each result folded --> decide --> ... --> nothing left to do here

What follows from what is `domain/runner.py`'s to say. The effects are the functions that the durable driver
(`workflows/entity.py`) reaches through Temporal. An action without an effect here is left to the object's own workflow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from domain.decision import Decision, World
from domain.model import Model
from domain.runner import State
from engine.clock import now
from engine.errors import Unavailable

W = TypeVar("W", bound=World)

Effect = Callable[[Any], Awaitable[Model | None]]

# A decision that is never satisfied ends the activity: the longest lifecycle needs a tenth of it.
MOST_ROUNDS = 60


async def carry_out(world: W, decide: Callable[[W, datetime], Decision], effects: Mapping[str, Effect]) -> W:
    """The world once the decisions about it ask for nothing more that is done here.

    Args:
        world: what was observed.
        decide: the lifecycle's decision.
        effects: what is done here, by the actions' activities.

    Raises:
        ApiError: an action was refused, and what follows from that is the object's own workflow's to decide.
        Unavailable: also when the decisions come to no end.
    """
    state, going_round = State(world, dirty=False), ""
    for _ in range(MOST_ROUNDS):
        state, step = state.step(decide, now())
        served = [action for action in step.start if action.activity in effects]
        if not served:
            return state.world
        going_round = ", ".join(action.summary for action in served)
        for action in served:
            state = state.finished(action.slot, await effects[action.activity](action))
    raise Unavailable(f"{world.key.path}: no end after {MOST_ROUNDS} rounds of: {going_round}", code="NoEnd")
