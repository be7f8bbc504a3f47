"""Claims, handles, pools and the binder in time: who looks when, what crosses on the way, and what a person may do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from claim_domain import BINDER
from claims_world import HANDLE, PATIENCE, POOL, READY, STALLED, Area, area, claim, until_then
from lifecycles import BUSY_MACHINE
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment

import workflows.continue_as_new
from domain.claims import phases
from domain.claims.passes import BinderWorld, ObjectWorld, PassClaim, PassHandle, PassPool, PoolWorld, Serve
from domain.decision import Action, Decision
from domain.identity import Key
from domain.model import Model
from domain.why import Why
from domain.writes import Patch
from engine import clock
from engine.errors import Denied, Unavailable
from engine.temporal import (
    OP_DEADLINE,
    OP_OWNER,
    OP_PHASE,
    OP_WAITS_FOR,
    open_with,
    signal_if_open,
    signal_with_start,
    wake,
)

PASSES: dict[Key, type[Action]] = {claim(): PassClaim, HANDLE: PassHandle, POOL: PassPool, BINDER: Serve}
OF_OBJECTS = [key for key in PASSES if key != BINDER]
EACH = pytest.mark.parametrize("key", OF_OBJECTS, ids=lambda key: key.kind)


@pytest.fixture
async def claims(env: WorkflowEnvironment) -> AsyncIterator[Area]:
    async with area(env) as found:
        yield found


def world_of(key: Key, decision: Decision, **fields: Any) -> Model:
    """What a pass over it, or a batch, comes to."""
    kind: type[Model] = {"ResourcePool": PoolWorld, "ClaimBinder": BinderWorld}.get(key.kind, ObjectWorld)
    return kind(key=key, decision=decision, **fields)


def always(decision: Decision, **fields: Any) -> Any:
    async def answer(action: Any) -> Model:
        return world_of(action.key, decision, **fields)

    return answer


def until(end: datetime) -> Any:
    """Settled until then, and for good afterwards: a deadline in the past would ask for a look each second."""

    async def answer(action: Any) -> Model:
        return world_of(action.key, until_then(end) if clock.now() < end else READY)

    return answer


def refuse(error: Exception) -> Any:
    async def answer(action: Any) -> Model:
        raise error

    return answer


def served(at: datetime, decision: Decision = READY) -> ObjectWorld:
    return ObjectWorld(key=claim(), decision=decision, at=at)


# --- who looks when ---


@pytest.mark.parametrize("key", [claim(), HANDLE], ids=lambda key: key.kind)
async def test_a_workflow_opened_behind_a_pass_looks_only_at_the_deadline(claims: Area, key: Key) -> None:
    end = await claims.now() + timedelta(hours=3)
    await open_with(claims.env.client, key, ObjectWorld(key=key, decision=until_then(end)))
    why = await claims.why(key, lambda why: why.phase == "Ready")
    assert why.deadline == end
    await claims.env.sleep(timedelta(hours=2, minutes=59))
    assert claims.asked(PASSES[key]) == []
    await claims.env.sleep(timedelta(minutes=2))
    looks = await claims.looks(PASSES[key], 1)
    assert looks[0].woken is False, "a deadline has come without any event"
    assert timedelta(0) <= claims.times(PASSES[key])[0] - end < BUSY_MACHINE


async def test_a_workflow_opened_behind_a_pass_starts_with_what_it_shows(claims: Area) -> None:
    """No signal and no change of its search attributes: both are events of each claim's history."""
    end = await claims.now() + timedelta(hours=3)
    decision = until_then(end).model_copy(update={"waits_for": ("a friend",), "owner": "ResourcePool/poolboy/spares"})
    await open_with(claims.env.client, claim(), served(await claims.now(), decision), signal="served")
    await claims.why(claim(), lambda why: why.deadline == end)
    assert await shown_and_written(claims) == (("Ready", ["a friend"], end, "ResourcePool/poolboy/spares"), 0)
    later = end + timedelta(hours=1)
    await open_with(claims.env.client, claim(), served(await claims.now(), until_then(later)), signal="served")
    await claims.why(claim(), lambda why: why.deadline == later)
    assert await shown_and_written(claims) == (("Ready", [], later, None), 1)


