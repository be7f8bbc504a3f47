"""Temporal's real web UI over an encrypted lifecycle: unreadable as it is, readable through the codec server.

`PERDURE_TEST_PICTURE=FILE` saves a picture of what a reader sees.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from browser import CHROMIUM, Page, browsing
from passing import Passes, new_key, until_phase, working
from temporal_server import TemporalServer, pointing_at, serving
from waiting import eventually

from domain.identity import Key
from engine.temporal import connect, wake
from localcloud.state import choose_ports
from starters.codec_server.main import codec_application

WHY = "waits for the organization's permit"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")]


@pytest.mark.timeout(400)
async def test_a_reader_sees_the_story_through_the_codec_server_and_nothing_without(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ports, _ = choose_ports(("codec",), {})
    endpoint = f"http://127.0.0.1:{ports['codec']}"
    key, passes = new_key("shop"), Passes(WHY)
    async with serving(tmp_path, "--ui-codec-endpoint", endpoint) as server:
        settings = pointing_at(server, monkeypatch, temporal_keys=str(keys), codec_origins=(server.ui,))
        client = await connect(settings, "tests")
        async with working(client, passes):
            for _ in range(2):  # the second look's summary says what the first came to
                await wake(client, key)
                await until_phase(client, key, "Waiting")

            async def looked_twice() -> bool:
                return passes.of(key) >= 2

            await eventually(looked_twice, "two looks")
            (tmp_path / "browser").mkdir()
            async with browsing(tmp_path / "browser") as page:
                before = await shown(page, server, key)
                assert WHY not in before
                runner = web.AppRunner(codec_application(settings), access_log=None)
                await runner.setup()
                await web.TCPSite(runner, "127.0.0.1", ports["codec"]).start()
                try:
                    await until_recorded(page, server, key)
                finally:
                    await runner.cleanup()


async def shown(page: Page, server: TemporalServer, key: Key) -> str:
    """The history's page, once it has loaded."""
    await page.open(f"{server.ui}/namespaces/default/workflows/{quote(key.workflow_id, safe='')}")

    async def loaded() -> str:
        text = await page.text()
        return text if "Event History" in text or "Timeline" in text else ""

    await eventually(loaded, "the page of the lifecycle")
    await asyncio.sleep(3)  # what is decoded comes after the page
    return await page.text()


async def until_recorded(page: Page, server: TemporalServer, key: Key) -> None:
    async def decoded() -> Any:
        return WHY in await shown(page, server, key)

    await eventually(decoded, f"{WHY!r} on the page")
    if picture := os.environ.get("PERDURE_TEST_PICTURE"):
        await page.picture(Path(picture))
