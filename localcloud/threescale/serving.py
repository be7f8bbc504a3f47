"""Processes one call.

    path known? ─► format ─► parameters ─► ( purge ─► credential ─► scope ─► handler ) ─► rendered

The part in parentheses is one transaction, which a refusal rolls back. The purge removes products and backends whose
asynchronous deletion is due.
"""

from __future__ import annotations

import base64
import logging
import sqlite3
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import HTTP
from http import HTTPStatus
from urllib.parse import parse_qsl

from aiohttp import web
from multidict import MultiDict

from localcloud.threescale import refusals, tables
from localcloud.threescale.answers import Answer, Format, entity_tag
from localcloud.threescale.call import Call, Route
from localcloud.threescale.parameters import Parameters, read
from localcloud.threescale.refusals import Refused
from localcloud.threescale.resources import tenants
from localcloud.threescale.store import Record
from localcloud.threescale.world import World

log = logging.getLogger(__name__)

READING = ("GET", "HEAD")
CREDENTIALS = ("access_token", "provider_key")

_CLOSED = (tenants.SUSPENDED, tenants.DELETED)


@dataclass(frozen=True)
class Request:
    http: web.Request
    route: Route | None
    tenant: Record | None
    body: bytes

    @property
    def suffix(self) -> str:
        if self.route is None:
            return Format.JSON.value if self.http.path.endswith(".json") else ""
        return self.http.match_info.get("format", "").removeprefix(".")

    @property
    def format(self) -> Format:
        if self.route is not None and self.route.json_only:
            return Format.JSON
        if self.suffix:
            return Format.XML if self.suffix == Format.XML else Format.JSON
        return Format.JSON if "json" in self.http.headers.get("Accept", "") else Format.XML

    @property
    def reads(self) -> bool:
        return self.http.method in READING


def perform(world: World, request: Request) -> Answer:
    try:
        return _performed(world, request)
    except Refused as refused:
        return refused.answer
    except sqlite3.IntegrityError as error:
        log.info("%s %s: %s", request.http.method, request.http.path, error)
        return refusals.conflict().answer
    except Exception:
        log.exception("%s %s failed", request.http.method, request.http.path)
        page = "<html><body><h1>500 Internal Server Error</h1></body></html>"
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, text=page, content_type="text/html")


def rendered(answer: Answer, request: Request) -> web.Response:
    content_type, payload = answer.rendered(request.format)
    headers: MultiDict[str] = MultiDict({"Content-Type": content_type, **answer.headers})
    if answer.location:
        headers["Location"] = answer.location
    if request.http.method == "GET" and answer.status == HTTPStatus.OK:
        headers["ETag"] = entity_tag(payload)
        if request.http.headers.get("If-None-Match") == headers["ETag"]:
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
    return web.Response(status=answer.status, body=payload, headers=headers)


def _performed(world: World, request: Request) -> Answer:
    route = request.route
    if request.tenant is None or route is None:
        raise refusals.not_found()
    if request.suffix and (request.suffix not in list(Format) or (request.suffix == Format.XML and route.json_only)):
        raise refusals.unknown_format(request.suffix)
    sent = _parameters(request)
    with world.store.transaction():
        world.purge()
        # The tenant is read again, since the list by which its address was found may be outdated.
        tenant = world.store.get(tables.ACCOUNTS, request.tenant.id)
        token = _token(world, request, route, tenant, sent)
        _check_rights(world, request, route, tenant, token)
        call = Call(
            store=world.store,
            config=world.config,
            tenant=tenant,
            token=token,
            parameters=sent,
            path={name: value for name, value in request.http.match_info.items() if name != "format"},
            base_url=f"{request.http.scheme}://{request.http.host}",
            listening_on=world.host,
        )
        return route.handler(call)


def _token(world: World, request: Request, route: Route, tenant: Record, sent: Parameters) -> Record:
    is_master = tenant["name"] == tenants.MASTER
    if route.of_master and not is_master:
        raise refusals.not_found()
    value = next((sent.text(name) for name in CREDENTIALS if sent.text(name)), "") or _basic(request.http)
    found = world.store.find(tables.TOKENS, value=value, tenant_id=tenant.id) if value else None
    if found is None:
        raise refusals.unauthorized() if route.of_master else refusals.access_denied()
    return found


def _check_rights(world: World, request: Request, route: Route, tenant: Record, token: Record) -> None:
    if tenant["state"] in _CLOSED:
        raise refusals.forbidden_without_words()
    if route.scope not in token.array("scopes") or (not request.reads and token["permission"] != "rw"):
        raise refusals.no_permission()
    if world.store.get(tables.USERS, token.number("user_id"))["role"] != "admin":
        raise refusals.forbidden()


def _parameters(request: Request) -> Parameters:
    http = request.http
    pairs = parse_qsl(http.query_string, keep_blank_values=True)
    if http.content_type == "application/x-www-form-urlencoded":
        pairs += parse_qsl(request.body.decode(errors="replace"), keep_blank_values=True)
    elif http.content_type == "multipart/form-data":
        pairs += _multipart(http.headers["Content-Type"], request.body)
    return read(pairs, request.body, http.content_type)


def _multipart(content_type: str, body: bytes) -> list[tuple[str, str]]:
    message = BytesParser(EmailMessage, policy=HTTP).parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body)
    fields: list[tuple[str, str]] = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            fields.append((name, payload.decode(errors="replace")))
    return fields


def _basic(request: web.Request) -> str:
    kind, _, encoded = request.headers.get("Authorization", "").partition(" ")
    if kind.lower() != "basic":
        return ""
    try:
        user, _, password = base64.b64decode(encoded).decode().partition(":")
    except ValueError:
        return ""
    return user or password