async def shown_and_written(claims: Area) -> tuple[tuple[object, ...], int]:
    """A claim's search attributes, and how often its workflow has written them."""
    described = await claims.handle(claim()).describe()
    found = described.typed_search_attributes
    events = (await claims.handle(claim()).fetch_history()).events
    written = sum(each.event_type == EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES for each in events)
    shown = (found.get(OP_PHASE), list(found.get(OP_WAITS_FOR, ())), found.get(OP_DEADLINE), found.get(OP_OWNER))
    return shown, written


async def test_a_claim_that_the_binder_ends_observes_itself_only_when_the_binder_did_not(claims: Area) -> None:
    end = await claims.now() + timedelta(hours=1)
    patient = until_then(end).model_copy(update={"patience": timedelta(seconds=20)})
    await open_with(claims.env.client, claim(), ObjectWorld(key=claim(), decision=patient))
    why = await claims.why(claim(), lambda why: why.phase == "Ready")
    assert why.deadline == end
    await claims.env.sleep(timedelta(hours=1, seconds=15))
    assert claims.asked(PassClaim) == []
    claims.play(PassClaim, always(phases.GONE, exists=False))
    await claims.env.sleep(timedelta(seconds=30))
    await claims.looks(PassClaim, 1)
    assert timedelta(seconds=20) <= claims.times(PassClaim)[0] - end < timedelta(seconds=20) + BUSY_MACHINE


async def test_a_claim_that_the_binder_has_ended_is_notified_and_ends_without_observing(claims: Area) -> None:
    end = await claims.now() + timedelta(hours=1)
    patient = until_then(end).model_copy(update={"patience": timedelta(seconds=20)})
    await open_with(claims.env.client, claim(), ObjectWorld(key=claim(), decision=patient))
    gone = ObjectWorld(key=claim(), exists=False, decision=phases.GONE, at=end)
    await signal_if_open(claims.env.client, claim(), "ended", gone)
    async with asyncio.timeout(PATIENCE):
        await claims.handle(claim()).result()
    assert claims.asked(PassClaim) == []
    await signal_if_open(claims.env.client, claim(), "ended", gone)  # the lifecycle has ended, which is no error


@pytest.mark.parametrize("key", PASSES, ids=lambda key: key.kind)
async def test_a_pass_gets_the_versions_of_the_wake(claims: Area, key: Key) -> None:
    claims.play(PASSES[key], always(until_then(await claims.now() + timedelta(hours=1))))
    await wake(claims.env.client, key, {"ResourceClaim": "9", "ResourceHandle": "10"})
    looks = await claims.looks(PASSES[key], 1)
    assert looks[0].seen == {"ResourceClaim": "9", "ResourceHandle": "10"}
    if key != BINDER:
        assert looks[0].woken is True
    await claims.why(key, lambda why: why.phase == "Ready")
    await claims.env.sleep(timedelta(minutes=10))
    assert len(claims.asked(PASSES[key])) == 1


@pytest.mark.parametrize("key", [claim(), HANDLE, POOL], ids=lambda key: key.kind)
async def test_a_pass_sees_what_the_one_before_wrote(claims: Area, key: Key) -> None:
    answer = always(until_then(await claims.now() + timedelta(hours=1)))

    async def wrote(look: Any) -> Any:
        world = await answer(look)
        return world.model_copy(update={"known": world.known.having_written({"ResourceHandle": "10"})})

    claims.play(PASSES[key], wrote)
    await wake(claims.env.client, key, {"ResourceHandle": "9"})
    await claims.looks(PASSES[key], 1)
    await claims.why(key, lambda why: why.phase == "Ready")
    await wake(claims.env.client, key)
    looks = await claims.looks(PASSES[key], 2)
    assert looks[0].versions == {"ResourceHandle": "9"}
    assert looks[1].versions == {"ResourceHandle": "10"}


@EACH
async def test_an_object_that_is_gone_ends_its_workflow(claims: Area, key: Key) -> None:
    claims.play(PASSES[key], always(phases.GONE, exists=False))
    await wake(claims.env.client, key)
    async with asyncio.timeout(PATIENCE):
        await claims.handle(key).result()


