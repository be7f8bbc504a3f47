"""A headless Chromium, driven by its own protocol: what a page shows to a reader, as text and as a picture."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from waiting import eventually

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-quic", "--remote-debugging-port=0"),
)


class Page:
    """A page that is open."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._serials = itertools.count(1)

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command of the DevTools protocol, and its answer."""
        serial = next(self._serials)
        await self._socket.send_json({"id": serial, "method": method, "params": params})
        while True:
            answer: dict[str, Any] = await self._socket.receive_json(timeout=60)
            if answer.get("id") == serial:
                result: dict[str, Any] = answer["result"]
                return result

    async def open(self, url: str) -> None:
        await self.call("Page.navigate", url=url)

    async def resize(self, width: int, height: int) -> None:
        """The page's own size in pixels, without the browser's frame."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.call("Emulation.setDeviceMetricsOverride", **size)

    async def text(self) -> str:
        """What the page says."""
        expression = "document.body ? document.body.innerText : ''"
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return str(answer["result"].get("value", ""))

    async def picture(self, to: Path) -> None:
        shot = await self.call("Page.captureScreenshot", format="png")
        to.write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def browsing(directory: Path, width: int = 1500, height: int = 1100) -> AsyncIterator[Page]:
    """A browser with one page, ended with the block."""
    assert CHROMIUM
    command = (CHROMIUM, *FLAGS, f"--user-data-dir={directory}", f"--window-size={width},{height}", "about:blank")
    with (directory / "browser.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        port = await eventually(lambda: _port(directory), "a browser that listens")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = json.loads(await answer.text())
            address = next(each["webSocketDebuggerUrl"] for each in pages if each["type"] == "page")
            async with session.ws_connect(address, max_msg_size=0) as socket:
                yield Page(socket)
    finally:
        process.terminate()
        async with asyncio.timeout(60):
            await process.wait()


async def _port(directory: Path) -> str:
    file = directory / "DevToolsActivePort"
    return file.read_text().split()[0] if file.is_file() and file.read_text().split() else ""
