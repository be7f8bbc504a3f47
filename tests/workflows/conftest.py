"""A time-skipping server and a lifecycle on it, for each test.

The server starts in a fifth of a second. Shared by tests it does not stay in order: an activity that was under way when
its workflow was terminated holds the clock of the whole server.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lifecycles import Lifecycle, server_binary, workers
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from world import World

from engine.temporal import SEARCH_ATTRIBUTES

_serials = itertools.count()

# Set to anything, the histories of the tests marked `recorded` are written anew for tests/replay.
RECORD = "PERDURE_RECORD_HISTORIES"
HISTORIES = Path(__file__).parents[1] / "replay" / "histories"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "recorded: its history is replayed by every later version (tests/replay)")


async def record(of: Lifecycle, case: str) -> None:
    HISTORIES.mkdir(exist_ok=True)
    for key in (of.key, *([of.world.bound] if of.world.bound else [])):
        handle = of.env.client.get_workflow_handle(key.workflow_id)
        told = impersonal(json.loads((await handle.fetch_history()).to_json()))
        (HISTORIES / f"{key.kind}-{case}.json").write_text(json.dumps(told, separators=(",", ":")) + "\n")


def impersonal(recorded: Any) -> Any:
    """Without what tells of the machine: stack traces with its paths, identities with its name."""
    if isinstance(recorded, dict):
        kept = {name: impersonal(value) for name, value in recorded.items() if name != "stackTrace"}
        return {**kept, "identity": "worker"} if "identity" in kept else kept
    return [impersonal(item) for item in recorded] if isinstance(recorded, list) else recorded


@pytest.fixture
async def env() -> AsyncIterator[WorkflowEnvironment]:
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
        yield started


@pytest.fixture
async def lifecycle(env: WorkflowEnvironment, request: pytest.FixtureRequest) -> AsyncIterator[Lifecycle]:
    """An Account's lifecycle with workers of its own; its workflows are ended with the test."""
    name = f"osd-creds-mgmt-{next(_serials):06}".translate(str.maketrans("013", "bcd"))
    found = Lifecycle(env, World(name, await env.get_current_time()))
    async with workers(env, found.world):
        yield found
        if RECORD in os.environ and request.node.get_closest_marker("recorded"):
            await record(found, request.node.originalname.removeprefix("test_"))
        for key in (found.key, *([found.world.claim.key] if found.world.claim else [])):
            try:
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
            except RPCError:
                continue