async def test_the_binder_goes_on_at_once_while_a_claim_waits(claims: Area) -> None:
    batches = 0

    async def batch(look: Serve) -> BinderWorld:
        nonlocal batches
        batches += 1
        return BinderWorld(key=look.key, decision=READY, more=batches < 4)

    claims.play(Serve, batch)
    await wake(claims.env.client, BINDER)
    await claims.looks(Serve, 4)
    await claims.env.sleep(timedelta(minutes=5))
    assert batches == 4
    assert claims.times(Serve)[3] - claims.times(Serve)[0] < BUSY_MACHINE


# --- claims ask the binder, and the binder answers claims ---


async def test_the_binder_gets_the_claims_that_ask_and_reports_each_batch_once(claims: Area) -> None:
    await signal_with_start(claims.env.client, BINDER, "serve", claim("one"))
    assert (await claims.looks(Serve, 1))[0].asked == (claim("one"),)
    await wake(claims.env.client, BINDER)
    assert (await claims.looks(Serve, 2))[1].asked == ()


async def test_claims_that_ask_during_a_batch_come_into_the_next(claims: Area) -> None:
    go_on = asyncio.Event()

    async def slow(look: Serve) -> BinderWorld:
        await go_on.wait()
        return BinderWorld(key=look.key, decision=READY)

    claims.play(Serve, slow)
    await signal_with_start(claims.env.client, BINDER, "serve", claim("one"))
    await claims.looks(Serve, 1)
    for name in ("one", "two"):  # the first one again: the batch may have looked at it before it asked
        await signal_with_start(claims.env.client, BINDER, "serve", claim(name))
    go_on.set()
    assert (await claims.looks(Serve, 2))[1].asked == (claim("one"), claim("two"))


async def test_claims_that_have_asked_survive_a_batch_that_was_refused(claims: Area) -> None:
    claims.play(Serve, refuse(Denied("no rights")))
    await signal_with_start(claims.env.client, BINDER, "serve", claim("one"))
    await claims.why(BINDER, lambda why: bool(why.hindrances))
    claims.answers.clear()
    await wake(claims.env.client, BINDER)
    looks = await claims.looks(Serve, 2)
    assert looks[-1].asked == (claim("one"),)


async def test_claims_that_have_asked_survive_the_end_of_a_run(claims: Area, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows.continue_as_new, "LONGEST_HISTORY", 40)
    await wake(claims.env.client, BINDER)
    await claims.looks(Serve, 1)
    first = await claims.run_id(BINDER)
    for number in range(12):
        await claims.surely(lambda n=number: signal_with_start(claims.env.client, BINDER, "serve", claim(f"claim-{n}")))
        await claims.until(
            lambda n=number: any(claim(f"claim-{n}") in look.asked for look in claims.asked(Serve)),
            f"claim-{number} in a batch",
        )
    assert await claims.run_id(BINDER) != first


async def test_the_binders_answer_replaces_the_earlier_observation(claims: Area) -> None:
    at = await claims.now()
    await open_with(claims.env.client, claim(), served(at, STALLED), signal="served")
    await claims.why(claim(), lambda why: why.phase == "Stalled")
    await open_with(claims.env.client, claim(), served(at + timedelta(seconds=1)), signal="served")
    await claims.why(claim(), lambda why: why.phase == "Ready")
    assert claims.asked(PassClaim) == []


async def test_a_late_answer_of_the_binder_does_not_hide_a_newer_end(claims: Area) -> None:
    """A person has moved the end nearer after the binder looked; what it saw arrives when that is known already."""
    began = await claims.now()
    sooner, later = began + timedelta(hours=1), began + timedelta(hours=5)
    at = began + timedelta(seconds=20)
    claims.play(PassClaim, always(until_then(sooner), at=at))
    await wake(claims.env.client, claim())
    await claims.why(claim(), lambda why: why.deadline == sooner)
    await open_with(claims.env.client, claim(), served(began, until_then(later)), signal="served")
    await claims.env.sleep(timedelta(minutes=1))
    assert (await claims.why(claim(), lambda why: True)).deadline == sooner
    await open_with(claims.env.client, claim(), served(at + timedelta(seconds=1), until_then(later)), signal="served")
    await claims.why(claim(), lambda why: why.deadline == later)


