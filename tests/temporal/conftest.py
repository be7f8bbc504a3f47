"""A real Temporal of these tests' own: the development server with its store in a file, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporal_server import TemporalServer, serving


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    async with serving(tmp_path_factory.mktemp("temporal")) as server:
        yield server
