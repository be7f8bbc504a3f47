"""A real Temporal of these tests' own: the development server with its store in a file, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from encryption_keys import add_key
from temporal_server import TemporalServer, serving


@pytest.fixture(scope="session")
async def temporal(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TemporalServer]:
    async with serving(tmp_path_factory.mktemp("temporal")) as server:
        yield server


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The directory of a key for payloads."""
    return add_key(tmp_path / "keys", "a")