async def test_an_answer_that_overtakes_the_question_counts(claims: Area) -> None:
    """The binder reports the claim's state while the pass that asked it has not ended."""
    go_on = asyncio.Event()

    async def asks(look: PassClaim) -> ObjectWorld:
        began = clock.now()
        await go_on.wait()
        return ObjectWorld(key=look.key, decision=phases.awaiting_binder(began + timedelta(seconds=15)), at=began)

    claims.play(PassClaim, asks)
    await wake(claims.env.client, claim())
    await claims.looks(PassClaim, 1)
    newer = claims.times(PassClaim)[0] + timedelta(seconds=1)
    await open_with(claims.env.client, claim(), served(newer), signal="served")
    go_on.set()
    await claims.why(claim(), lambda why: why.phase == "Ready" and not why.running)
    await claims.env.sleep(timedelta(minutes=5))
    assert len(claims.asked(PassClaim)) == 1


async def test_a_claim_that_a_pass_finds_gone_is_gone_whatever_the_binder_answers(claims: Area) -> None:
    go_on = asyncio.Event()

    async def gone(look: PassClaim) -> ObjectWorld:
        began = clock.now()
        await go_on.wait()
        return ObjectWorld(key=look.key, exists=False, decision=phases.GONE, at=began)

    claims.play(PassClaim, gone)
    await wake(claims.env.client, claim())
    await claims.looks(PassClaim, 1)
    newer = claims.times(PassClaim)[0] + timedelta(seconds=1)
    await open_with(claims.env.client, claim(), served(newer), signal="served")
    go_on.set()
    async with asyncio.timeout(PATIENCE):
        await claims.handle(claim()).result()


async def test_a_claim_that_waits_for_the_binder_takes_any_answer_and_asks_again_in_time(claims: Area) -> None:
    async def asks(look: PassClaim) -> ObjectWorld:
        return ObjectWorld(
            key=look.key,
            decision=phases.awaiting_binder(clock.now() + timedelta(seconds=15)),
            at=clock.now(),
        )

    claims.play(PassClaim, asks)
    before = await claims.now() - timedelta(minutes=1)
    await wake(claims.env.client, claim())
    await claims.why(claim(), lambda why: why.phase == "Binding")
    await claims.env.sleep(timedelta(seconds=16))
    assert [look.woken for look in (await claims.looks(PassClaim, 2))] == [True, False]
    await open_with(claims.env.client, claim(), served(before), signal="served")
    await claims.why(claim(), lambda why: why.phase == "Ready")


# --- levers ---


@EACH
async def test_a_stalled_object_may_be_retried(claims: Area, key: Key) -> None:
    claims.play(PASSES[key], always(STALLED))
    await wake(claims.env.client, key)
    await claims.why(key, lambda why: why.phase == "Stalled")
    answer = await claims.handle(key).execute_update("retry", "mended", result_type=str)
    assert "tried again" in answer
    (write,) = claims.asked(Patch)
    token = write.patch["metadata"]["annotations"]["perdure.dev/retry"]
    assert (write.key, token.endswith("mended")) == (key, True)
    assert (await claims.looks(PASSES[key], 2))[1].woken is True


@pytest.mark.parametrize("key", PASSES, ids=lambda key: key.kind)
async def test_there_is_nothing_to_retry_where_all_is_well(claims: Area, key: Key) -> None:
    await wake(claims.env.client, key)
    await claims.why(key, lambda why: why.phase == "Ready")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await claims.handle(key).execute_update("retry", "because")
    assert isinstance(refused.value.cause, ApplicationError)
    assert refused.value.cause.type == "NothingToRetry"
    assert claims.asked(Patch) == []


@EACH
async def test_a_pause_is_written_on_the_object_and_taken_off_again(claims: Area, key: Key) -> None:
    await wake(claims.env.client, key)
    await claims.why(key, lambda why: why.phase == "Ready")
    await claims.handle(key).execute_update("pause", "a test")
    await claims.handle(key).execute_update("resume", "a test")
    noted = [write.patch["metadata"]["annotations"]["perdure.dev/paused"] for write in claims.asked(Patch)]
    assert noted == ["true", None]
    await claims.looks(PASSES[key], 2)


