"""A person's levers and the loop's own: retry, pause, resume, plan, hold, continue-as-new, and a claim's whole life."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from lifecycles import PATIENCE, WORKFLOWS, Lifecycle
from temporalio import workflow
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ActivityError, ApplicationError
from world import held_claim

import workflows.continue_as_new
from domain.accounts.constants import CLAIM_UID_ANNOTATION
from domain.control_annotations import LEVERS
from domain.refusal import AREA_PAUSED
from domain.why import Why
from engine.errors import Conflict, Denied, Invalid, Unavailable
from engine.pauses import AGAIN
from engine.temporal import wake


def refuse(error: Exception) -> Any:
    async def answer(action: Any) -> None:
        raise error

    return answer


async def failed_account(lifecycle: Lifecycle) -> None:
    async def late(action: Any) -> None:
        # After its neighbours: this server loses a workflow task that cancels an activity in the moment of its end.
        await asyncio.sleep(0.3)
        raise Invalid("limit", code="LimitExceeded")

    lifecycle.world.answers["aws.ensure_admin_user"] = late
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_state("Failed")
    await lifecycle.until_why(lambda why: why.outcome == "failed" or bool(why.running))


async def test_a_retry_of_a_healthy_account_is_refused_with_the_reason(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await lifecycle.handle.execute_update("retry", "because")
    cause = refused.value.cause
    assert isinstance(cause, ApplicationError)
    assert cause.type == "NothingToRetry"
    assert "there is nothing to retry" in cause.message
    assert "perdure.dev/retry" not in lifecycle.world.present.metadata.annotations


@pytest.mark.recorded
async def test_a_retry_of_a_failed_account_is_written_on_it_and_honoured_once(lifecycle: Lifecycle) -> None:
    await failed_account(lifecycle)
    del lifecycle.world.answers["aws.ensure_admin_user"]
    await lifecycle.until_why(lambda why: why.outcome == "failed")
    answer = await lifecycle.handle.execute_update("retry", "mended", result_type=str)
    assert "tried again" in answer
    await lifecycle.until_state("PendingVerification")
    annotations = lifecycle.world.present.metadata.annotations
    assert annotations["perdure.dev/retry"].endswith("mended")
    assert annotations["perdure.dev/retried"] == annotations["perdure.dev/retry"]
    assert lifecycle.world.made("aws.create_account") == 1


@pytest.mark.parametrize("signal", ["retry", "retry_now"])
async def test_the_retry_signal_does_as_the_update_and_nothing_on_a_healthy_account(
    lifecycle: Lifecycle, signal: str
) -> None:
    await failed_account(lifecycle)
    del lifecycle.world.answers["aws.ensure_admin_user"]
    await lifecycle.until_why(lambda why: why.outcome == "failed")
    await lifecycle.handle.signal(signal, "from a test")
    await lifecycle.until_state("PendingVerification")
    await lifecycle.resolve()
    await lifecycle.until_state("Ready")
    token = lifecycle.world.present.metadata.annotations["perdure.dev/retry"]
    await lifecycle.handle.signal(signal, "again")
    seen = lifecycle.world.made("accounts.observe_account")
    await lifecycle.wake()
    await lifecycle.until(lambda: lifecycle.world.made("accounts.observe_account") > seen)
    assert lifecycle.world.present.metadata.annotations["perdure.dev/retry"] == token


@pytest.mark.parametrize("by", ["update", "signal", "former signal"])
async def test_pause_holds_everything_and_resume_goes_on(lifecycle: Lifecycle, by: str) -> None:
    await lifecycle.wake()
    await lifecycle.until_why(lambda why: why.waits_for == ("Organization",))
    if by == "update":
        await lifecycle.handle.execute_update("pause", "a test")
    else:
        await lifecycle.handle.signal("pause" if by == "signal" else "pause_now")
    why = await lifecycle.until_why(lambda why: bool(why.hold))
    assert why.hold == "paused"
    await lifecycle.permit(minutes=600)
    why = await lifecycle.until_why(lambda why: bool(why.planned))
    assert why.planned == (f"create AWS account {lifecycle.key.name}",)
    await lifecycle.pass_time(timedelta(hours=1))
    assert lifecycle.world.made("aws.create_account") == 0
    if by == "update":
        await lifecycle.handle.execute_update("resume", "a test")
    else:
        await lifecycle.handle.signal("resume" if by == "signal" else "resume_now")
    await lifecycle.until_state("PendingVerification")


async def unwritable(lifecycle: Lifecycle, lever: str) -> str:
    """Why a lever's update was refused that could not be written on the object."""
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        async with asyncio.timeout(PATIENCE):
            await lifecycle.handle.execute_update(lever, "a test")
    assert isinstance(refused.value.cause, ActivityError)
    assert isinstance(refused.value.cause.cause, ApplicationError)
    return refused.value.cause.cause.message


