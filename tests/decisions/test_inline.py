"""A lifecycle's decisions made true within one activity: order, results, refusals, and an end."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

import pytest
from named_actions import KEY, Do, Hello
from temporalio.testing import ActivityEnvironment

from activities.inline import MOST_ROUNDS, carry_out
from domain.decision import Action, Decision, Outcome
from domain.model import Model
from domain.writes import Patch
from engine.errors import ApiError, Conflict, Denied, Unavailable


class Made(Model):
    name: str


class Make(Do):
    """The result says what was made."""

    @property
    def summary(self) -> str:
        return f"make {self.name}"

    def fold(self, world: Hello, result: Model | None) -> Hello:  # type: ignore[override]
        assert isinstance(result, Made)
        return world.learn(done=(*world.known.done, result.name))


class Finish(Make):
    last: ClassVar[bool] = True


async def carried_out(world: Hello, decide: Any, effects: Any) -> Hello:
    """Within an activity, as ever."""
    environment = ActivityEnvironment()
    done: Hello = await environment.run(carry_out, world, decide, effects)
    return done


class Effects:
    """Makes what it is asked for, and writes down in which order."""

    def __init__(self, error: ApiError | None = None) -> None:
        self.made: list[str] = []
        self.error = error

    async def make(self, action: Make) -> Made:
        if self.error is not None and action.name == "bad":
            raise self.error
        self.made.append(action.name)
        return Made(name=action.name)

    async def carry_out(self, *rounds: tuple[Action, ...], hold: str = "") -> Hello:
        """Each round is wanted until its names are done."""

        def decide(world: Hello, now: datetime) -> Decision:
            done = set(world.known.done)
            missing = [[each for each in wanted if each.slot not in done] for wanted in rounds]
            actions = next((tuple(each) for each in missing if each), ())
            return Decision(phase="Busy", outcome=Outcome.WORKING, why="a test", actions=actions)

        return await carried_out(Hello(key=KEY, hold=hold), decide, {Make.activity: self.make})


ELSEWHERE = Patch(key=KEY, patch={})
A, B, C, BAD = (Make(name=name) for name in ("a", "b", "c", "bad"))


@pytest.mark.parametrize(
    ("rounds", "made"),
    [
        ((), []),
        (((A, B), (C,)), ["a", "b", "c"]),
        (((B, A),), ["b", "a"]),
        (((A, Make(name="a")),), ["a"]),
        (((Finish(name="z"), A),), ["z", "a"]),
        (((A, Finish(name="z")),), ["a", "z"]),
    ],
    ids=[
        "nothing is wanted",
        "each result is folded before the next decision",
        "in the order of the decision",
        "one action per slot",
        "the last action runs alone",
        "the last action runs after the others",
    ],
)
async def test_decisions_are_carried_out_until_they_ask_for_nothing(
    rounds: tuple[tuple[Action, ...], ...], made: list[str]
) -> None:
    effects = Effects()
    world = await effects.carry_out(*rounds)
    assert effects.made == made
    assert sorted(world.known.done) == sorted(made)


@pytest.mark.parametrize(
    ("wanted", "made"),
    [((ELSEWHERE,), []), ((ELSEWHERE, A), ["a"]), ((ELSEWHERE, Finish(name="z")), [])],
    ids=["alone", "beside others", "the last action waits for it"],
)
async def test_what_is_not_done_here_is_left_to_the_objects_workflow(
    wanted: tuple[Action, ...], made: list[str]
) -> None:
    effects = Effects()
    await effects.carry_out(wanted)
    assert effects.made == made


async def test_nothing_is_done_while_the_world_is_held() -> None:
    effects = Effects()
    world = await effects.carry_out((A,), hold="paused by mia")
    assert (effects.made, world.known.done) == ([], ())


@pytest.mark.parametrize("error", [Conflict("changed"), Denied("no"), Unavailable("no answer")])
async def test_a_refusal_ends_it_with_what_was_done_before(error: ApiError) -> None:
    effects = Effects(error)
    with pytest.raises(type(error), match=error.message):
        await effects.carry_out((A,), (BAD,), (B,))
    assert effects.made == ["a"]


async def test_decisions_that_come_to_no_end_are_named() -> None:
    asked: list[str] = []

    async def again(action: Any) -> Made:
        asked.append(action.name)
        return Made(name="other")

    def decide(world: Hello, now: datetime) -> Decision:
        return Decision(phase="Busy", outcome=Outcome.WORKING, why="a test", actions=(A, B))

    with pytest.raises(Unavailable, match=r"prod/hello: no end after 60 rounds of: make a, make b"):
        await carried_out(Hello(key=KEY), decide, {Make.activity: again})
    assert len(asked) == 2 * MOST_ROUNDS
