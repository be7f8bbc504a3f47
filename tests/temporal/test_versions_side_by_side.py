"""Workers of two versions beside each other on a real Temporal: whose code runs a lifecycle, and how all of it moves.

The second version's workflow is changed so that it could not go on with any history of the first: a single replay
across versions would fail a workflow's task.
"""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest
from changed_pool import ChangedPool
from passing import WORKFLOWS, Passes, new_key, working
from temporal_server import TemporalServer, perdure, pointing_at
from temporalio.api.enums.v1 import EventType, WorkflowTaskFailedCause
from temporalio.client import Client
from temporalio.service import RPCError
from waiting import eventually

from domain.identity import Key
from engine.settings import Settings
from engine.temporal import connect, wake
from engine.worker_versions import (
    VersionStatus,
    count_pinned,
    deployment_config,
    make_current,
    polled_queues,
    versions,
    wake_pinned,
)

CHANGED = [ChangedPool if each.__name__ == "AccountPoolWorkflow" else each for each in WORKFLOWS]
WOKEN_MEANWHILE = WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND
QUEUES = {("accounts", "workflow"), ("kube", "activity")}


class RollOut:
    """An installation of its own on the server, with the passes of its versions' workers."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.deployment = f"perdure-{uuid4().hex[:8]}"
        self.v1, self.v2 = Passes("first"), Passes("second")

    def version(self, build_id: str) -> Any:
        return deployment_config(Settings(installation=self.deployment, worker_build_id=build_id))

    async def promote(self, build_id: str) -> None:
        async def polled() -> bool:
            return await polled_queues(self.client, self.deployment, build_id) >= QUEUES

        await eventually(polled, f"{build_id} polled")

        async def made() -> bool:
            try:
                await make_current(self.client, self.deployment, build_id)
            except RPCError:  # the server is still spreading the news of the version
                return False
            return True

        await eventually(made, f"{build_id} current")

    async def await_looks(self, passes: Passes, keys: list[Key]) -> None:
        async def all_observed() -> bool:
            return set(keys) <= set(passes.made)

        await eventually(all_observed, f"{len(keys)} lifecycles looked at by {passes.why}")

    async def pinned(self, build_id: str, number: int) -> None:
        async def counted() -> bool:
            return await count_pinned(self.client, self.deployment, build_id) == number

        await eventually(counted, f"{number} lifecycles on {build_id}")

    async def failed_tasks(self, key: Key) -> list[str]:
        """The failures of workflow tasks in all runs of the lifecycle.

        A wake that comes while a run ends makes the server refuse that end and ask again: no failure of any code.
        """
        found = []
        async for run in self.client.list_workflows(f"WorkflowId = '{key.workflow_id}'"):
            history = await self.client.get_workflow_handle(key.workflow_id, run_id=run.run_id).fetch_history()
            found += [
                each.workflow_task_failed_event_attributes.failure.message
                for each in history.events
                if each.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
                and each.workflow_task_failed_event_attributes.cause != WOKEN_MEANWHILE
            ]
        return found

    async def end(self, keys: list[Key]) -> None:
        for key in keys:
            await self.client.get_workflow_handle(key.workflow_id).terminate("the test is over")


@pytest.fixture
async def roll_out(alone: TemporalServer, monkeypatch: pytest.MonkeyPatch) -> RollOut:
    """Alone: a task queue with a current version gives workers without one nothing any more."""
    return RollOut(await connect(pointing_at(alone, monkeypatch), "tests"))


async def moves(roll_out: RollOut, number: int, wakes_a_second: float) -> None:
    """So many lifecycles at rest, and one in the middle of a pass, go from v1 to v2 while wakes keep coming."""
    client, v1, v2 = roll_out.client, roll_out.v1, roll_out.v2
    keys = [new_key(f"pool-{index}") for index in range(number)]
    busy, late = new_key("busy"), new_key("late")
    async with working(client, v1, version=roll_out.version("v1")):
        await roll_out.promote("v1")
        for key in keys:
            await wake(client, key)
        await roll_out.await_looks(v1, keys)
        await roll_out.pinned("v1", number)
        v1.go_on.clear()
        await wake(client, busy)
        await roll_out.await_looks(v1, [busy])

        async with working(client, v2, workflows=CHANGED, version=roll_out.version("v2")):
            before = len(v1.made)
            await roll_out.promote("v2")
            await wake(client, late)  # what begins now begins on the new version
            await roll_out.await_looks(v2, [late])
            loading = asyncio.create_task(load(client, keys, wakes_a_second))
            await wake_pinned(client, roll_out.deployment, ["v1"], per_second=100)
            await roll_out.await_looks(v2, keys)
            assert len(v1.made) == before  # what waits moves without another look on the old version
            assert busy not in v2.made  # what is under way is finished where it began
            v1.go_on.set()
            await roll_out.await_looks(v2, [busy])
            loading.cancel()
            await roll_out.pinned("v1", 0)
            await roll_out.pinned("v2", number + 2)
            v2.made.clear()
            for key in keys:  # no wake was lost, and none is: each is followed by a look
                await wake(client, key)
            await roll_out.await_looks(v2, keys)
            assert [failed for key in (*keys, busy, late) for failed in await roll_out.failed_tasks(key)] == []
            status = {each.build_id: each.status for each in await versions(client, roll_out.deployment)}
            assert status["v2"] is VersionStatus.CURRENT
            assert status["v1"] in (VersionStatus.DRAINING, VersionStatus.DRAINED)
            await roll_out.end([*keys, busy, late])


async def load(client: Client, keys: list[Key], wakes_a_second: float) -> None:
    while True:
        for key in keys:
            await wake(client, key)
            await asyncio.sleep(1 / wakes_a_second)


async def test_lifecycles_move_to_another_version_without_a_replay(roll_out: RollOut) -> None:
    await moves(roll_out, number=8, wakes_a_second=5)


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_five_hundred_lifecycles_move_under_load(roll_out: RollOut) -> None:
    await moves(roll_out, number=500, wakes_a_second=20)


async def test_without_versions_the_same_change_fails_the_workflows_task(roll_out: RollOut) -> None:
    """Which shows that the change counts."""
    key = new_key()
    async with working(roll_out.client, roll_out.v1):
        await wake(roll_out.client, key)
        await roll_out.await_looks(roll_out.v1, [key])
    async with working(roll_out.client, roll_out.v2, workflows=CHANGED):
        await wake(roll_out.client, key)

        async def failed() -> list[str]:
            return await roll_out.failed_tasks(key)

        assert "TMPRL1100" in (await eventually(failed, "a failed task"))[0]
    await roll_out.end([key])


def test_a_version_without_workers_is_not_made_current(temporal: TemporalServer) -> None:
    ended = perdure(temporal, "default", "temporal", "promote", "--build-id", "v9", "--areas", "claims", "--wait", "0")
    assert ended.returncode == 1
    assert "no worker of version v9 of perdure polls: claims (workflow), claims-passes (activity)" in ended.stderr
    assert "the version was not made current" in ended.stderr
    listed = perdure(temporal, "default", "temporal", "versions")
    assert "no worker with a build id has ever polled" in listed.stdout
