"""One product for all tests of resource claims, and ground of its own for each."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from claims.claims_ground import Ground
from claims.claims_lab import Lab, laboratory
from localcloud.deployment import Deployment


@pytest.fixture(scope="package")
async def lab(deployment: Deployment) -> AsyncIterator[Lab]:
    """Worker and watcher at work."""
    async with laboratory(deployment) as found:
        await found.start()
        try:
            yield found
            await found.emptied()
        finally:
            await found.stop()


@pytest.fixture
async def ground(lab: Lab) -> AsyncIterator[Ground]:
    """Where one test claims."""
    async with lab.ground() as found:
        yield found


@pytest.fixture
async def elsewhere(lab: Lab) -> AsyncIterator[Ground]:
    """The namespace of another tenant who claims at the same time."""
    async with lab.ground() as found:
        yield found
