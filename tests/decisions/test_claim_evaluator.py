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
from activities.claims.evaluator_lanes import Lanes
from domain.claims.templates import TemplateError

ENDLESS = "{% for a in range(90000) if range(90000) | sum == 1 %}{% endfor %}"


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator([render, misbehave], processes=2, time=timedelta(seconds=0.5)) as started:
        yield started


async def process_of(evaluator: Evaluator) -> int:
    told = await evaluator.call(misbehave, Deed(name="tell its process"), Rendered)
    return int(str(told.value))


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(*pids: int) -> None:
    deadline = time.monotonic() + 10
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline, "processes are left behind"
        await asyncio.sleep(0.02)


async def test_a_call_gives_what_the_function_gives(evaluator: Evaluator) -> None:
    request = Rendering(template={"a": ["{{ x | int }}", None, 1.5, True]}, variables={"x": 7})
    assert (await evaluator.call(render, request, Rendered)).value == {"a": [7, None, 1.5, True]}


async def test_a_faulty_template_is_told_as_by_the_renderer(evaluator: Evaluator) -> None:
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

    with pytest.raises(ValueError, match="none of the functions"):
        await evaluator.call(other, Deed(name=""), Rendered)


async def test_functions_that_cannot_be_imported_are_told_at_the_start() -> None:
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


async def test_nothing_of_the_environment_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    async with Evaluator([misbehave]) as evaluator:
        seen = await evaluator.call(misbehave, Deed(name="read the environment"), Rendered)
    assert "secret" not in str(seen.value)


async def test_a_slow_call_is_ended_in_its_time_and_named(evaluator: Evaluator) -> None:
    began = time.monotonic()
    with pytest.raises(EvaluationLimit, match=r"claim a/b, check: took longer than 0\.5 s"):
        await evaluator.call(render, Rendering(template=["x", ENDLESS], what="claim a/b, check"), Rendered)
    assert 0.4 < time.monotonic() - began < 1.5


async def test_the_process_of_a_slow_call_is_replaced(evaluator: Evaluator) -> None:
    before = await process_of(evaluator)
    with pytest.raises(EvaluationLimit):
        await evaluator.call(render, Rendering(template=ENDLESS), Rendered)
    await gone(before)
    both = await asyncio.gather(*(evaluator.call(render, Rendering(template="x"), Rendered) for _ in range(2)))
    assert [each.value for each in both] == ["x", "x"]


async def test_memory_is_limited(evaluator: Evaluator) -> None:
    hoard = "{% set l = [] %}{% for a in range(2000) %}{{ l.append('x' * 1000000 ~ a) }}{% endfor %}"
    with pytest.raises(EvaluationLimit, match="provider x, override: needed more than 256 MiB of memory"):
        await evaluator.call(render, Rendering(template=hoard), Rendered)


async def test_a_function_that_brings_its_process_down_does_so_twice_and_is_told(evaluator: Evaluator) -> None:
    with pytest.raises(EvaluationLimit, match=r"brought its process down \(signal SIGABRT\)"):
        await evaluator.call(misbehave, Deed(name="die"), Rendered)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_a_process_killed_from_outside_costs_nobody_a_call(evaluator: Evaluator) -> None:
    os.kill(await process_of(evaluator), signal.SIGKILL)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_all_processes_killed_cost_nobody_a_call(evaluator: Evaluator) -> None:
    process = await process_of(evaluator)
    os.kill(parent_of(process), signal.SIGKILL)
    await gone(process)
    assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_a_cancelled_call_leaves_its_answer_to_nobody(evaluator: Evaluator) -> None:
    for _ in range(3):
        slow = asyncio.ensure_future(evaluator.call(render, Rendering(template=ENDLESS), Rendered))
        await asyncio.sleep(0.05)
        slow.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        assert (await evaluator.call(render, Rendering(template="x"), Rendered)).value == "x"


async def test_calls_of_one_object_run_one_after_the_other_and_hold_one_process(evaluator: Evaluator) -> None:
    slow = [
        asyncio.ensure_future(evaluator.call(render, Rendering(template=ENDLESS), Rendered, key="a/b"))
        for _ in range(2)
    ]
    await asyncio.sleep(0.1)
    began = time.monotonic()
    await evaluator.call(render, Rendering(template="x"), Rendered, key="c/d")
    assert time.monotonic() - began < 0.3
    ended = await asyncio.gather(*slow, return_exceptions=True)
    assert all(isinstance(each, EvaluationLimit) for each in ended)
    assert time.monotonic() - began > 0.8


async def test_many_slow_objects_of_one_author_leave_room_for_others(evaluator: Evaluator) -> None:
    slow = [
        asyncio.ensure_future(
            evaluator.call(render, Rendering(template=ENDLESS), Rendered, key=f"a/{number}", author="a")
        )
        for number in range(4)
    ]
    for _ in range(15):
        began = time.monotonic()
        await evaluator.call(render, Rendering(template="x"), Rendered, key="b/x", author="b")
        assert time.monotonic() - began < 0.3
        await asyncio.sleep(0.1)
    assert all(isinstance(each, EvaluationLimit) for each in await asyncio.gather(*slow, return_exceptions=True))


async def test_the_slow_lane_is_one_wide_for_all_and_left_after_a_while() -> None:
    lanes = Lanes(3, penalty=0.3)
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
    await asyncio.sleep(0.3)
    await asyncio.gather(run("a/1", "a"), run("b/1", "b"), run("b/2", "b"))
    assert most == 3


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


async def test_two_evaluators_stand_side_by_side() -> None:
    async with Evaluator([render]) as one, Evaluator([misbehave, render]) as other:
        for each in (one, other):
            assert (await each.call(render, Rendering(template="x"), Rendered)).value == "x"
