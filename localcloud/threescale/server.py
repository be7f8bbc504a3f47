"""The HTTP server: one port for the master and for each tenant, with the same routes.

    tenant by address ─► latency ─► fault? ─► 3scale (`serving`) ─► ledger ─► answer

Calls never interleave, but latency, late answers and hangs do not block other calls.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from multidict import MultiDict

from localcloud.threescale.api import ControlAPI
from localcloud.threescale.call import Route
from localcloud.threescale.contract import UNSEEN_HEADER, Call, Fault, FaultKind
from localcloud.threescale.faults import refusal_of
from localcloud.threescale.resources import routes
from localcloud.threescale.serving import CREDENTIALS, Request, perform, rendered
from localcloud.threescale.store import Record
from localcloud.threescale.world import World

_UNKNOWN_ROUTE = "unknown"
_MOST_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 0.25

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class _Outcome:
    status: int
    response: web.Response | None


class Server:
    def __init__(self, world: World) -> None:
        self.world = world
        self._control = ControlAPI(world, self._open_new)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        application = web.Application(client_max_size=_MOST_BYTES, middlewares=[self._catch_unknown])
        application.router.add_route("*", "/perdure/{path:.*}", self._control.answer)
        for route in routes():
            for method in route.methods:
                application.router.add_route(method, _aiohttp_path(route.path), self._serving(route))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5, handle_signals=False)
        await self._runner.setup()
        await self._open_new()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _open_new(self) -> None:
        for tenant in self.world.refresh():
            await self._open(tenant)

    async def _open(self, tenant: Record) -> None:
        assert self._runner is not None
        port = tenant.number("port")
        if not any(site.name.endswith(f":{port}") for site in self._runner.sites):
            await web.TCPSite(self._runner, self.world.host, port, reuse_address=True, backlog=512).start()

    @web.middleware
    async def _catch_unknown(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
                return await self._serve(None, request)
            raise

    def _serving(self, route: Route) -> _Handler:
        async def serve(request: web.Request) -> web.StreamResponse:
            return await self._serve(route, request)

        return serve

    async def _serve(self, route: Route | None, http: web.Request) -> web.StreamResponse:
        began, at = time.monotonic(), time.time()
        body = await http.read()
        port = http.transport.get_extra_info("sockname")[1] if http.transport else 0
        request = Request(http, route, self.world.tenant_at(http.headers.get("Host", ""), port), body)
        if UNSEEN_HEADER in http.headers:
            unseen = perform(self.world, request)
            await self._open_made(request)
            return rendered(unseen, request)
        fault = await self._delayed(request)
        outcome = self._outcome(request, fault)
        await self._open_made(request)
        if fault is not None and fault.kind is FaultKind.DELAY and fault.late_answer:
            await self._held_back(http, fault, fault.delay_seconds)
        # The call is recorded before it hangs, because a call that hangs never ends.
        self.world.ledger.enter(_entry(request, outcome.status, fault, at, time.monotonic() - began))
        if fault is not None and fault.kind is FaultKind.HANG:
            await self._held_back(http, fault, math.inf)
        if outcome.response is None:
            _hang_up(http)
            return web.Response()
        if fault is not None and fault.kind is FaultKind.CUT:
            return await _half(http, outcome.response)
        return outcome.response

    async def _delayed(self, request: Request) -> Fault | None:
        world, http = self.world, request.http
        if world.config.latency_ms:
            await asyncio.sleep(world.config.latency_ms / 1000)
        fault = world.faults.strike(_name(request), http.method, http.path, http.query_string, request.body)
        if fault is not None:
            world.keep_faults()
            if fault.kind is FaultKind.DELAY and not fault.late_answer:
                await self._held_back(http, fault, fault.delay_seconds)
        return fault

    def _outcome(self, request: Request, fault: Fault | None) -> _Outcome:
        kind = fault.kind if fault is not None else None
        if fault is not None and kind is FaultKind.REFUSE:
            return _Outcome(fault.status, rendered(refusal_of(fault), request))
        if kind is FaultKind.BEFORE or (fault is not None and kind is FaultKind.HANG and not fault.late_answer):
            return _Outcome(0, None)
        answer = perform(self.world, request)
        if fault is not None and kind is FaultKind.REFUSE_AFTER:
            return _Outcome(fault.status, rendered(refusal_of(fault), request))
        if kind in (FaultKind.AFTER, FaultKind.HANG):
            return _Outcome(0, None)
        return _Outcome(0 if kind is FaultKind.CUT else answer.status, rendered(answer, request))

    async def _held_back(self, http: web.Request, fault: Fault, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self.world.faults.holds(fault.id):
            if seconds == math.inf and not _is_connected(http):
                return
            await asyncio.sleep(min(left, _LOOK_SECONDS))

    async def _open_made(self, request: Request) -> None:
        """Open the port of a tenant that the call created, even if an injected fault suppresses the answer."""
        if request.route is not None and request.route.of_master:
            await self._open_new()


def _entry(request: Request, status: int, fault: Fault | None, at: float, seconds: float) -> Call:
    return Call(
        at=at,
        seconds=seconds,
        tenant=_name(request),
        method=request.http.method,
        route=request.route.name if request.route is not None else _UNKNOWN_ROUTE,
        path=request.http.path,
        query=_without_credentials(request.http.query_string),
        status=status,
        mutating=not request.reads,
        fault=fault.id if fault is not None else "",
    )


def _name(request: Request) -> str:
    return request.tenant.text("name") if request.tenant is not None else ""


async def _half(http: web.Request, response: web.Response) -> web.StreamResponse:
    """Announce more bytes than are sent, so that the client notices that the answer is incomplete."""
    payload = response.body if isinstance(response.body, bytes) else b""
    half = web.StreamResponse(status=response.status, headers=MultiDict(response.headers))
    half.content_length = len(payload) + 1
    await half.prepare(http)
    await half.write(payload[: len(payload) // 2])
    _hang_up(http)
    return half


def _is_connected(http: web.Request) -> bool:
    return http.transport is not None and not http.transport.is_closing()


def _hang_up(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.close()


def _aiohttp_path(path: str) -> str:
    """The route's path for aiohttp. Variables match no dots, because a format suffix may follow."""
    segments = []
    for segment in path.split("/"):
        plain = segment.startswith("{") and ":" not in segment
        segments.append(f"{segment[:-1]}:[^/.]+}}" if plain else segment)
    return "/".join(segments) + "{format:(?:\\.[a-z]+)?}"


def _without_credentials(query: str) -> str:
    pairs: list[tuple[str, str]] = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if name not in CREDENTIALS])
