"""The semantics of the loop: which action starts, what is cancelled, what is waited for, what follows from an event."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest
from named_actions import KEY, Do, Hello

from domain.decision import Action, Decision, Outcome, WhenUnwanted
from domain.notices import Notice, Reported, normal, warning
from domain.refusal import STALE_VERSION, ErrorType, Refusal
from domain.runner import BUG, MOST_RECORDED, OBSERVE, State, Step
from domain.why import explain
from domain.writes import Patch, RecordEvents

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


class DoLast(Do):
    last: ClassVar[bool] = True


class Watch(Do):
    renewable: ClassVar[bool] = True


class Finish(Do):
    when_unwanted: ClassVar[WhenUnwanted] = WhenUnwanted.FINISHED


class Read(Do):
    reads: ClassVar[bool] = True


class Call(Do):
    outdates: ClassVar[bool] = False


class Yield(Do):
    """Makes way for another action of its slot."""

    of: str = "y"

    @property
    def slot(self) -> str:
        return self.of

    def superseded_by(self, wanted: Action) -> bool:
        return wanted != self


class Leave(Do):
    observed_after: ClassVar[bool] = True


def decision(*actions: Action, **more: object) -> Decision:
    fields: dict[str, object] = {"phase": "Busy", "outcome": Outcome.WORKING, "why": "a test", **more}
    return Decision(actions=actions, **fields)


def settled(**more: object) -> State[Hello]:
    """What a lifecycle is when it has observed its object."""
    state = State(Hello(key=KEY), **more)  # type: ignore[arg-type]
    return state.observing(NOW).observed(Hello(key=KEY))


def step(
    state: State[Hello], *actions: Action, now: datetime = NOW, ending: bool = False, **more: object
) -> tuple[State[Hello], Step]:
    return state.step(lambda world, moment: decision(*actions, **more), now, ending=ending)


def refusal(type_: ErrorType = ErrorType.INVALID, at: datetime = NOW) -> Refusal:
    return Refusal(type=type_, message="no", at=at)


def refused(type_: ErrorType = ErrorType.INVALID) -> State[Hello]:
    """One action was started at NOW, and refused at once."""
    state, _ = step(settled(), Do(name="a"))
    return state.failed("a", refusal(type_))


def started(found: tuple[State[Hello], Step]) -> list[str]:
    return [action.slot for action in found[1].start]


A, B, LAST = Do(name="a"), Do(name="b"), DoLast(name="z")


# --- what starts, and what is cancelled ---


@pytest.mark.parametrize(
    ("running", "wanted", "starts", "cancels"),
    [
        ((), (), [], ()),
        ((), (A, B), ["a", "b"], ()),
        ((), (A, Do(name="a")), ["a"], ()),
        ((A,), (A, B), ["b"], ()),
        ((A,), (), [], ("a",)),
        ((A, B), (B,), [], ("a",)),
        ((Finish(name="f"), A), (), [], ("a",)),
        ((), (LAST,), ["z"], ()),
        ((), (A, LAST), ["a"], ()),
        ((A,), (LAST,), [], ("a",)),
        ((), (Watch(name="w"), A), ["w", "a"], ()),
    ],
    ids=[
        "nothing is wanted",
        "independent actions start together, in order",
        "one action per slot",
        "what runs is left to finish",
        "what is no longer wanted is cancelled",
        "and nothing else is",
        "what finishes is not cancelled",
        "the last action alone",
        "the last action waits for what starts",
        "the last action waits for what was cancelled",
        "an observation that can be renewed",
    ],
)
def test_a_step_starts_what_is_wanted_and_cancels_the_rest(
    running: tuple[Action, ...], wanted: tuple[Action, ...], starts: list[str], cancels: tuple[str, ...]
) -> None:
    state, _ = step(settled(), *running)
    found = step(state, *wanted)
    assert (started(found), found[1].cancel) == (starts, cancels)


@pytest.mark.parametrize(
    ("wanted", "starts"),
    [
        ((B, A), ["b"]),
        ((Do(name="c"), B, A, LAST), ["c", "b"]),
        ((B, Do(name="c"), Do(name="b"), Do(name="d")), ["b", "c"]),
        ((LAST,), ["z"]),
    ],
    ids=["what follows a refusal waits", "and so does the rest", "and what follows a second of a slot", "the last one"],
)
def test_in_order_nothing_overtakes_what_comes_before_it(wanted: tuple[Action, ...], starts: list[str]) -> None:
    found = refused().step(lambda world, moment: decision(*wanted), NOW + SECOND, in_order=True)
    assert started(found) == starts


def test_a_cancelled_action_is_cancelled_once_and_its_end_starts_the_last_action() -> None:
    state, _ = step(settled(), A)
    state, first = step(state, LAST)
    state, second = step(state, LAST)
    assert (first.cancel, second.cancel) == (("a",), ())
    assert started(step(state.stopped("a"), LAST)) == ["z"]


def test_an_action_makes_way_for_another_of_its_slot_which_starts_once_it_has_ended() -> None:
    first, second = Yield(name="1"), Yield(name="2")
    state, _ = step(settled(), first)
    assert step(state, first)[1].cancel == ()
    state, found = step(state, second)
    assert (found.cancel, found.start) == (("y",), ())
    state, found = step(state, second)
    assert (found.cancel, found.start) == ((), ())
    assert step(state.stopped("y"), second)[1].start == (second,)


def test_an_observation_that_can_be_renewed_is_given_up_for_the_end_of_a_run() -> None:
    state, _ = step(settled(), Watch(name="w"), A)
    state, found = step(state, Watch(name="w"), A, ending=True)
    assert found.cancel == ("w",)
    assert started(step(settled(), Watch(name="w"), A, ending=True)) == ["a"]


@pytest.mark.parametrize(
    ("world", "starts"),
    [
        (Hello(key=KEY), ["r", "a"]),
        (Hello(key=KEY, hold="paused by mia"), ["r"]),
    ],
    ids=["free", "held"],
)
def test_nothing_starts_while_the_world_is_held_and_the_plan_says_what_would(world: Hello, starts: list[str]) -> None:
    state = settled().observed(world)
    found = step(state, Read(name="r"), A, planned=("make a Secret",))
    assert started(found) == starts, "what only reads is done all the same"
    explained = explain(KEY, found[0], found[1].decision)
    assert (explained.hold, explained.planned) == (world.hold, ("do a", "make a Secret"))


def test_a_read_that_the_decision_needs_is_made_while_the_world_is_held() -> None:
    state = settled().observed(Hello(key=KEY, hold="observe mode"))
    assert started(step(state, A, Read(name="r"))) == ["r"]


def test_a_hold_cancels_what_runs() -> None:
    state, _ = step(settled(), A)
    _, found = step(state.observed(Hello(key=KEY, hold="observe mode")), A)
    assert found.cancel == ("a",)


def test_nothing_starts_or_is_cancelled_while_the_world_cannot_be_observed() -> None:
    state, _ = step(settled(), A)
    state = state.not_observed(refusal(ErrorType.UNAVAILABLE))
    _, found = step(state, B)
    assert (found.start, found.cancel, found.until) == ((), (), NOW + 5 * SECOND)


# --- events ---


def test_a_result_is_folded_into_the_world_and_frees_its_slot() -> None:
    state, _ = step(settled(), A)
    state = state.finished("a", None)
    assert (state.world.known.done, dict(state.running), state.dirty) == (("a",), {}, False)


def test_an_actions_effect_may_be_observed_instead() -> None:
    state, _ = step(settled(), Leave(name="a"))
    assert state.finished("a", None).dirty


@pytest.mark.parametrize("type_", list(ErrorType))
def test_a_conflict_or_an_absence_asks_for_an_observation(type_: ErrorType) -> None:
    state = refused(type_)
    assert state.dirty is (type_ in (ErrorType.CONFLICT, ErrorType.ABSENT))
    assert state.world.refusals["a"].type is type_


def test_after_a_conflict_the_observation_knows_that_what_was_observed_is_outdated() -> None:
    conflict = refused(ErrorType.CONFLICT)
    assert conflict.observing(NOW).outdated
    assert not conflict.observing(NOW).observed(Hello(key=KEY)).outdated
    assert not refused(ErrorType.ABSENT).outdated


def test_a_refusal_ends_with_the_success_of_its_slot() -> None:
    state, _ = step(refused(), A, now=NOW + 5 * SECOND)
    assert state.finished("a", None).world.refusals == {}


def test_memory_survives_an_observation() -> None:
    state, _ = step(refused(), B)
    state = state.finished("b", None).observed(Hello(key=KEY))
    assert (state.world.known.done, list(state.world.refusals)) == (("b",), ["a"])


# --- backoff ---


@pytest.mark.parametrize(("attempts", "pause"), [(1, 5), (2, 10), (3, 20), (7, 320), (8, 600), (30, 600)])
def test_a_refused_action_is_tried_again_after_a_growing_pause(attempts: int, pause: int) -> None:
    state, now = settled(), NOW
    for _ in range(attempts):
        state, found = step(state, A, now=now)
        assert [action.slot for action in found.start] == ["a"]
        state = state.failed("a", refusal(at=now))
        before, now = now, state.world.refusals["a"].retry_at
    assert now - before == pause * SECOND
    assert started(step(state, A, now=now - SECOND)) == []
    assert step(state, A, now=now - SECOND)[1].until == now


def test_a_refused_action_is_left_alone_for_as_long_as_the_other_side_asks() -> None:
    state, _ = step(settled(), A)
    state = state.failed("a", refusal().model_copy(update={"asked": 30 * SECOND}))
    assert step(state, A)[1].until == NOW + 30 * SECOND


def test_a_refusal_says_since_when_it_lasts() -> None:
    state, _ = step(refused(), A, now=NOW + 5 * SECOND)
    state = state.failed("a", refusal(at=NOW + 6 * SECOND))
    assert state.world.refusals["a"].lasts_since == NOW


def test_a_wake_tries_every_refused_action_again_once_and_at_once() -> None:
    state = refused().wake().observing(NOW).observed(Hello(key=KEY))
    assert started(step(state, A)) == ["a"]
    state, _ = step(state, A)
    state = state.failed("a", refusal())
    assert started(step(state, A)) == []


def test_a_moment_that_comes_tries_no_other_action_before_its_time() -> None:
    state = refused().moment_came(decision(A)).observing(NOW).observed(Hello(key=KEY))
    assert started(step(state, A)) == []


def test_an_action_that_is_no_longer_wanted_is_not_waited_for() -> None:
    _, found = step(refused(), B)
    assert found.until is None
    assert explain(KEY, refused(), decision(B)).hindrances == ()


def test_an_observation_that_failed_was_still_asked_for() -> None:
    state = settled().wake().observing(NOW).not_observed(refusal(ErrorType.UNAVAILABLE))
    assert state.asked
    assert state.observing(NOW + SECOND).woken


# --- waits ---


@pytest.mark.parametrize(
    ("observes", "deadline", "patience", "until", "overdue"),
    [
        (False, None, 0, None, False),
        (False, 60, 0, 60, False),
        (False, 60, 30, 90, False),
        (False, -60, 0, None, False),
        (True, 60, 0, 60, False),
        (True, -60, 0, 1, False),
    ],
    ids=[
        "an event alone",
        "a deadline",
        "a deadline that another lifecycle meets",
        "a deadline in the past",
        "an observation at its deadline",
        "no sooner than a second after the last",
    ],
)
def test_a_step_says_until_when_to_wait(
    observes: bool, deadline: int | None, patience: int, until: int | None, overdue: bool
) -> None:
    at = None if deadline is None else NOW + deadline * SECOND
    _, found = step(settled(observes_at_deadline=observes), deadline=at, patience=patience * SECOND)
    assert (found.until, found.overdue) == (None if until is None else NOW + until * SECOND, overdue)


def test_a_deadline_that_passed_during_the_observation_asks_for_another() -> None:
    state = settled(observes_at_deadline=True)
    assert step(state, now=NOW + 60 * SECOND, deadline=NOW + SECOND)[1].overdue
    blind = state.not_observed(refusal(ErrorType.UNAVAILABLE, NOW + 60 * SECOND))
    assert not step(blind, now=NOW + 60 * SECOND, deadline=NOW + SECOND)[1].overdue


def test_a_deadline_only_decides_again_where_no_observation_is_asked_for() -> None:
    assert not settled().moment_came(decision(deadline=NOW)).dirty
    assert settled(observes_at_deadline=True).moment_came(decision(deadline=NOW)).dirty
    assert refused().moment_came(decision(A)).dirty, "what was refused is observed before it is tried again"


@pytest.mark.parametrize(
    ("requested", "rest", "gather", "begins"),
    [(True, 0, 0, 2), (True, 10, 0, 10), (True, 0, 3, 5), (True, 10, 3, 10), (False, 0, 3, 2), (True, 1, 0, 2)],
)
def test_wakes_gather_and_observations_rest_between_each_other(
    requested: bool, rest: int, gather: int, begins: int
) -> None:
    state = settled().wake() if requested else settled()
    now = NOW + 2 * SECOND
    assert state.rests_until(rest * SECOND, gather * SECOND, now) == NOW + begins * SECOND
    assert State(Hello(key=KEY)).rests_until(rest * SECOND, gather * SECOND, now) == now, "the first one rests never"


# --- what people see ---


def test_a_bug_is_the_phase_while_it_blocks() -> None:
    state = refused(ErrorType.BUG)
    assert state.phase(decision(A)) == BUG
    assert state.phase(decision(B)) == "Busy"
    assert settled().not_observed(refusal(ErrorType.BUG)).phase(decision()) == BUG


def test_why_names_what_runs_and_what_was_refused() -> None:
    state, found = step(refused(), A, B)
    explained = explain(KEY, state, found.decision)
    assert (explained.running, explained.planned) == (("do b",), ("do a", "do b"))
    assert [(each.action, each.type, each.attempts) for each in explained.hindrances] == [("a", "Invalid", 1)]
    assert explain(KEY, settled().not_observed(refusal()), decision()).hindrances[0].action == OBSERVE
    assert explain(KEY, settled(), None).phase == "Unknown"


# --- second looks, lost answers ---


@pytest.mark.parametrize(
    ("left", "type_", "starts", "attempts", "left_then"),
    [
        (2, ErrorType.CONFLICT, ["a"], 1, 1),
        (1, ErrorType.ABSENT, ["a"], 1, 0),
        (0, ErrorType.CONFLICT, [], 2, 0),
        (2, ErrorType.DENIED, [], 2, 2),
    ],
    ids=["a conflict", "an absence", "none is left", "no second look helps"],
)
def test_an_outdated_action_is_retried_at_once_while_second_looks_are_left(
    left: int, type_: ErrorType, starts: list[str], attempts: int, left_then: int
) -> None:
    state, _ = step(replace(refused(), second_looks=left), A, now=NOW + 5 * SECOND)
    state = state.failed("a", refusal(type_, NOW + 5 * SECOND))
    assert (state.world.refusals["a"].attempts, state.second_looks) == (attempts, left_then)
    state = state.observing(NOW + 5 * SECOND).observed(Hello(key=KEY)) if state.dirty else state
    assert started(step(state, A, now=NOW + 5 * SECOND)) == starts


def test_a_write_based_on_an_older_version_is_tried_again_at_once_the_first_time() -> None:
    """As when two lifecycles write the same object in the same moment."""
    stale = refusal(ErrorType.CONFLICT).model_copy(update={"code": STALE_VERSION})
    state, _ = step(settled(), A)
    state = state.failed("a", stale).observing(NOW).observed(Hello(key=KEY))
    state, found = step(state, A)
    assert started((state, found)) == ["a"]
    state = state.failed("a", stale).observing(NOW).observed(Hello(key=KEY))
    state, found = step(state, A)
    assert (started((state, found)), found.until) == ([], NOW + 10 * SECOND)


def test_a_write_whose_conflicts_never_end_is_repeated_with_pauses() -> None:
    state, now, write = settled(), NOW, Patch(key=KEY, patch={})
    for pause in (0, 0, 5, 10, 20):
        assert not (pause and started(step(state, write, now=now)))
        now += pause * SECOND
        state, found = step(state, write, now=now)
        assert started((state, found)) == [write.slot]
        stale = refusal(ErrorType.CONFLICT, now).model_copy(update={"code": STALE_VERSION})
        state = state.failed(write.slot, stale).observing(now).observed(Hello(key=KEY))


def test_a_write_is_tried_again_at_once_if_the_previous_one_succeeded() -> None:
    stale = refusal(ErrorType.CONFLICT).model_copy(update={"code": STALE_VERSION})
    state = settled()
    for _ in range(3):
        state, _ = step(state, A)
        state = state.failed("a", stale).observing(NOW).observed(Hello(key=KEY))
        state, found = step(state, A)
        assert started((state, found)) == ["a"]
        state = state.finished("a", None)


def test_an_error_independent_of_the_observation_is_retried_without_another_one() -> None:
    call = Call(name="a")
    state, _ = step(replace(settled(), second_looks=1), call)
    state = state.failed("a", refusal(ErrorType.ABSENT))
    assert (state.dirty, started(step(state, call))) == (False, ["a"])


def test_a_lost_answer_makes_the_world_unsure_until_nothing_is_left_to_do() -> None:
    state = refused(ErrorType.UNAVAILABLE)
    assert state.world.unsure
    assert state.observing(NOW).observed(Hello(key=KEY)).world.unsure
    state, _ = step(state, A, now=NOW + 5 * SECOND)
    state = state.finished("a", None)
    state, _ = step(state, B)
    assert state.world.unsure, "what comes next may have been done as well"
    state, _ = step(state.finished("b", None))
    assert not state.world.unsure


# --- notices ---


def recorded(
    state: State[Hello], *notices: Notice, actions: tuple[Action, ...] = (), minutes: int = 0
) -> tuple[State[Hello], tuple[str, ...]]:
    """The state after the Events of a decision are recorded, and their messages."""
    now = NOW + minutes * MINUTE
    state, found = step(state, *actions, notices=notices, now=now)
    started = [each for each in found.start if isinstance(each, RecordEvents)]
    for each in started:
        state = state.finished(each.slot, None)
        state, _ = step(state, *actions, notices=notices, now=now)
    return state, tuple(notice.message for each in started for notice in each.notices)


@pytest.mark.parametrize("each_time", [False, True])
def test_a_notice_is_recorded_once_while_successive_decisions_contain_it(each_time: bool) -> None:
    one, two = (warning("Bad", message, each_time=each_time) for message in ("one", "two"))
    state, first = recorded(settled(), one, one)
    state, second = recorded(state, one, two)
    state, third = recorded(state, two, minutes=40)
    assert (first, second, third) == (("one",), ("two",), ())


@pytest.mark.parametrize(
    ("each_time", "minutes", "again"), [(False, 64, ()), (False, 65, ("one",)), (True, 1, ("one",))]
)
def test_a_recurrence_is_another_event_each_time_or_once_the_first_has_expired(
    each_time: bool, minutes: int, again: tuple[str, ...]
) -> None:
    one = warning("Bad", "one", each_time=each_time)
    state, _ = recorded(settled(), one)
    state, _ = recorded(state)
    assert recorded(state, one, minutes=minutes)[1] == again


def test_a_notice_that_lasts_is_recorded_again_once_its_event_has_expired() -> None:
    state, found = settled(), []
    for minutes in range(0, 180, 10):
        state, messages = recorded(state, warning("Bad", "one"), minutes=minutes)
        found += messages
    assert found == ["one"] * 3


def test_a_notice_is_not_forgotten_by_decisions_on_the_way_to_the_next_rest() -> None:
    one = warning("Bad", "one", each_time=True)
    state, _ = recorded(settled(), one)
    state, _ = recorded(state, actions=(A,))
    state = state.finished("a", None)
    assert recorded(state, one)[1] == ()


def test_nothing_is_recorded_or_forgotten_while_the_world_is_held() -> None:
    one, two = (warning("Bad", message, each_time=True) for message in ("one", "two"))
    state, _ = recorded(settled(), one)
    held, found = recorded(state.observed(Hello(key=KEY, hold="paused by mia")), two)
    assert (found, held.world.recorded) == ((), state.world.recorded)


def test_a_notice_that_differs_only_in_the_request_id_is_recorded_once() -> None:
    first, second = (warning("Bad", f"no quota [request {each}]") for each in ("req-a", "req-b"))
    state, found = recorded(settled(), first, second)
    assert found == (first.message,)
    assert recorded(state, second)[1] == ()
    assert recorded(state, warning("Bad", "no port"))[1] == ("no port",)


def test_the_same_words_about_another_object_are_another_event() -> None:
    other = KEY.model_copy(update={"name": "other"})
    state, _ = recorded(settled(), warning("Bad", "one"))
    assert recorded(state, warning("Bad", "one", about=other))[1] == ("one",)


def test_a_results_notice_is_recorded_once_and_again_with_the_next_result() -> None:
    made = Reported(notices=(normal("Made", "made", each_time=True),))
    state = settled()
    for _ in range(2):
        state, _ = step(state, A)
        state, found = recorded(state.finished(A.slot, made))
        assert found == ("made",)
        assert recorded(state)[1] == ()


def test_a_result_that_arrives_while_events_are_recorded_is_recorded_next() -> None:
    state, _ = step(settled(), notices=(warning("Bad", "one"),))
    state = state.copy(world=state.world.with_news(normal("Made", "made")))
    state, found = step(state)
    assert found.start == ()
    assert recorded(state.finished(RecordEvents.activity, None))[1] == ("made",)


def test_recording_events_starts_first_and_delays_only_the_last_action() -> None:
    state, found = step(settled(), A, LAST, notices=(warning("Bad", "one"),))
    assert [each.slot for each in found.start] == [RecordEvents.activity, "a"]
    state, found = step(state.finished("a", None), LAST)
    assert (found.start, found.cancel) == ((), ())
    assert started(step(state.finished(RecordEvents.activity, None), LAST)) == ["z"]


def test_events_that_could_not_be_recorded_are_recorded_later() -> None:
    one, made = warning("Bad", "one"), normal("Made", "made", each_time=True)
    state, _ = step(settled().copy(world=settled().world.with_news(made)), notices=(one,))
    state = state.failed(RecordEvents.activity, refusal(ErrorType.BUG))
    assert recorded(state)[1] == ()
    assert recorded(state, minutes=1)[1] == ("made", "one")


def test_past_notices_are_remembered_up_to_a_limit_and_present_ones_all() -> None:
    many = [warning("Bad", str(number)) for number in range(2 * MOST_RECORDED)]
    state, found = recorded(settled(), *many)
    assert len(found) == len(many)
    assert recorded(state, *many)[1] == ()
    state, _ = recorded(state)
    assert [*state.world.recorded] == [each.digest for each in many[MOST_RECORDED:]]


def test_only_a_short_pause_that_the_other_side_asks_for_is_waited_for_within_a_pass() -> None:
    for type_, seconds, until in (
        (ErrorType.THROTTLED, 2, NOW + 2 * SECOND),
        (ErrorType.THROTTLED, 6, None),
        (ErrorType.DENIED, 2, None),
    ):
        state, found = step(settled(), A)
        refused = refusal(type_).model_copy(update={"pause": seconds * SECOND})
        assert state.failed("a", refused).pauses_until(found.decision, NOW) == until


def test_a_pass_hands_back_lines_and_slots_instead_of_actions() -> None:
    handed = refused().handed_back(decision(A, B))
    assert (handed.actions, handed.planned, handed.blocked) == ((), (), ("a",))
    held = settled().observed(Hello(key=KEY, hold="paused by mia"))
    assert held.handed_back(decision(A, B, Do(name="c"))).planned == ("do a", "do b", "do c")
    same = (Do(name="c"), A, Do(name="c"))
    assert settled().handed_back(decision(*same), dry_run=True).planned == ("do c (2 times)", "do a")
    assert explain(KEY, refused(), handed).hindrances[0].action == "a"


@pytest.mark.parametrize(
    ("retries", "hold", "until", "overdue"),
    [
        ({"a": -1}, "", None, True),
        ({"a": 5}, "", 5, False),
        ({"a": -1, "b": 5}, "", 5, False),
        ({"a": -1}, "paused", None, False),
    ],
    ids=["came before the answer", "is to come", "of an object that another blocks", "while it is held"],
)
def test_a_pass_is_repeated_whose_moment_to_try_again_came_before_its_answer(
    retries: dict[str, int], hold: str, until: int | None, overdue: bool
) -> None:
    refusals = {
        slot: refusal(at=NOW + at * SECOND).model_copy(update={"pause": SECOND * 0}) for slot, at in retries.items()
    }
    state = State(Hello(key=KEY, refusals=refusals)).observing(NOW).observed(Hello(key=KEY, hold=hold))
    _, found = step(state, blocked=tuple(retries))
    assert (found.until, found.overdue) == (None if until is None else NOW + until * SECOND, overdue)
