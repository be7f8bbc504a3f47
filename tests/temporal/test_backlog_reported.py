"""`perdure top` shows the tasks that no worker has begun, and those that the claims' binder has before it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from claim_domain import BINDER
from passing import Passes, new_key, working
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker
from waiting import eventually

from domain.backlog_report import Backlog
from domain.claims.passes import BinderWorld, Serve
from domain.decision import Decision, Outcome, Queue
from engine.backlog import of_objectless, of_queues
from engine.temporal import connect, wake
from workers.registry import workflows_of


async def test_tasks_that_no_worker_takes_are_reported_with_their_age(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    passes, keys = Passes(), [new_key(f"waits-{number}") for number in range(3)]
    waiting = [("accounts", "workflow"), (Queue.KUBE.value, "activity")]
    async with Worker(client, task_queue="accounts", workflows=workflows_of("accounts")):
        for key in keys:
            await wake(client, key)

        async def backlog_reported() -> Backlog | None:
            found = await of_queues(client, waiting, datetime.now(UTC))
            return found[0] if found and found[0].what.startswith("3 ") else None

        found = await eventually(backlog_reported, "three passes wait")
        assert found.what == "3 activity tasks in the queue kube"
        assert found.since is not None
        assert datetime.now(UTC) - found.since >= timedelta(seconds=2)
    async with working(client, passes):
        await eventually(lambda: all_passed(passes, keys), "they have been made")

        async def nothing() -> bool:
            return not await of_queues(client, waiting, datetime.now(UTC))

        await eventually(nothing, "nothing waits")


async def all_passed(passes: Passes, keys: list[object]) -> bool:
    return all(passes.of(key) for key in keys)  # type: ignore[arg-type]


class Binder:
    """Batches that leave claims waiting; the first attempt of the next one is never heard of again."""

    def __init__(self) -> None:
        self.attempts = 0

    @activity.defn(name=Serve.activity)
    async def serve(self, batch: Serve) -> BinderWorld:
        self.attempts += 1
        if self.attempts > 1:
            if self.attempts == 2:
                raise RuntimeError("the template evaluator has died")
            await asyncio.Event().wait()
        waits_for = ("880 claims to be bound, the oldest since 08:33:12",)
        decision = Decision(phase="Serving", outcome=Outcome.SETTLED, why="a test", waits_for=waits_for)
        return BinderWorld(key=batch.key, decision=decision, more=True)


async def test_the_binder_reports_how_many_claims_wait_and_that_its_batch_was_interrupted(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    async with (
        Worker(client, task_queue="claims", workflows=workflows_of("claims")),
        Worker(
            client,
            task_queue=Queue.CLAIMS.value,
            activities=[Binder().serve],
            graceful_shutdown_timeout=timedelta(0),
        ),
    ):
        await wake(client, BINDER)
        try:
            waiting, broken_off = await eventually(lambda: both(client), "the binder reports both")
        finally:
            await client.get_workflow_handle(BINDER.workflow_id).terminate("the test is over")
    assert waiting.what == f"{BINDER.path}: 880 claims to be bound, the oldest since 08:33:12"
    assert broken_off.what == f"{BINDER.path}: claims.serve"
    assert "attempt 2" in broken_off.why
    assert "the template evaluator has died" in broken_off.why


async def both(client: Client) -> list[Backlog] | None:
    found = await of_objectless(client, [BINDER], datetime.now(UTC))
    return found if len(found) == 2 else None


async def test_a_batch_that_lasts_long_is_reported_although_nothing_was_interrupted(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    async with Worker(client, task_queue="claims", workflows=workflows_of("claims")):
        await wake(client, BINDER)

        async def backlog_reported(later: timedelta) -> list[Backlog]:
            return await of_objectless(client, [BINDER], datetime.now(UTC) + later)

        found = await eventually(lambda: backlog_reported(timedelta(minutes=1)), "a minute later it is reported")
        assert [each.what for each in found] == [f"{BINDER.path}: claims.serve"]
        assert await backlog_reported(timedelta(0)) == []
        await client.get_workflow_handle(BINDER.workflow_id).terminate("the test is over")
