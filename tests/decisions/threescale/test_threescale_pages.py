"""Documents at addresses: fetched from real servers on this machine, within limits, and not from everywhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import cast

import httpx
import pytest
from aiohttp import web

from activities.threescale import document_download
from activities.threescale.document_download import fetch
from domain.threescale.open_api_document import MOST_BYTES
from engine.errors import Absent, ApiError, Denied, Invalid, Throttled, Unavailable

BODY = "openapi: 3.0.0, ünï"


async def _answer(request: web.Request) -> web.Response:
    match request.match_info["what"]:
        case "document":
            return web.Response(text=BODY + request.query_string)
        case "long":
            return web.Response(body=b"x" * (MOST_BYTES + 1))
        case "bytes":
            return web.Response(body=b"\xff\xfe\xff")
        case "redirect":
            return web.Response(status=HTTPStatus.FOUND, headers={"Location": request.query["to"]})
        case "circle":
            return web.Response(status=HTTPStatus.FOUND, headers={"Location": "/circle"})
        case "throttled":
            return web.Response(status=HTTPStatus.TOO_MANY_REQUESTS, headers={"Retry-After": "7"})
        case status:
            return web.Response(status=int(status))


@pytest.fixture
async def page() -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_get("/{what}", _answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    _, port = cast("tuple[str, int]", runner.addresses[0])
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=60, trust_env=False) as client:
        yield client


async def test_a_document_is_fetched_with_the_query_unchanged(page: str, http: httpx.AsyncClient) -> None:
    assert await fetch(http, f"{page}/document?sig=a") == f"{BODY}sig=a"


async def test_a_redirect_within_the_network_is_followed(page: str, http: httpx.AsyncClient) -> None:
    assert await fetch(http, f"{page}/redirect?to=/document") == BODY


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("404", Absent, "/404: 404"),
        ("403", Denied, "403"),
        ("500", Unavailable, "500"),
        ("throttled", Throttled, "429"),
        ("long", Invalid, "longer than"),
        ("bytes", Invalid, "not UTF-8 text"),
        ("circle", Unavailable, "more than 5 redirects"),
        ("redirect?to=file:///etc/passwd", Denied, "not an http or https address"),
        ("redirect?to=http://169.254.169.254/latest", Denied, "link-local"),
        ("redirect?to=http://[broken", Unavailable, "no answer"),
    ],
)
async def test_a_malformed_document_is_reported(
    page: str, http: httpx.AsyncClient, what: str, kind: type[ApiError], text: str
) -> None:
    with pytest.raises(kind, match=text):
        await fetch(http, f"{page}/{what}")


async def test_the_delay_that_a_page_asks_for_is_reported(page: str, http: httpx.AsyncClient) -> None:
    with pytest.raises(Throttled) as caught:
        await fetch(http, f"{page}/throttled")

    assert caught.value.delay is not None
    assert caught.value.delay.total_seconds() == 7


async def test_a_page_outside_does_not_lead_into_the_network(
    page: str, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = document_download.private

    async def seen_from_outside(url: str) -> bool:
        return await inside(url) and "/redirect" not in url

    monkeypatch.setattr(document_download, "private", seen_from_outside)
    with pytest.raises(Denied, match="inside the network"):
        await fetch(http, f"{page}/redirect?to=/document")


async def test_a_page_that_does_not_answer_times_out(page: str, http: httpx.AsyncClient) -> None:
    with pytest.raises(Unavailable, match="no document within"):
        await fetch(http, f"{page}/document", timeout_seconds=0)
    with pytest.raises(Unavailable, match="no answer, ConnectError"):
        await fetch(http, "http://127.0.0.1:1/x")


async def test_messages_leave_signatures_and_passwords_out(page: str, http: httpx.AsyncClient) -> None:
    with pytest.raises(Absent) as caught:
        await fetch(http, f"{page.replace('http://', 'http://jane:s3cret@')}/404?sig=s3cret")

    assert "s3cret" not in caught.value.message


async def test_a_malformed_address_is_reported(http: httpx.AsyncClient) -> None:
    with pytest.raises(Denied, match=r"^\[broken: not an http or https address") as caught:
        await fetch(http, "http://jane:s3cret@[broken?sig=s3cret")

    assert "s3cret" not in caught.value.message
