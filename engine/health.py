"""`/healthz`, `/readyz` and `/metrics` of a process, over HTTP. The process's parts register checks with `Health.add`.

| path | fails (503, with the reasons) |
|---|---|
| `/healthz` (`dead`) | if only a restart helps: a loop makes no progress; never in an outage of another system |
| `/readyz` (`unready`) | while something is missing that may return by itself: a server, a first list, a watch |
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from engine.settings import Settings


class AddressUnusable(Exception):  # noqa: N818
    pass


Check = Callable[[], Iterable[str]]

# The longest time, in seconds, between two iterations of a loop, even in an outage: requests time out far sooner.
LONGEST_TURN = 300.0


def _nothing() -> Iterable[str]:
    return ()


class Progress:
    """The progress of a loop, which counts as dead after `within` seconds without a call of `made`."""

    def __init__(self, loop: str, within: float = LONGEST_TURN) -> None:
        self._loop = loop
        self._within = within
        self._made = time.monotonic()

    def made(self) -> None:
        self._made = time.monotonic()

    def stalled(self) -> Iterable[str]:
        if (ago := time.monotonic() - self._made) > self._within:
            yield f"{self._loop} has made no progress for {ago:.0f} s"


class Health:
    def __init__(self) -> None:
        self._parts: dict[str, tuple[Check, Check, Check]] = {}

    def add(self, part: str, *, dead: Check = _nothing, unready: Check = _nothing, notes: Check = _nothing) -> None:
        """Add a part's checks, each of which returns lines.

        `dead` says why only a restart helps, and `unready` why the part is not ready.
        """
        self._parts[part] = (dead, unready, notes)

    def remove(self, part: str) -> None:
        self._parts.pop(part, None)

    def dead(self) -> list[str]:
        return [f"{part}: {reason}" for part, (dead, _, _) in self._parts.items() for reason in dead()]

    def unready(self) -> list[str]:
        return self.dead() + [
            f"{part}: {reason}" for part, (_, unready, _) in self._parts.items() for reason in unready()
        ]

    def notes(self) -> list[str]:
        return [f"{part}: {note}" for part, (_, _, notes) in self._parts.items() for note in notes()]


@asynccontextmanager
async def serve(health: Health, settings: Settings) -> AsyncIterator[None]:
    """Serve while the block runs, on `health_port` (0: not at all)."""
    if not settings.health_port:
        yield
        return
    app = web.Application()

    async def healthz(_: web.Request) -> web.Response:
        return _answer(health.dead(), health.notes())

    async def readyz(_: web.Request) -> web.Response:
        return _answer(health.unready(), health.notes())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await listen(runner, settings.listen_host, settings.health_port, "PERDURE_LISTEN_HOST, PERDURE_HEALTH_PORT")
        yield
    finally:
        await runner.cleanup()


async def listen(runner: web.BaseRunner, host: str, port: int, variables: str) -> None:
    """Listen on an address. `variables` are the settings that name the address. Raises AddressUnusable."""
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise AddressUnusable(f"cannot listen on {host}:{port} ({variables}): {_reason(error)}") from error


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another process uses the port"
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _answer(reasons: list[str], notes: list[str]) -> web.Response:
    lines = (reasons or ["ok"]) + notes
    return web.Response(status=503 if reasons else 200, text="\n".join(lines) + "\n")
