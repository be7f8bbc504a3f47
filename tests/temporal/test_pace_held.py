"""A worker that takes one task at a time carries out everything, and never two at once."""

from __future__ import annotations

import asyncio

import pytest
from passing import Passes, new_key, working
from temporal_server import TemporalServer, pointing_at
from temporalio import activity
from waiting import eventually

from domain.accounts.passes import PassPool, PoolWorld
from engine.temporal import connect, wake
from workers import adaptive_concurrency

MANY = 12


class CountedPasses(Passes):
    """How many run side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0

    @activity.defn(name=PassPool.activity)
    async def one(self, look: PassPool) -> PoolWorld:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.01)
        self.now -= 1
        return await super().one(look)


async def test_with_one_slot_all_passes_are_made_one_after_the_other(
    temporal: TemporalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await connect(pointing_at(temporal, monkeypatch), "tests")
    passes, keys = CountedPasses(), [new_key(f"paced-{number}") for number in range(MANY)]

    async def made() -> bool:
        return all(passes.of(key) for key in keys)

    async with working(
        client, passes, tuners=(adaptive_concurrency.workflow_tasks(1), adaptive_concurrency.activities(1))
    ):
        for key in keys:
            await wake(client, key)
        await eventually(made, "every pass")
        for key in keys:
            await client.get_workflow_handle(key.workflow_id).terminate("the test is over")
    assert passes.most == 1
