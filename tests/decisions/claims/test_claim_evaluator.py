"""Evaluation in processes of its own: limits, lanes, deaths, and what such a process can still do."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from evaluator_functions import Deed, Rendered, Rendering, misbehave, render

from activities.claims.evaluator import EvaluationBug, EvaluationLimit, Evaluator
from activities.claims.evaluator_queueing import SLOW_LANE, LaneFull, Lanes
from domain.claims.templates.errors import TemplateError

ENDLESS = "{% for a in range(90000) if range(90000) | sum == 1 %}{% endfor %}"


PATIENT = timedelta(seconds=60)
HASTY = timedelta(seconds=2)  # enough for what is quick, on a slow machine too


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    """An evaluator with a long limit for every call."""
    async with Evaluator([render, misbehave], processes=2, time=PATIENT) as started:
        yield started


@pytest.fixture
async def hasty() -> AsyncIterator[Evaluator]:
    """An evaluator with a short limit for every call."""
    async with Evaluator([render, misbehave], processes=2, time=HASTY) as started:
        yield started


async def process_of(evaluator: Evaluator) -> int:
    answer = await evaluator.call(misbehave, Deed(name="name its process"), Rendered)
    return int(str(answer.value))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(*pids: int) -> None:
    deadline = time.monotonic() + PATIENT.total_seconds()
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "processes are left behind"
        await asyncio.sleep(0.02)


async def test_a_call_gives_what_the_function_gives(evaluator: Evaluator) -> None:
    request = Rendering(template={"a": ["{{ x | int }}", None, 1.5, True]}, variables={"x": 7})
    assert (await evaluator.call(render, request, Rendered)).value == {"a": [7, None, 1.5, True]}


async def test_a_faulty_template_is_reported_as_by_the_renderer(evaluator: Evaluator) -> None:
    with pytest.raises(TemplateError) as error:
        await evaluator.call(render, Rendering(template="{{ missing }}", what="here"), Rendered)
    assert (error.value.what, error.value.text) == ("here", "'missing' is undefined")
    assert not isinstance(error.value, EvaluationLimit)


async def test_large_requests_and_results_pass(evaluator: Evaluator) -> None:
    request = Rendering(template=["{{ x }}", "{{ x }}"], variables={"x": "a" * 1_000_000, "y": "b" * 3_000_000})
    assert (await evaluator.call(render, request, Rendered)).value == ["a" * 1_000_000] * 2


async def test_a_bug_of_a_function_comes_with_its_traceback(evaluator: Evaluator) -> None:
    with pytest.raises(EvaluationBug, match="KeyError: 'absent'"):
        await evaluator.call(misbehave, Deed(name="raise a bug"), Rendered)


async def test_only_functions_named_before_are_called(evaluator: Evaluator) -> None:
    def other(request: Deed) -> Rendered:
        return Rendered()

    with pytest.raises(ValueError, match="not one of this evaluator's functions"):
        await evaluator.call(other, Deed(name=""), Rendered)


async def test_functions_that_cannot_be_imported_are_reported_at_the_start() -> None:
    def local(request: Deed) -> Rendered:
        return Rendered()

    with pytest.raises(RuntimeError, match=r"(?s)cannot be imported.*AttributeError"):
        async with Evaluator([local]):
            pass


def test_one_process_would_not_be_enough() -> None:
    with pytest.raises(ValueError, match="hold up all others"):
        Evaluator([render], processes=1)


@pytest.mark.parametrize(
    "deed", ["open a file", "connect", "start a program", "fork", "start a thread", "signal its parent", "import"]
)
async def test_code_that_escaped_from_a_template_can_only_compute(evaluator: Evaluator, deed: str) -> None:
    done = await evaluator.call(misbehave, Deed(name=deed), Rendered)
    assert str(done.value).startswith("refused: ")


async def test_every_model_is_built_before_evaluators_are_forked(evaluator: Evaluator) -> None:
    """An evaluator can import nothing, and what it built itself would count as its own memory."""
    assert (await evaluator.call(misbehave, Deed(name="name a model that is not built"), Rendered)).value == ""


async def test_nothing_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    async with Evaluator([misbehave]) as evaluator:
        seen = await evaluator.call(misbehave, Deed(name="read the environment"), Rendered)
    assert "secret" not in str(seen.value)


async def test_a_slow_call_has_its_time_and_is_ended_then_and_named(hasty: Evaluator) -> None:
    began = time.monotonic()
    with pytest.raises(EvaluationLimit, match="claim a/b, check: took longer than 2 s"):
        await hasty.call(render, Rendering(template=["x", ENDLESS], what="claim a/b, check"), Rendered)
    assert time.monotonic() - began > HASTY.total_seconds() * 0.9


async def test_the_process_of_a_slow_call_is_replaced(hasty: Evaluator) -> None:
    before = await process_of(hasty)
    with pytest.raises(EvaluationLimit):
        await hasty.call(render, Rendering(template=ENDLESS), Rendered)
    await gone(before)
    both = await asyncio.gather(*(hasty.call(render, Rendering(template="x"), Rendered) for _ in range(2)))
    assert [each.value for each in both] == ["x", "x"]


async def test_memory_is_limited(evaluator: Evaluator) -> None:
    hoard = "{% set l = [] %}{% for a in range(2000) %}{{ l.append('x' * 1000000 ~ a) }}{% endfor %}"
    with pytest.raises(EvaluationLimit, match="provider x, override: needed more than 256 MiB of memory"):
        await evaluator.call(render, Rendering(template=hoard), Rendered)


async def test_a_function_that_kills_its_process_runs_twice_and_is_reported(evaluator: Evaluator) -> None:
    with pytest.raises(EvaluationLimit, match=r"crashed its process \(signal SIGABRT\)"):
        await evaluator.call(misbehave, Deed(name="die"), Rendered)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_a_process_killed_from_outside_loses_no_call(evaluator: Evaluator) -> None:
    os.kill(await process_of(evaluator), signal.SIGKILL)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_killing_all_processes_loses_no_call(evaluator: Evaluator) -> None:
    process = await process_of(evaluator)
    os.kill(parent_of(process), signal.SIGKILL)
    await gone(process)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_a_cancelled_call_gives_its_answer_to_no_other(evaluator: Evaluator) -> None:
    for _ in range(3):
        slow = asyncio.ensure_future(evaluator.call(render, Rendering(template=ENDLESS), Rendered))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


def endless(evaluator: Evaluator, *keys: str) -> list[asyncio.Future[Rendered]]:
    """Calls that do not end by themselves, one for each key."""
    return [
        asyncio.ensure_future(
            evaluator.call(render, Rendering(template=ENDLESS), Rendered, key=key, author=key.partition("/")[0])
        )
        for key in keys
    ]


async def given_up(calls: list[asyncio.Future[Rendered]]) -> None:
    for each in calls:
        each.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_calls_of_one_object_hold_one_process(evaluator: Evaluator) -> None:
    slow = endless(evaluator, "a/b", "a/b")
    await asyncio.sleep(0.1)
    await evaluator.call(render, Rendering(template="x"), Rendered, key="c/d", author="c")
    assert not any(each.done() for each in slow)
    await given_up(slow)


async def test_many_slow_objects_of_one_author_leave_room_for_others(evaluator: Evaluator) -> None:
    slow = endless(evaluator, "a/1", "a/2", "a/3", "a/4")
    for _ in range(5):
        await asyncio.sleep(0.1)
        await evaluator.call(render, Rendering(template="x"), Rendered, key="b/x", author="b")
    assert not any(each.done() for each in slow)
    await given_up(slow)


async def test_slow_objects_are_ended_one_after_the_other_and_others_go_on_meanwhile(hasty: Evaluator) -> None:
    slow = endless(hasty, "a/1", "a/2")
    others = 0
    while not all(each.done() for each in slow):
        await hasty.call(render, Rendering(template="x"), Rendered, key="b/x", author="b")
        others += 1
        await asyncio.sleep(0.1)
    assert others > 1
    assert all(isinstance(each, EvaluationLimit) for each in await asyncio.gather(*slow, return_exceptions=True))


async def test_the_slow_lane_is_one_wide_for_all_and_left_after_a_while() -> None:
    lanes = Lanes(3, penalty=1.0)
    lanes.slow_down("a/1", "", "b")
    running = most = 0

    async def run(key: str, author: str) -> None:
        nonlocal running, most
        async with lanes.turn(key, author):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    assert not lanes.is_slow("")
    await asyncio.gather(run("a/1", "a"), run("b/1", "b"), run("b/2", "b"))
    assert most == 1
    await asyncio.sleep(1.0)
    await asyncio.gather(run("a/1", "a"), run("b/1", "b"), run("b/2", "b"))
    assert most == 3


async def test_the_slow_lane_is_short_for_all_who_cannot_wait() -> None:
    lanes = Lanes(3, penalty=60)
    go_on = asyncio.Event()

    async def run(number: int, *, patient: bool = False) -> None:
        async with lanes.turn(f"a/{number}", "a", patient=patient):
            await go_on.wait()

    async def is_met() -> None:
        async with lanes.turn("a/0", "a"):
            await asyncio.sleep(0.05)
            lanes.slow_down("a/0", "a")

    # They came before anything was known of their author.
    waves = [asyncio.create_task(is_met()), *(asyncio.create_task(run(number)) for number in range(1, 40))]
    patients = [asyncio.create_task(run(number, patient=True)) for number in range(40, 60)]
    await asyncio.sleep(0.2)
    turned_away = [each for each in waves if each.done() and each.exception()]
    assert all(isinstance(each.exception(), LaneFull) for each in turned_away)
    assert 39 - 2 - SLOW_LANE <= len(turned_away) < 39
    assert not any(each.done() for each in patients)
    async with asyncio.timeout(1), lanes.turn("b/1", "b"):
        pass
    go_on.set()
    await asyncio.gather(*waves, *patients, return_exceptions=True)
    async with asyncio.timeout(1):
        await run(99)


async def test_a_call_refused_by_the_slow_lane_gets_a_reason(hasty: Evaluator) -> None:
    slow = endless(hasty, "a/1")
    await asyncio.gather(*slow, return_exceptions=True)
    more = endless(hasty, *(f"a/{number}" for number in range(2, 10)))
    done, pending = await asyncio.wait(more, timeout=0.2)
    assert (len(done), len(pending)) == (8 - SLOW_LANE, SLOW_LANE)
    assert {str(each.exception()) for each in done} == {
        "templates of a: not evaluated, because too many evaluations of slow templates are waiting; tried again later"
    }
    (met,) = await asyncio.gather(*endless(hasty, "a/1"), return_exceptions=True)
    await given_up(list(pending))
    assert "took longer than 2 s" in str(slow[0].exception())
    assert str(met) == str(slow[0].exception()), "the same error is reported again"


async def test_an_author_holds_all_processes_but_one() -> None:
    lanes = Lanes(3, penalty=1)
    running = most = 0

    async def run(key: str) -> None:
        nonlocal running, most
        async with lanes.turn(key, "a"):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    await asyncio.gather(*(run(f"a/{number}") for number in range(9)))
    assert most == 2


async def test_a_closed_evaluator_leaves_no_process_behind() -> None:
    async with Evaluator([render, misbehave]) as evaluator:
        process = await process_of(evaluator)
        nursery = parent_of(process)
        under_way = asyncio.ensure_future(evaluator.call(render, Rendering(template=ENDLESS), Rendered))
        await asyncio.sleep(0.05)
    await gone(process, nursery)
    with pytest.raises((RuntimeError, EvaluationLimit)):
        await under_way
    with pytest.raises(RuntimeError, match="closed"):
        await evaluator.call(render, Rendering(template="x"), Rendered)


async def test_two_evaluators_run_side_by_side() -> None:
    async with Evaluator([render]) as one, Evaluator([misbehave, render]) as other:
        for each in (one, other):
            assert (await each.call(render, Rendering(template="x"), Rendered)).value == "x"
