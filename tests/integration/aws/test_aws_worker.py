"""The effects in a real worker: cancellation and drain reach them on their threads, and nothing is left behind."""

from __future__ import annotations

import asyncio
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from aws_lab import Lab, region_init
from temporalio import workflow
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import RetryPolicy
from temporalio.exceptions import CancelledError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker
from waiting import until

from domain.accounts.actions.region_initialization import InitializeRegion
from domain.accounts.observed import RegionOutcome
from localcloud.deployment import Deployment
from tests.running.temporal_client import temporal_of
from workers.activity_interceptor import Boundary

pytestmark = pytest.mark.integration


@workflow.defn(name="RegionOnly")
class RegionOnly:
    """One region's initialisation, as the loop would run it."""

    @workflow.run
    async def run(self, action: InitializeRegion) -> RegionOutcome:
        outcome: RegionOutcome = await workflow.execute_activity(
            action.activity,
            action,
            result_type=RegionOutcome,
            start_to_close_timeout=timedelta(minutes=2),
            heartbeat_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=100)),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        return outcome


def worker(client: Client, lab: Lab, threads: ThreadPoolExecutor, queue: str) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=[RegionOnly],
        activities=[lab.activities.initialize_region],
        activity_executor=threads,
        workflow_runner=UnsandboxedWorkflowRunner(),
        interceptors=[Boundary()],
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=1),
    )


async def started(client: Client, action: InitializeRegion, queue: str) -> WorkflowHandle[Any, RegionOutcome]:
    return await client.start_workflow(RegionOnly.run, action, id=f"region-{uuid.uuid4()}", task_queue=queue)


async def initialising(lab: Lab, client: Client, queue: str) -> tuple[str, WorkflowHandle[Any, RegionOutcome]]:
    """An account whose region is being initialised, with an instance that takes an hour to start."""
    account_id, name = await asyncio.to_thread(lab.account)
    lab.emulator.config(run_instances_seconds=3600)
    handle = await started(client, region_init(account_id, name), queue)
    await instances(lab, account_id, 1)
    return account_id, handle


async def instances(lab: Lab, account_id: str, count: int) -> None:
    await asyncio.to_thread(until, lambda: len(lab.instances(account_id)) == count)


@pytest.fixture
async def client(deployment: Deployment) -> Client:
    return await temporal_of(deployment)


async def test_a_cancelled_initialisation_leaves_no_instance(lab: Lab, client: Client) -> None:
    queue = str(uuid.uuid4())
    with ThreadPoolExecutor(4) as threads:
        async with worker(client, lab, threads, queue):
            account_id, handle = await initialising(lab, client, queue)
            await handle.cancel()
            with pytest.raises(WorkflowFailureError) as failed:
                await handle.result()
    assert isinstance(failed.value.cause, CancelledError)
    assert await asyncio.to_thread(lab.instances, account_id) == []


async def test_a_drained_worker_hands_the_initialisation_to_the_next(lab: Lab, client: Client) -> None:
    queue = str(uuid.uuid4())
    with ThreadPoolExecutor(4) as threads:
        async with worker(client, lab, threads, queue):
            account_id, handle = await initialising(lab, client, queue)
        assert await asyncio.to_thread(lab.instances, account_id) == []
        lab.emulator.config(run_instances_seconds=0)
        async with worker(client, lab, threads, queue):
            assert (await handle.result()).ok
    assert await asyncio.to_thread(lab.instances, account_id) == []