async def test_a_lever_under_a_pause_of_the_area_is_refused_and_not_written_later(lifecycle: Lifecycle) -> None:
    await failed_account(lifecycle)
    await lifecycle.until_why(lambda why: why.outcome == "failed")
    world = lifecycle.world
    world.answers["kube.patch"] = refuse(Unavailable("not sent, accounts is paused", code=AREA_PAUSED, delay=AGAIN))
    for lever in ("retry", "pause", "resume"):
        assert await unwritable(lifecycle, lever) == "not sent, accounts is paused"
    tried = world.made("kube.patch")
    del world.answers["kube.patch"]
    await lifecycle.pass_time(3 * AGAIN)
    assert world.made("kube.patch") == tried
    assert world.present.metadata.annotations.keys().isdisjoint(LEVERS)


async def test_a_lever_outlasts_a_hiccup_of_the_api_server(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")

    async def once(action: Any) -> None:
        del lifecycle.world.answers["kube.patch"]
        raise Unavailable("no answer")

    lifecycle.world.answers["kube.patch"] = once
    assert (await lifecycle.handle.execute_update("pause", "a test")).endswith("is paused")
    assert lifecycle.world.present.metadata.annotations["perdure.dev/paused"] == "true"


async def test_a_lever_by_a_signal_outlasts_what_passes_by_itself(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    world = lifecycle.world
    world.answers["kube.patch"] = refuse(Unavailable("not sent, accounts is paused", code=AREA_PAUSED, delay=AGAIN))
    before = world.made("kube.patch")
    await lifecycle.handle.signal("pause")
    await lifecycle.until(lambda: world.made("kube.patch") > before)
    del world.answers["kube.patch"]
    await lifecycle.pass_time(2 * AGAIN)
    await lifecycle.until_why(lambda why: bool(why.hold))


@pytest.mark.parametrize("lever", ["retry", "pause", "resume"])
def test_each_lever_is_an_update_and_a_signal_and_says_what_it_does(lever: str) -> None:
    for each in WORKFLOWS:
        definition = workflow._Definition.must_from_class(each)
        assert definition.updates[lever].description
        assert definition.signals[lever].description


async def test_observe_mode_decides_and_starts_nothing(lifecycle: Lifecycle) -> None:
    lifecycle.world.hold = "PERDURE_MODE=observe: nothing is written"
    await lifecycle.wake()
    await lifecycle.permit(minutes=600)
    why = await lifecycle.until_why(lambda why: bool(why.planned))
    assert (why.hold, why.running) == ("PERDURE_MODE=observe: nothing is written", ())
    await lifecycle.pass_time(timedelta(days=2))
    assert lifecycle.world.effects == {}


async def test_plan_says_what_would_be_done_and_does_nothing(lifecycle: Lifecycle) -> None:
    await lifecycle.to_ready()
    await lifecycle.until_why(lambda why: why.outcome == "settled")
    lifecycle.world.edit({"status": {"state": ""}})
    before = lifecycle.world.effects
    plan = await lifecycle.handle.execute_update("plan", result_type=Why)
    assert plan.planned == ("status Creating",)
    assert lifecycle.world.effects == before
    assert (await lifecycle.why()).phase == "Ready"


async def test_continuing_as_new_carries_what_cannot_be_observed(
    lifecycle: Lifecycle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows.continue_as_new, "LONGEST_HISTORY", 30)
    world = lifecycle.world
    world.answers["aws.open_support_case"] = refuse(Denied("no"))
    await lifecycle.wake()
    await lifecycle.permit()
    await lifecycle.until_why(lambda why: any(h.action == "aws.open_support_case" for h in why.hindrances))
    first = (await lifecycle.execution()).execution.run_id
    for _ in range(6):
        count = world.made("aws.open_support_case")
        await lifecycle.wake()
        await lifecycle.pass_time(timedelta(seconds=2))
        await lifecycle.until(lambda n=count: world.made("aws.open_support_case") > n)
    assert (await lifecycle.execution()).execution.run_id != first
    why = await lifecycle.until_why(lambda why: bool(why.hindrances))
    assert why.hindrances[0].attempts >= 6, "attempts are counted over the runs"
    del world.answers["aws.open_support_case"]
    await lifecycle.resolve()
    await lifecycle.wake()
    await lifecycle.pass_time(timedelta(seconds=2))
    await lifecycle.until_state("Ready")
    assert (world.made("aws.create_account"), world.made("aws.list_regions")) == (1, 1)
    assert world.made("aws.initialize_region") == len(world.regions)


# --- a claim ---


async def bound_claim(lifecycle: Lifecycle) -> Lifecycle:
    world = lifecycle.world
    await lifecycle.to_ready()
    world.claim = held_claim("claim-of-" + lifecycle.key.name, world.present)
    world.edit(
        {
            "metadata": {"annotations": {CLAIM_UID_ANNOTATION: world.claim.metadata.uid}},
            "spec": {
                "claimLink": world.claim.metadata.name,
                "claimLinkNamespace": "tenant",
                "legalEntity": {"id": "entity-1", "name": "Entity"},
            },
        }
    )
    claim = Lifecycle(lifecycle.env, world)
    claim.key = world.bound = world.claim.key
    await wake(lifecycle.env.client, claim.key)
    await lifecycle.wake()
    await claim.until(lambda: world.claim is not None and world.claim.status.state == "Ready", "a Ready claim")
    await lifecycle.until(lambda: world.present.status.claimed, "a claimed account")
    return claim


@pytest.mark.recorded
async def test_a_claim_is_fulfilled_and_released_in_order(lifecycle: Lifecycle) -> None:
    claim, world = await bound_claim(lifecycle), lifecycle.world
    world.calls.clear()
    world.edit_claim({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await claim.wake()
    await claim.ended()
    assert world.claim is None
    order = [name for name, _, _ in world.calls if ".observe" not in name]
    assert order[0] == "aws.rotate_keys"
    assert set(order[1:3]) == {"aws.clean_region", "aws.clean_global"}
    assert order[3:] == ["accounts.release", "kube.patch"]
    account = world.present
    assert (account.status.state, account.status.reused, account.spec.claim_link) == ("Ready", True, "")


@pytest.mark.recorded
async def test_a_cleanup_that_keeps_failing_shows_the_account_failed_and_ends_by_itself(lifecycle: Lifecycle) -> None:
    claim, world = await bound_claim(lifecycle), lifecycle.world
    world.answers["aws.clean_region"] = refuse(Conflict("volume in use", code="VolumeInUse"))
    world.edit_claim({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await claim.wake()
    await claim.until(lambda: world.made("aws.clean_region") >= 1)
    for _ in range(8):
        await claim.pass_time(timedelta(seconds=20))
        if world.state == "Failed":
            break
    await claim.until(lambda: world.state == "Failed", "the account shown Failed")
    assert world.condition("Failed")["message"] == "Account Reuse - Failed"
    assert world.claim is not None
    del world.answers["aws.clean_region"]
    await claim.wake()
    await claim.ended()
    assert (world.state, world.present.status.reused) == ("Ready", True)
