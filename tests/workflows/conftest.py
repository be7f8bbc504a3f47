"""A time-skipping server and a lifecycle on it, for each test.

The server starts in a fifth of a second. Shared by tests it does not stay in order: an activity that was under way when
its workflow was terminated holds the clock of the whole server.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from lifecycles import Lifecycle, server_binary, workers
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.api.testservice.v1 import SleepRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from waiting import PATIENT
from world import World

from engine.temporal_namespace import SEARCH_ATTRIBUTES
from tests.replay.recording import keep, recording

_serials = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "recorded: its history is replayed by every later version (tests/replay)")


async def record(of: Lifecycle, case: str) -> None:
    for key in (of.key, *([of.world.bound] if of.world.bound else [])):
        keep(key.kind, case, await of.env.client.get_workflow_handle(key.workflow_id).fetch_history())


@pytest.fixture
async def env(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[WorkflowEnvironment]:
    started = await WorkflowEnvironment.start_time_skipping(
        data_converter=pydantic_data_converter,
        test_server_existing_path=server_binary(),
        test_server_startup_timeout=timedelta(seconds=30),
    )
    async with started:
        client = started.client
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=SEARCH_ATTRIBUTES)
        )

        async def sleep(duration: timedelta) -> None:
            """As the SDK's, which gives up after 30 s: on a busy machine the work of two skipped hours takes longer."""
            request = SleepRequest()
            request.duration.FromTimedelta(duration)
            await client.test_service.unlock_time_skipping_with_sleep(request, timeout=timedelta(seconds=PATIENT))

        monkeypatch.setattr(started, "sleep", sleep)
        yield started


@pytest.fixture
async def lifecycle(env: WorkflowEnvironment, request: pytest.FixtureRequest) -> AsyncIterator[Lifecycle]:
    """An Account's lifecycle with workers of its own; its workflows are ended with the test."""
    name = f"osd-creds-mgmt-{next(_serials):06}".translate(str.maketrans("013", "bcd"))
    found = Lifecycle(env, World(name, await env.get_current_time()))
    async with workers(env, found.world):
        yield found
        if recording() and request.node.get_closest_marker("recorded"):
            await record(found, request.node.originalname.removeprefix("test_"))
        for key in (found.key, *([found.world.claim.key] if found.world.claim else [])):
            try:
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
            except RPCError:
                continue
