"""A demo's limit moves on with every change of what it shows, and stays where nothing changes."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import cast

from temporalio.client import Client

from domain.accounts import ACCOUNT
from engine.kube.api import KubeApi
from engine.kube.json import JsonObject
from localcloud.demo import command
from localcloud.demo.scenarios import SCENARIOS
from localcloud.demo.stage import Row, Stage
from localcloud.deployment import Deployment


class Unseen:
    """A spectator that shows nothing."""

    def tell(self, line: str) -> None:
        """Drop the line."""

    def show(self, rows: tuple[Row, ...]) -> None:
        """Drop the rows."""


def account(state: str) -> JsonObject:
    return {"metadata": {"namespace": "ns", "name": "one", "uid": "u1"}, "status": {"state": state}}


async def test_only_a_change_moves_the_limit_of_a_demo(tmp_path: Path) -> None:
    stage = Stage(
        kube=cast(KubeApi, None),
        temporal=cast(Client, None),
        deployment=Deployment(tmp_path),
        emulator=None,
        manifests=tmp_path,
        spectator=Unseen(),
        scenario=SCENARIOS["accounts"],
    )
    learn = stage.objects._learn
    async with asyncio.timeout(1) as limit:
        stage.on_progress = partial(command.extend, limit)

        await learn(ACCOUNT, "ADDED", account("Creating"))
        first = limit.when()
        await learn(ACCOUNT, "MODIFIED", account("Creating"))
        unchanged = limit.when()
        await learn(ACCOUNT, "MODIFIED", account("Ready"))
        changed = limit.when()

    assert first is not None
    assert changed is not None
    assert first > asyncio.get_running_loop().time() + command.STANDSTILL_SECONDS - 10
    assert unchanged == first
    assert changed > first
