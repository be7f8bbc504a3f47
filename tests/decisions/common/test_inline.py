"""A lifecycle's decisions made true within one activity: order, results, refusals, second looks, pauses, and an end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest
from named_actions import KEY, Do, Facts, Hello
from temporalio.testing import ActivityEnvironment

from activities.inline_driver import AT_ONCE, SECOND_LOOKS, Inline, Passed
from domain.claims.passes import PassPool
from domain.decision import Action, Decision, Outcome
from domain.model import Model
from domain.notices import Notice, warning
from domain.passes import PassedWorld
from domain.refusal import ErrorType, Refusal, UnusableAnswerError
from domain.runner import MOST_ROUNDS, State
from domain.why import explain
from domain.writes import Patch, RecordEvents
from engine import clock
from engine.errors import Absent, ApiError, Conflict, Denied, Pending, Throttled, Unavailable

SECOND = timedelta(seconds=1)
EPOCH = datetime.fromtimestamp(0, UTC)


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


class DeathError(Exception):
    """The process died."""


class Strange(Make):
    def fold(self, world: Hello, result: Model | None) -> Hello:  # type: ignore[override]
        raise UnusableAnswerError("of no known shape")


class Read(Make):
    reads: ClassVar[bool] = True


class Finish(Make):
    last: ClassVar[bool] = True


ELSEWHERE = Patch(key=KEY, patch={})
A, B, C, BAD = (Make(name=name) for name in ("a", "b", "c", "bad"))


class Effects:
    """Makes what it is asked for, and writes down in which order; what is bad fails with one error after the other."""

    def __init__(self, *errors: Exception, hold: str = "") -> None:
        self.made: list[str] = []
        self.observed: list[bool] = []  # whether each observation was to be fresh
        self.unsure: list[bool] = []  # whether each decision was
        self.recorded: list[str] = []
        self.errors = [*errors]
        self.hold = hold
        self.at_once = self.most_at_once = 0
        self.notices: tuple[Notice, ...] = ()

    async def make(self, action: Make) -> Made:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if action.name == "bad" and self.errors:
            raise self.errors.pop(0)
        self.made.append(action.name)
        return Made(name=action.name)

    async def observe(self, fresh: bool) -> Hello:
        self.observed.append(fresh)
        return Hello(key=KEY, hold=self.hold)

    async def record_events(self, action: RecordEvents) -> None:
        self.recorded += [notice.message for notice in action.notices]
        self.made.append("Events")

    def decide(self, *rounds: tuple[Action, ...]) -> Callable[[Hello, datetime], Decision]:
        """Each round is wanted until its names are done, or refused for now."""

        def decide(world: Hello, now: datetime) -> Decision:
            self.unsure.append(world.unsure)
            done = set(world.known.done)
            missing = [[each for each in wanted if each.slot not in done] for wanted in rounds]
            actions = next((tuple(each) for each in missing if each), ())
            fields: dict[str, Any] = {"phase": "Busy", "outcome": Outcome.WORKING, "why": "a test"}
            return Decision(actions=actions, notices=self.notices, **fields)

        return decide

    async def carry_out(
        self, *rounds: tuple[Action, ...], attempt: int = 1, in_order: bool = False, **request: Any
    ) -> Passed[Hello]:
        """Within an activity, as ever."""
        effects = {Make.activity: self.make, RecordEvents.activity: self.record_events}
        inline = Inline(self.decide(*rounds), effects, self.observe, in_order=in_order)

        async def within_activity() -> Passed[Hello]:
            clock.begin()  # as the worker does
            return await inline.carry_out(PassPool(key=KEY, **request), Facts())

        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=attempt)
        done: Passed[Hello] = await environment.run(within_activity)
        return done


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
        "the last action runs with nothing before it",
        "the last action runs after the others",
    ],
)
async def test_decisions_are_carried_out_until_they_ask_for_nothing(
    rounds: tuple[tuple[Action, ...], ...], made: list[str]
) -> None:
    effects = Effects()
    passed = await effects.carry_out(*rounds)
    assert effects.made == made
    assert sorted(passed.world.known.done) == sorted(made)
    assert (passed.decision.actions, passed.refusals, effects.observed) == ((), {}, [True])


async def test_independent_actions_run_side_by_side_under_a_limit() -> None:
    effects = Effects()
    await effects.carry_out(tuple(Make(name=str(number)) for number in range(2 * AT_ONCE)))
    assert effects.most_at_once == AT_ONCE
    assert effects.made == [str(number) for number in range(2 * AT_ONCE)]


@pytest.mark.parametrize(
    ("wanted", "made"),
    [((ELSEWHERE,), []), ((ELSEWHERE, A), ["a"]), ((ELSEWHERE, Finish(name="z")), [])],
    ids=["alone", "beside others", "the last action waits for it"],
)
async def test_an_action_that_is_not_done_here_is_left_to_the_objects_workflow(
    wanted: tuple[Action, ...], made: list[str]
) -> None:
    effects = Effects()
    await effects.carry_out(wanted)
    assert effects.made == made


@pytest.mark.parametrize(("hold", "dry_run"), [("paused by mia", False), ("", True)], ids=["held", "dry run"])
async def test_forbidden_actions_become_lines_for_people(hold: str, dry_run: bool) -> None:
    effects = Effects(hold=hold)
    effects.notices = (warning("Bad", "nothing is reported"),)
    passed = await effects.carry_out((Read(name="r"),), (A, Do(name="b"), Do(name="c")), dry_run=dry_run)
    world = passed.as_world(PassedWorld)
    assert (effects.made, effects.recorded, passed.world.known.done) == (["r"], [], ("r",)), "what only reads is done"
    assert (world.hold, world.decision.planned) == (hold, ("make a", "do b", "do c"))


# --- in order ---


async def test_in_order_each_action_waits_for_those_before_it() -> None:
    effects = Effects()
    await effects.carry_out((B, A, C), in_order=True)
    assert (effects.made, effects.most_at_once) == (["b", "a", "c"], 1)


@pytest.mark.parametrize(
    ("error", "made"),
    [
        (Denied("no"), ["a"]),
        (Conflict("changed"), ["a", "bad", "b"]),
        (Throttled("soon", delay=SECOND / 50), ["a", "bad", "b"]),
    ],
    ids=["a refusal ends the rest", "what is outdated is tried again", "a short pause is waited for"],
)
async def test_in_order_what_follows_a_refusal_waits_for_the_next_decision(error: ApiError, made: list[str]) -> None:
    effects = Effects(error)
    passed = await effects.carry_out((A, BAD, B), in_order=True)
    assert effects.made == made
    assert list(passed.refusals) == ([] if "bad" in made else ["bad"])


async def test_an_answer_that_cannot_be_folded_is_none() -> None:
    effects = Effects()
    passed = await effects.carry_out((Strange(name="a"), B))
    assert (passed.refusals["a"].type, effects.made) == (ErrorType.UNAVAILABLE, ["a", "b"])


# --- refusals ---


@pytest.mark.parametrize(
    ("error", "pause"),
    [
        (Denied("no"), 5 * SECOND),
        (Unavailable("no answer"), SECOND),
        (Pending("under way", delay=7 * SECOND), 7 * SECOND),
        (Throttled("too many", delay=60 * SECOND), 60 * SECOND),
    ],
)
async def test_a_refusal_ends_its_own_slot_only_and_is_handed_back(error: ApiError, pause: timedelta) -> None:
    effects = Effects(error)
    world = (await effects.carry_out((BAD, A))).as_world(PassedWorld)
    refusal = world.refusals["bad"]
    assert (effects.made, world.decision.blocked) == (["a"], ("bad",))
    assert (refusal.type, refusal.attempts, refusal.retry_at - refusal.at) == (error.type, 1, pause)
    following, step = State(world).observing(refusal.at).observed(world).step(lambda *_: world.decision, refusal.at)
    assert step.until == refusal.retry_at, "the workflow waits for it"
    assert explain(KEY, following, step.decision).hindrances[0].action == "bad"


async def test_the_next_pass_tries_what_was_refused_at_once_only_when_it_was_woken() -> None:
    refusal = (await Effects(Denied("no")).carry_out((BAD,))).refusals["bad"]
    waiting, woken = Effects(), Effects()
    later = await waiting.carry_out((BAD,), woken=False, refusals={"bad": refusal.model_copy(update={"attempts": 4})})
    assert (waiting.made, later.refusals["bad"].attempts) == ([], 4)
    assert (await woken.carry_out((BAD,), refusals={"bad": refusal})).refusals == {}
    assert woken.made == ["bad"]


@pytest.mark.parametrize("error", [Conflict("changed"), Absent("gone")])
async def test_an_outdated_action_is_observed_and_retried_at_once(error: ApiError) -> None:
    effects = Effects(error, error)
    passed = await effects.carry_out((A,), (BAD,), woken=False)
    assert effects.made == ["a", "bad"]
    assert (effects.observed, passed.refusals) == ([False, True, True], {})


async def test_an_action_that_stays_outdated_is_left_to_the_next_pass() -> None:
    effects = Effects(*[Conflict("changed")] * 20)
    passed = await effects.carry_out((BAD,))
    assert len(effects.errors) == 20 - SECOND_LOOKS - 1
    assert passed.refusals["bad"].attempts == 2, "the looks of one pass count once"


async def test_a_short_pause_is_waited_for_and_a_long_one_ends_the_pass() -> None:
    short, long = Effects(Throttled("soon", delay=SECOND / 50)), Effects(Throttled("later", delay=6 * SECOND))
    assert (await short.carry_out((BAD, A))).refusals == {}
    assert short.made == ["a", "bad"]
    assert short.observed == [True], "nothing was done, so nothing is observed again"
    assert list((await long.carry_out((BAD, A))).refusals) == ["bad"]


async def test_a_bug_ends_the_pass_after_what_runs_beside_it() -> None:
    effects = Effects(KeyError("ours"))
    with pytest.raises(KeyError):
        await effects.carry_out((BAD, A), (B,))
    assert effects.made == ["a"]


async def test_a_world_that_was_given_is_left_at_the_first_refusal() -> None:
    effects = Effects(Conflict("changed"))
    inline: Inline[Hello] = Inline(effects.decide((BAD,)), {Make.activity: effects.make})
    passed: Any = await ActivityEnvironment().run(inline.go_on, State(Hello(key=KEY), dirty=False))
    assert (list(passed.refusals), effects.made) == (["bad"], [])


# --- lost answers ---


@pytest.mark.parametrize(
    ("attempt", "refused", "unsure"),
    [(1, {}, False), (2, {}, True), (1, {"bad": ErrorType.UNAVAILABLE}, True), (1, {"bad": ErrorType.DENIED}, False)],
    ids=["first attempt", "repeated attempt", "an answer was lost", "it was refused"],
)
async def test_a_pass_is_unsure_after_what_may_have_been_done(
    attempt: int, refused: dict[str, ErrorType], unsure: bool
) -> None:
    effects = Effects()
    at = datetime.fromisoformat("1969-01-01T00:00:00Z")
    refusals = {slot: Refusal(type=type_, message="no", at=at) for slot, type_ in refused.items()}
    await effects.carry_out((BAD,), woken=False, attempt=attempt, refusals=refusals)
    assert (effects.observed, effects.unsure[0], effects.made) == ([unsure], unsure, ["bad"])


# --- notices ---


@pytest.mark.parametrize("in_order", [False, True])
async def test_new_notices_are_recorded_before_other_actions_and_remembered(in_order: bool) -> None:
    effects = Effects()
    one, two = effects.notices = (warning("Bad", "one"), warning("Bad", "two", each_time=True))
    passed = await effects.carry_out((A,), (B,), recorded={one.digest: EPOCH}, in_order=in_order)
    assert (effects.recorded, effects.made) == (["two"], ["Events", "a", "b"])
    remembered = passed.as_world(PassedWorld).recorded
    assert (set(remembered), remembered[two.digest]) == ({one.digest, two.digest}, None)


async def test_events_are_recorded_again_if_the_pass_died_before_it_ended() -> None:
    effects = Effects(DeathError())
    effects.notices = (warning("Bad", "one"),)
    with pytest.raises(DeathError):
        await effects.carry_out((BAD,))
    await effects.carry_out((BAD,), attempt=2)
    assert (effects.recorded, effects.made) == (["one", "one"], ["Events", "Events", "bad"])


# --- an end ---


async def test_decisions_that_come_to_no_end_are_named() -> None:
    requests: list[str] = []

    async def again(action: Any) -> Made:
        requests.append(action.name)
        return Made(name="other")

    def decide(world: Hello, now: datetime) -> Decision:
        return Decision(phase="Busy", outcome=Outcome.WORKING, why="a test", actions=(A, B))

    effects = Effects()
    inline = Inline(decide, {Make.activity: again}, effects.observe)
    with pytest.raises(
        Unavailable, match=r"prod/hello: after 100 rounds of actions, its decisions still ask for: make a, make b"
    ):
        await ActivityEnvironment().run(inline.carry_out, PassPool(key=KEY), Facts())
    assert len(requests) == 2 * MOST_ROUNDS