async def test_the_binder_cannot_be_paused_and_says_so(claims: Area) -> None:
    await wake(claims.env.client, BINDER)
    await claims.why(BINDER, lambda why: why.phase == "Ready")
    for lever in ("pause", "resume"):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await claims.handle(BINDER).execute_update(lever, "a test")
        assert isinstance(refused.value.cause, ApplicationError)
        assert "has no object" in refused.value.cause.message
    await claims.handle(BINDER).signal("pause")
    await wake(claims.env.client, BINDER)
    await claims.looks(Serve, 2)
    assert claims.asked(Patch) == []


@pytest.mark.parametrize("lever", ["retry", "pause", "resume"])
async def test_a_lever_of_the_web_ui_that_cannot_be_written_ends_nothing(claims: Area, lever: str) -> None:
    claims.play(PassClaim, always(STALLED))
    claims.play(Patch, refuse(Denied("no rights on resourceclaims")))
    await wake(claims.env.client, claim())
    await claims.why(claim(), lambda why: why.phase == "Stalled")
    await claims.handle(claim()).signal(lever)
    await claims.looks(Patch, 1)
    await wake(claims.env.client, claim())
    await claims.looks(PassClaim, 2)
    await claims.why(claim(), lambda why: why.phase == "Stalled")


@pytest.mark.parametrize("key", PASSES, ids=lambda key: key.kind)
async def test_a_plan_is_an_observation_that_does_nothing(claims: Area, key: Key) -> None:
    await wake(claims.env.client, key)
    await claims.why(key, lambda why: why.phase == "Ready")
    would = READY.model_copy(update={"planned": ("delete everything",)})
    claims.play(PASSES[key], always(would))
    plan: Why = await claims.handle(key).execute_update("plan", result_type=Why)
    assert plan.planned == ("delete everything",)
    assert [look.dry_run for look in claims.asked(PASSES[key])] == [False, True]
    assert (await claims.why(key, lambda why: True)).planned == ()


@EACH
async def test_a_bug_is_shown_and_tried_again_by_itself(claims: Area, key: Key) -> None:
    claims.play(PASSES[key], refuse(KeyError("resources")))
    await wake(claims.env.client, key)
    await claims.why(key, lambda why: why.phase == "Unknown" or bool(why.hindrances))
    claims.answers.clear()
    await claims.env.sleep(timedelta(minutes=15))
    await claims.why(key, lambda why: why.phase == "Ready" and not why.hindrances)


async def test_an_outage_is_waited_out_by_the_server_and_what_was_asked_stays_fresh(claims: Area) -> None:
    claims.play(PassClaim, refuse(Unavailable("the API server does not answer")))
    await wake(claims.env.client, claim())
    await claims.looks(PassClaim, 3)
    claims.answers.clear()
    await claims.why(claim(), lambda why: why.phase == "Ready")
    assert all(look.woken for look in claims.asked(PassClaim))


# --- long lives ---


@EACH
async def test_a_long_life_goes_on_in_a_new_run_with_what_cannot_be_read_again(
    claims: Area, monkeypatch: pytest.MonkeyPatch, key: Key
) -> None:
    monkeypatch.setattr(workflows.continue_as_new, "LONGEST_HISTORY", 30)
    await wake(claims.env.client, key)
    await claims.looks(PASSES[key], 1)
    first = await claims.run_id(key)
    for number in range(2, 9):
        await claims.rests(key)
        await claims.surely(lambda: wake(claims.env.client, key))
        await claims.looks(PASSES[key], number)
    await claims.rests(key)
    assert await claims.run_id(key) != first
    end = await claims.now() + timedelta(hours=1)
    claims.play(PASSES[key], until(end))
    await claims.surely(lambda: wake(claims.env.client, key))
    await claims.rests(key)
    await claims.why(key, lambda why: why.deadline == end)
    await claims.env.sleep(timedelta(minutes=61))
    nearly = timedelta(seconds=30)
    await claims.until(lambda: any(abs(at - end) < nearly for at in claims.times(PASSES[key])), "a look at the end")
