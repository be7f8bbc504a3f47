"""An HTTP server that receives notifications."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

CONFIDENTIAL = "T0KEN"


class Webhook:
    """A server, or a proxy, whose requests name a whole URL. It records requests and answers as the test says."""

    def __init__(self) -> None:
        self.answers: list[web.Response] = []
        self.hangs = False
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.urls: list[str] = []
        self.port = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        self.headers.append(dict(request.headers))
        self.urls.append(str(request.url))
        if self.hangs:
            await asyncio.sleep(3)
        return self.answers.pop(0) if self.answers else web.Response()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token={CONFIDENTIAL}"


@asynccontextmanager
async def serving() -> AsyncIterator[Webhook]:
    found = Webhook()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    found.port = runner.addresses[0][1]
    try:
        yield found
    finally:
        await runner.cleanup()
