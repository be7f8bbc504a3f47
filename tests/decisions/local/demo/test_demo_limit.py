"""A demo's limit moves on with every change of what it shows, and stays where nothing changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import cast

from temporalio.client import Client

from domain.accounts import ACCOUNT
from domain.identity import Kind
from engine.kube.api import KubeApi, Listing, WatchEvent
from engine.kube.json import JsonObject
from localcloud.demo import command
from localcloud.demo.scenarios import SCENARIOS
from localcloud.demo.stage import Row, Stage
from localcloud.deployment import Deployment


class Kube:
    """An API server without objects, whose watch sends the events that it is given."""

    def __init__(self) -> None:
        self.events = asyncio.Queue[WatchEvent]()

    async def list(self, kind: Kind) -> Listing:
        return Listing([], "1")

    async def watch(self, kind: Kind, *, resource_version: str) -> AsyncGenerator[WatchEvent, None]:
        while True:
            yield await self.events.get()
            self.events.task_done()

    async def send(self, event: str, obj: JsonObject) -> None:
        """Send one event; returns when it has been processed."""
        self.events.put_nowait(WatchEvent(event, obj))
        await self.events.join()


class Unseen:
    """A spectator that shows nothing."""

    def say(self, line: str) -> None:
        """Drop the line."""

    def show(self, rows: tuple[Row, ...]) -> None:
        """Drop the rows."""


def account(state: str) -> JsonObject:
    return {"metadata": {"namespace": "ns", "name": "one", "uid": "u1"}, "status": {"state": state}}


async def test_only_a_change_moves_the_limit_of_a_demo(tmp_path: Path) -> None:
    kube = Kube()
    stage = Stage(
        kube=cast(KubeApi, kube),
        temporal=cast(Client, None),
        deployment=Deployment(tmp_path),
        emulator=None,
        manifests=tmp_path,
        spectator=Unseen(),
        scenario=SCENARIOS["accounts"],
    )
    async with asyncio.timeout(10) as limit, stage.objects.followed(ACCOUNT):
        stage.on_progress = partial(command.extend, limit)

        await kube.send("ADDED", account("Creating"))
        first = limit.when()
        await kube.send("MODIFIED", account("Creating"))
        unchanged = limit.when()
        await kube.send("MODIFIED", account("Ready"))
        changed = limit.when()

    assert first is not None
    assert changed is not None
    assert first > asyncio.get_running_loop().time() + command.STANDSTILL_SECONDS - 10
    assert unchanged == first
    assert changed > first
