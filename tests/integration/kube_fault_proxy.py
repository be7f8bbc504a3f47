"""A proxy in front of the API server whose watch streams break in every way that streams do.

Plain HTTP on loopback; the credentials are the proxy's. Ordinary requests pass unless it is down. A watch stream can be
cut (also in the middle of a line), frozen (the connection stays, nothing comes), starved (asked for and never
answered), slowed, doubled with old lines repeated, or answered with 410 as a status or as an ERROR event, again and
again until the client lists. A number of watches can be answered with 429, as of a kind whose storage the server still
prepares. The answers to a number of reads or writes can be lost: the server does what is asked, and no answer comes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, Self

import aiohttp
import yaml
from aiohttp import web
from yarl import URL

from engine.kube.connection import Connection

GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
TOO_MANY_REQUESTS = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "TooManyRequests",
    "message": "storage is (re)initializing",
    "details": {"retryAfterSeconds": 1},
    "code": 429,
}


class _Stream:
    """One watch that is being forwarded."""

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.flowing = asyncio.Event()
        self.flowing.set()

    def abort(self) -> None:
        self.flowing.set()
        if self.request.transport is not None:
            self.request.transport.abort()


class FaultProxy:
    """The proxy and its faults."""

    def __init__(self, upstream: Connection, session: aiohttp.ClientSession) -> None:
        self._upstream = upstream
        self._session = session
        self._streams: set[_Stream] = set()
        self.down = False
        self.delay = 0.0
        self.doubled = False
        self.mid_line = False
        self.expire: list[Literal["status", "event"]] = []
        self._expiring: Literal["status", "event"] | None = None
        self.watches = 0
        self.throttled_watches = 0  # so many more watches are answered with 429
        self.starved: set[str] = set()  # watches whose path contains one of these are not answered
        self.lose_reads = 0
        self.lose_writes = 0
        self.asked: set[tuple[str, str]] = set()  # methods (WATCH is one), and plurals of kinds
        self.url = ""

    @classmethod
    @asynccontextmanager
    async def running(cls, kubeconfig: str) -> AsyncIterator[Self]:
        """A proxy in front of the cluster of a kubeconfig."""
        upstream = Connection(kubeconfig)
        await upstream.load()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            proxy = cls(upstream, session)
            app = web.Application(client_max_size=10_000_000)
            app.router.add_route("*", "/{path:.*}", proxy._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            proxy.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield proxy
            finally:
                proxy.cut()
                await runner.cleanup()

    def write_kubeconfig(self, file: Path) -> str:
        """A kubeconfig that leads through the proxy."""
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "users": [{"name": "u", "user": {"token": "none"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        file.write_text(yaml.safe_dump(content))
        return str(file)

    @property
    def streams(self) -> int:
        """Watches that are open now."""
        return len(self._streams)

    def cut(self) -> None:
        """Break all open streams."""
        for stream in tuple(self._streams):
            stream.abort()

    def freeze(self) -> None:
        """Let all open streams fall silent for good, without closing them."""
        for stream in self._streams:
            stream.flowing.clear()

    def heal(self) -> None:
        """No more faults; streams that are frozen stay frozen."""
        self.starved.clear()
        self.down = self.doubled = self.mid_line = False
        self.delay = 0.0
        self.expire.clear()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self.down:
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        watching = "watch" in request.query
        self.asked.add(("WATCH" if watching else request.method, _plural(request.path)))
        if watching:
            self.watches += 1
            while any(part in request.path for part in self.starved):  # noqa: ASYNC110 - the client gives up
                await asyncio.sleep(0.05)
            if self.throttled_watches:
                self.throttled_watches -= 1
                return web.json_response(TOO_MANY_REQUESTS, status=429)
            if self.expire:
                self._expiring = self.expire.pop()
            if self._expiring:
                return await self._expired(self._expiring)
        elif request.method == "GET":
            self._expiring = None
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        if authorization := await self._upstream.authorization():
            headers["Authorization"] = authorization
        async with self._session.request(
            request.method,
            URL(self._upstream.host + request.raw_path, encoded=True),
            headers=headers,
            data=await request.read() or None,
            ssl=self._upstream.ssl,
        ) as answer:
            if watching and answer.status == 200:
                return await self._forward(request, answer)
            body = await answer.read()
            if answer.status < 300 and self._loses(request.method):
                assert request.transport is not None
                request.transport.abort()
            return web.Response(status=answer.status, body=body, content_type=answer.content_type)

    def _loses(self, method: str) -> bool:
        """Whether this answer is one of those that are lost."""
        if method == "GET":
            lost, self.lose_reads = self.lose_reads, max(0, self.lose_reads - 1)
        else:
            lost, self.lose_writes = self.lose_writes, max(0, self.lose_writes - 1)
        return lost > 0

    async def _expired(self, how: str) -> web.StreamResponse:
        if how == "status":
            return web.json_response(GONE, status=410)
        return web.Response(body=json.dumps({"type": "ERROR", "object": GONE}).encode() + b"\n")

    async def _forward(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        stream = _Stream(request)
        self._streams.add(stream)
        response = web.StreamResponse()
        await response.prepare(request)
        earlier: list[bytes] = []
        try:
            async for line in _lines(answer):
                await asyncio.sleep(self.delay)
                await stream.flowing.wait()
                if self.mid_line:
                    await response.write(line[: len(line) // 2])
                    stream.abort()
                    break
                repeated = [line, *earlier[-3:]] if self.doubled else []
                for each in [line, *repeated]:
                    await response.write(each)
                earlier.append(line)
        except (aiohttp.ClientError, ConnectionError):
            stream.abort()
        finally:
            self._streams.discard(stream)
        return response


def _plural(path: str) -> str:
    """The kind that a path is about: the part after the version, or after the namespace."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    return (parts[2:3] or parts[:1] or [""])[0] if parts[:1] == ["namespaces"] else (parts or [""])[0]


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    pending = b""
    async for chunk in answer.content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
