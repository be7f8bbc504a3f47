"""The server: a port for the master, one for each tenant, the same routes on all.

Every call of a client passes here:

    whose address? ─► latency ─► fault? ─► credential, scope ─► handler (one transaction) ─► answer ─► ledger

A call is worked on without a break, so two never mix; waiting for latency, a late answer or a hang holds nobody else. A
lost answer closes the connection without a byte. Faults strike before the credential is looked at, as a balancer before
3scale would.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from multidict import MultiDict

from localcloud.threescale import refusals, tables
from localcloud.threescale.answers import Answer, Format, entity_tag
from localcloud.threescale.api import ControlAPI
from localcloud.threescale.call import Call, Route
from localcloud.threescale.contract import UNSEEN_HEADER, Fault, FaultKind
from localcloud.threescale.contract import Call as LedgerCall
from localcloud.threescale.faults import refusal_of
from localcloud.threescale.parameters import Parameters, read
from localcloud.threescale.refusals import Refused
from localcloud.threescale.resources import routes, tenants
from localcloud.threescale.store import Record
from localcloud.threescale.world import World

log = logging.getLogger(__name__)

_READING = ("GET", "HEAD")
_CREDENTIALS = ("access_token", "provider_key")
_UNKNOWN_ROUTE = "unknown"
_MOST_BYTES = 64 * 1024 * 1024
_LOOK_AT_CLIENT_SECONDS = 0.5
_CLOSED = (tenants.SUSPENDED, tenants.DELETED)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """The world on its addresses."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._control = ControlAPI(world, self.open_new)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Answer on the addresses of all tenants."""
        application = web.Application(client_max_size=_MOST_BYTES, middlewares=[self._catch_unknown])
        application.router.add_route("*", "/perdure/{path:.*}", self._control.answer)
        for route in routes():
            path = _aiohttp_path(route.path)
            for method in route.methods:
                application.router.add_route(method, path, self._serving(route))
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.5, handle_signals=False)
        await self._runner.setup()
        for tenant in self.world.tenants:
            await self._open(tenant)

    async def stop(self) -> None:
        """Answer no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def open_new(self) -> None:
        """Answer on the addresses of tenants that are new."""
        for tenant in self.world.refresh():
            await self._open(tenant)

    async def _open(self, tenant: Record) -> None:
        assert self._runner is not None
        port = tenant.number("port")
        if any(site.name.endswith(f":{port}") for site in self._runner.sites):
            return
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

    async def _serve(self, route: Route | None, request: web.Request) -> web.StreamResponse:
        """One call of a client, disturbed by what is in force, and entered in the ledger."""
        began, at = time.monotonic(), time.time()
        body = await request.read()
        world = self.world
        port = request.transport.get_extra_info("sockname")[1] if request.transport else 0
        tenant = world.tenant_at(request.headers.get("Host", ""), port)
        name = tenant.text("name") if tenant is not None else ""
        seen = UNSEEN_HEADER not in request.headers
        fault = None
        if seen:
            if world.config.latency_ms:
                await asyncio.sleep(world.config.latency_ms / 1000)
            fault = world.faults.strike(name, request.method, request.path, request.query_string, body)
            if fault is not None:
                world.keep_faults()
        late = fault.late_answer if fault is not None else True
        if fault is not None and fault.kind is FaultKind.DELAY and not late:
            await asyncio.sleep(fault.delay_seconds)

        status, response = self._disturbed(fault, route, request, tenant, body)

        def enter() -> None:
            if seen:
                world.ledger.enter(
                    LedgerCall(
                        at=at,
                        seconds=time.monotonic() - began,
                        tenant=name,
                        method=request.method,
                        route=_shown_route(route),
                        path=request.path,
                        query=_without_credentials(request.query_string),
                        status=status,
                        mutating=request.method not in _READING,
                        fault=fault.id if fault is not None else "",
                    )
                )

        if fault is not None and fault.kind is FaultKind.HANG:
            enter()  # now: it may never end
            await _until_client_leaves(request)
            return web.Response()
        if fault is not None and fault.kind is FaultKind.DELAY and late:
            await asyncio.sleep(fault.delay_seconds)
        if response is not None and request.method != "GET":
            await self.open_new()
        enter()
        return await _sent(request, response, fault)

    def _disturbed(
        self, fault: Fault | None, route: Route | None, request: web.Request, tenant: Record | None, body: bytes
    ) -> tuple[int, web.Response | None]:
        """The status that the ledger notes, and what is answered; nothing where the answer is lost."""
        kind = fault.kind if fault is not None else None
        if fault is not None and kind is FaultKind.REFUSE:
            return fault.status, _response(refusal_of(fault), _format(request, route))
        undone = kind is FaultKind.BEFORE or (kind is FaultKind.HANG and fault is not None and not fault.late_answer)
        if undone:
            return 0, None
        answer, wanted = self._perform(route, request, tenant, body)
        if fault is not None and kind is FaultKind.REFUSE_AFTER:
            return fault.status, _response(refusal_of(fault), wanted)
        if kind in (FaultKind.AFTER, FaultKind.HANG):
            return 0, None
        return (0 if kind is FaultKind.CUT else answer.status), _response(answer, wanted, request)

    def _perform(
        self, route: Route | None, request: web.Request, tenant: Record | None, body: bytes
    ) -> tuple[Answer, Format]:
        """What 3scale answers, and how it is to look."""
        wanted = _format(request, route)
        try:
            if tenant is None or route is None:
                raise refusals.not_found()
            _check_format(request, route)
            sent = _parameters(request, body)
            with self.world.store.transaction():
                self.world.purge()
                token = self._token(request, route, tenant, sent)
                _check_rights(self.world, request, route, tenant, token)
                # Who is served may have changed in this very process since the list of tenants was read.
                current = self.world.store.get(tables.ACCOUNTS, tenant.id)
                call = Call(
                    store=self.world.store,
                    config=self.world.config,
                    tenant=current,
                    token=token,
                    parameters=sent,
                    path={name: value for name, value in request.match_info.items() if name != "format"},
                    base_url=f"{request.scheme}://{request.host}",
                )
                return route.handler(call), wanted
        except Refused as refused:
            return refused.answer, wanted
        except sqlite3.IntegrityError as error:
            log.info("%s %s: %s", request.method, request.path, error)
            return refusals.conflict().answer, wanted
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return Answer(500, text="<html><body><h1>500 Internal Server Error</h1></body></html>"), wanted

    def _token(self, request: web.Request, route: Route, tenant: Record, sent: Parameters) -> Record:
        """The token that the call carries, if it opens this tenant."""
        value = next((sent.text(name) for name in _CREDENTIALS if sent.text(name)), "") or _basic(request)
        found = self.world.store.find(tables.TOKENS, value=value, tenant_id=tenant.id) if value else None
        if route.of_master and (tenant["name"] != tenants.MASTER or found is None):
            raise refusals.unauthorized() if tenant["name"] == tenants.MASTER else refusals.not_found()
        if found is None:
            raise refusals.access_denied()
        return found


def _check_rights(world: World, request: web.Request, route: Route, tenant: Record, token: Record) -> None:
    if tenant["state"] in _CLOSED:
        raise refusals.forbidden_without_words()
    reading = request.method in _READING
    if route.scope not in token.array("scopes") or (not reading and token["permission"] != "rw"):
        raise refusals.no_permission()
    if world.store.get(tables.USERS, token.number("user_id"))["role"] != "admin":
        raise refusals.forbidden()


def _check_format(request: web.Request, route: Route) -> None:
    suffix = request.match_info.get("format", "").removeprefix(".")
    if suffix and suffix not in list(Format):
        raise refusals.unknown_format(suffix)
    if suffix == Format.XML and route.json_only:
        raise refusals.unknown_format(suffix)


def _format(request: web.Request, route: Route | None) -> Format:
    """By the suffix, else by what the client accepts, else XML, except where there is only JSON."""
    suffix = request.match_info.get("format", "").removeprefix(".") if route is not None else ""
    if suffix == Format.JSON or (route is None and request.path.endswith(".json")):
        return Format.JSON
    if (route is not None and route.json_only) or (suffix and suffix != Format.XML):
        return Format.JSON
    accepts_json = "json" in request.headers.get("Accept", "")
    return Format.JSON if accepts_json and not suffix else Format.XML


def _parameters(request: web.Request, body: bytes) -> Parameters:
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    kind = request.content_type
    if kind == "application/x-www-form-urlencoded" or (kind == "application/octet-stream" and b"=" in body):
        pairs += parse_qsl(body.decode(errors="replace"), keep_blank_values=True)
    elif kind == "multipart/form-data":
        pairs += _multipart(request, body)
    return read(pairs, body, kind)


def _multipart(request: web.Request, body: bytes) -> list[tuple[str, str]]:
    """The fields of a multipart form; files count as their text."""
    from email.parser import BytesParser
    from email.policy import HTTP

    header = f"Content-Type: {request.headers['Content-Type']}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(header + body)
    fields: list[tuple[str, str]] = []
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            fields.append((name, payload.decode(errors="replace")))
    return fields


def _basic(request: web.Request) -> str:
    """The first of user and password that is not empty."""
    kind, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        user, _, password = base64.b64decode(encoded).decode().partition(":")
    except ValueError:
        return ""
    return user or password


def _response(answer: Answer, wanted: Format, request: web.Request | None = None) -> web.Response:
    content_type, payload = answer.rendered(wanted)
    headers: MultiDict[str] = MultiDict({"Content-Type": content_type, **answer.headers})
    if answer.location:
        headers["Location"] = answer.location
    if request is not None and request.method == "GET" and answer.status == HTTPStatus.OK:
        headers["ETag"] = entity_tag(payload)
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(status=answer.status, body=payload, headers=headers)


async def _sent(request: web.Request, response: web.Response | None, fault: Fault | None) -> web.StreamResponse:
    """The answer, half of it, or none."""
    if response is None:
        _hang_up(request)
        return web.Response()
    if fault is None or fault.kind is not FaultKind.CUT:
        return response
    payload = response.body if isinstance(response.body, bytes) else b""
    half = web.StreamResponse(status=response.status, headers=MultiDict(response.headers))
    half.content_length = len(payload) + 1
    await half.prepare(request)
    await half.write(payload[: len(payload) // 2])
    _hang_up(request)
    return half


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()


async def _until_client_leaves(request: web.Request) -> None:
    while request.transport is not None and not request.transport.is_closing():  # noqa: ASYNC110 - no event tells
        await asyncio.sleep(_LOOK_AT_CLIENT_SECONDS)


def _aiohttp_path(path: str) -> str:
    """The path as aiohttp wants it: names without dots, and a suffix that says the format."""
    segments = []
    for segment in path.split("/"):
        plain = segment.startswith("{") and ":" not in segment
        segments.append(f"{segment[:-1]}:[^/.]+}}" if plain else segment)
    return "/".join(segments) + "{format:(?:\\.[a-z]+)?}"


def _shown_route(route: Route | None) -> str:
    return route.path.replace(":[^/]+?", "") if route is not None else _UNKNOWN_ROUTE


def _without_credentials(query: str) -> str:
    pairs: list[tuple[str, str]] = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, value) for name, value in pairs if name not in _CREDENTIALS])
