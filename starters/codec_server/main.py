"""The codec server: decrypts payloads for Temporal's web UI and command line.

Requests need a token from `PERDURE_CODEC_TOKEN_FILE`; without that file, they must come from this machine. The web UI
sends no such token: put an authenticating proxy in front and set `PERDURE_CODEC_GUARDED`.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from temporalio.api.common.v1 import Payload, Payloads

from engine.encryption import EncryptionCodec, KeyRing, KeysUnreadable
from engine.health import Health, listen, serve
from engine.process import stopped_by_signals
from engine.settings import Settings

PROCESS = "codec"
# More than the largest page of a history that the web UI sends: one gRPC message (4 MiB), in base64.
LARGEST_REQUEST = 32 * 1024 * 1024
HEADERS = "authorization, content-type, x-namespace"

Work = Callable[[Sequence[Payload]], Awaitable[list[Payload]]]

log = logging.getLogger(__name__)


class Unguarded(ValueError):  # noqa: N818
    """With these settings, the codec server would decrypt for anyone."""


async def run_codec_server(settings: Settings, port: int, *, stop: asyncio.Event | None = None) -> None:
    """Serve until stopped. Raises Unguarded if other machines could connect without protection, KeysUnreadable if there
    are no keys.
    """
    application = codec_application(settings)
    async with AsyncExitStack() as stack:
        stopped = await stack.enter_async_context(stopped_by_signals(stop))
        health = Health()
        await stack.enter_async_context(serve(health, settings))
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await listen(runner, settings.listen_host, port, "PERDURE_LISTEN_HOST, --port")
        log.info("decoding for Temporal's web UI and command line on port %d", port)
        await stopped.wait()


def codec_application(settings: Settings) -> web.Application:
    if not (settings.codec_token_file or settings.codec_guarded or _is_own_machine(settings.listen_host)):
        raise Unguarded(
            f"on {settings.listen_host} anybody could read every lifecycle: set PERDURE_CODEC_TOKEN_FILE, or "
            "PERDURE_CODEC_GUARDED=true behind a proxy that admits only authorised callers"
        )
    if not settings.temporal_keys:
        raise KeysUnreadable("PERDURE_TEMPORAL_KEYS names no directory, so there is no key to decode with")
    codec = EncryptionCodec(KeyRing(Path(settings.temporal_keys)))
    tokens = Path(settings.codec_token_file) if settings.codec_token_file else None
    guards = [_across_origins(frozenset(settings.codec_origins)), _only_with_token(tokens)]
    application = web.Application(client_max_size=LARGEST_REQUEST, middlewares=guards)
    application.add_routes(
        [web.post("/decode", _answering(codec.decode)), web.post("/encode", _answering(codec.encode))]
    )
    return application


def _answering(work: Work) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            payloads = Parse(await request.text(), Payloads(), ignore_unknown_fields=True)
            done = Payloads(payloads=await work(payloads.payloads))
        except (ParseError, UnicodeDecodeError) as error:
            return web.Response(status=400, text=f"the request contains no payloads: {error}\n")
        except ValueError as error:  # an unknown or wrong key
            log.warning("cannot %s: %s", request.path.strip("/"), error)
            return web.Response(status=422, text=f"{error}\n")
        return web.Response(text=MessageToJson(done, indent=None), content_type="application/json")

    return answer


def _across_origins(origins: frozenset[str]) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = request.headers.get("Origin", "")
        asks_first = request.method == "OPTIONS"
        answer = web.Response(status=204) if asks_first else await _answered(handler, request)
        if origin in origins:
            answer.headers["Access-Control-Allow-Origin"] = origin
            answer.headers["Access-Control-Allow-Credentials"] = "true"
            answer.headers["Vary"] = "Origin"
            if asks_first:
                answer.headers["Access-Control-Allow-Methods"] = "POST"
                answer.headers["Access-Control-Allow-Headers"] = HEADERS
                answer.headers["Access-Control-Max-Age"] = "600"
        return answer

    return middleware


async def _answered(handler: Handler, request: web.Request) -> web.StreamResponse:
    """Turn an HTTP error into an answer, which gets CORS headers, so that the page can read it."""
    try:
        return await handler(request)
    except web.HTTPException as refusal:
        return web.Response(status=refusal.status, text=refusal.text)


def _only_with_token(tokens: Path | None) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if tokens is not None and not _is_among(request.headers.get("Authorization", ""), tokens):
            return web.Response(status=401, text="send a token: Authorization: Bearer ...\n")
        return await handler(request)

    return middleware


def _is_among(authorization: str, tokens: Path) -> bool:
    scheme, _, brought = authorization.partition(" ")
    known = (line.strip() for line in tokens.read_text().splitlines())
    matches = [hmac.compare_digest(brought.strip().encode(), token.encode()) for token in known if token]
    return scheme.lower() == "bearer" and any(matches)


def _is_own_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
