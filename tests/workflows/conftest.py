"""The time-skipping server, once per run, and a lifecycle on it per test."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from lifecycles import Lifecycle, server_binary, workers
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from world import World

from engine.temporal import SEARCH_ATTRIBUTES

_serials = itertools.count()


@pytest.fixture(scope="session")
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
async def lifecycle(env: WorkflowEnvironment) -> AsyncIterator[Lifecycle]:
    """An Account's lifecycle with workers of its own; its workflows are ended with the test."""
    name = f"osd-creds-mgmt-{next(_serials):06}".translate(str.maketrans("013", "bcd"))
    found = Lifecycle(env, World(name, await env.get_current_time()))
    async with workers(env, found.world):
        yield found
        for key in (found.key, *([found.world.claim.key] if found.world.claim else [])):
            try:
                await env.client.get_workflow_handle(key.workflow_id).terminate("the test is over")
            except RPCError:
                continue
