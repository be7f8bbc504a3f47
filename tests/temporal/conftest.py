"""A real Temporal of these tests' own: the development server with its store in a file, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from encryption_keys import add_key
from temporal_server import TemporalServer, serving
from temporalio.client import Client

from engine.temporal_namespace import bootstrap


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    async with serving(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture
async def alone(temporal: TemporalServer) -> TemporalServer:
    """The server in a namespace of the test's own: other tests' workers stay among the pollers for minutes."""
    name = f"alone-{uuid4().hex[:8]}"
    await bootstrap(await Client.connect(temporal.address, namespace=name))
    return replace(temporal, namespace=name)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The directory of a key for payloads."""
    return add_key(tmp_path / "keys", "a")
