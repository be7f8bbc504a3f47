"""Fetches documents of ActiveDocs and OpenAPIs from URLs, which any author of a custom resource chooses.

Time and size are limited. Link-local addresses are refused, because clouds serve a machine's credentials there.
Redirects from outside the network to an address inside it are refused, too. Messages omit the URL's query and user.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from urllib.parse import urljoin

import httpx

from domain.threescale.document_sources import Text, text_at
from domain.threescale.normalize import parts_of, shown
from domain.threescale.observed import waiting
from domain.threescale.open_api_document import MOST_BYTES
from engine.errors import Absent, ApiError, Denied, Invalid, Throttled, Unavailable, asked_delay

_TIMEOUT_SECONDS = 30.0  # in total, redirects included
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_KINDS: dict[int, type[ApiError]] = {401: Denied, 403: Denied, 404: Absent, 410: Absent, 429: Throttled}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Downloads:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def fetched(self, url: str) -> str:
        return await fetch(self._http, url)

    async def at(self, url: str) -> Text:
        try:
            return text_at(await self.fetched(url))
        except ApiError as error:
            return Text(blocker=waiting(error.message))


async def fetch(http: httpx.AsyncClient, url: str, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> str:
    """The document's text. Raises ApiError if no document arrives within the limits."""
    try:
        async with asyncio.timeout(timeout_seconds):
            return await _fetched(http, url)
    except TimeoutError:
        raise Unavailable(f"{shown(url)}: no document within {timeout_seconds:g} s", code="NoAnswer") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise Unavailable(f"{shown(url)}: no answer, {type(error).__name__}", code="NoAnswer") from None


async def _fetched(http: httpx.AsyncClient, url: str) -> str:
    origin, where = await private(url), url
    for _ in range(_MOST_REDIRECTS + 1):
        request = http.build_request("GET", where, headers={"Cache-Control": "no-cache"})
        answer = await http.send(request, stream=True, follow_redirects=False)
        try:
            if answer.status_code not in _REDIRECTS:
                return await _read(answer, url)
            where = urljoin(where, answer.headers.get("location", ""))
        finally:
            await answer.aclose()
        if await private(where) and not origin:
            raise Denied(f"{shown(url)}: redirects to {shown(where)}, inside the network: use that URL directly")
    raise Unavailable(f"{shown(url)}: more than {_MOST_REDIRECTS} redirects")


async def _read(answer: httpx.Response, url: str) -> str:
    if not answer.is_success:
        kind = _KINDS.get(answer.status_code, Unavailable)
        code = f"HTTP {answer.status_code}"
        delay = asked_delay(answer.headers.get("retry-after", ""))
        raise kind(f"{shown(url)}: {answer.status_code}", code=code, delay=delay)
    body = bytearray()
    async for part in answer.aiter_bytes():
        body += part
        if len(body) > MOST_BYTES:
            raise Invalid(f"{shown(url)}: longer than {MOST_BYTES} bytes")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Invalid(f"{shown(url)}: not UTF-8 text") from None


async def private(url: str) -> bool:
    """Whether the URL's host is inside the network; False if its name does not resolve here, because a proxy may
    resolve it. Raises `Denied` for a forbidden address.
    """
    parts = parts_of(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise Denied(f"{shown(url)}: not an http or https address")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = [_plain(str(each[4][0])) for each in found]
    if any(each.is_link_local or each.is_multicast for each in addresses):
        raise Denied(f"{shown(url)}: a link-local address, from which nothing is fetched")
    return any(not each.is_global for each in addresses)


def _plain(text: str) -> Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
