"""The codec server over HTTP, as a browser and the command line ask it: who is answered, with what, and who is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp.test_utils import TestServer
from encryption_keys import add_key
from google.protobuf.json_format import MessageToDict, ParseDict
from temporalio.api.common.v1 import Payload, Payloads

from engine.encryption import EncryptionCodec, KeyRing, KeysUnreadable
from engine.settings import Settings
from starters.codec_server.main import Unguarded, codec_application

UI = "https://temporal.example.com"
TOLD = Payload(metadata={"encoding": b"json/plain"}, data=b'"hello"')


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return add_key(tmp_path / "keys", "a")


@asynccontextmanager
async def asking(keys: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    found = Settings(temporal_keys=str(keys), codec_origins=(UI,), **settings)
    server = TestServer(codec_application(found))
    async with server, httpx.AsyncClient() as client:
        client.base_url = str(server.make_url("/"))
        yield client


def body(*payloads: Payload) -> dict[str, Any]:
    return MessageToDict(Payloads(payloads=payloads))


def answered(answer: httpx.Response) -> list[Payload]:
    assert answer.status_code == 200, answer.text
    return list(ParseDict(answer.json(), Payloads()).payloads)


async def test_a_page_decodes_what_the_processes_encode_and_back(keys: Path) -> None:
    async with asking(keys) as client:
        (hidden,) = answered(await client.post("/encode", json=body(TOLD)))
        assert await EncryptionCodec(KeyRing(keys)).decode([hidden]) == [TOLD]
        assert answered(await client.post("/decode", json=body(hidden, TOLD))) == [TOLD, TOLD]


async def test_pages_of_the_ui_may_read_the_answers_and_others_may_not(keys: Path) -> None:
    async with asking(keys) as client:
        first = await client.options("/decode", headers={"Origin": UI, "Access-Control-Request-Method": "POST"})
        assert first.status_code == 204
        assert first.headers["Access-Control-Allow-Origin"] == UI
        assert {"authorization", "content-type", "x-namespace"} <= {
            each.strip() for each in first.headers["Access-Control-Allow-Headers"].split(",")
        }
        then = await client.post("/decode", json=body(TOLD), headers={"Origin": UI})
        assert then.headers["Access-Control-Allow-Origin"] == UI
        foreign = await client.post("/decode", json=body(TOLD), headers={"Origin": "https://elsewhere.example.com"})
        assert "Access-Control-Allow-Origin" not in foreign.headers


async def test_with_a_token_file_only_requests_with_one_of_its_tokens_are_answered(keys: Path, tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("one\n\n")
    async with asking(keys, codec_token_file=str(tokens)) as client:

        async def asked(**headers: str) -> int:
            return (await client.post("/decode", json=body(TOLD), headers=headers)).status_code

        assert await asked() == 401
        assert await asked(Authorization="Bearer") == 401
        assert await asked(Authorization="Bearer two") == 401
        assert await asked(Authorization="Basic one") == 401
        assert await asked(Authorization="Bearer one") == 200
        tokens.write_text("two\n")
        assert await asked(Authorization="Bearer one") == 401
        assert await asked(Authorization="Bearer two") == 200
        preflight = await client.options("/decode", headers={"Origin": UI})  # browsers send no token with it
        assert preflight.status_code == 204


@pytest.mark.parametrize("settings", [{}, {"codec_token_file": "", "codec_guarded": False}])
def test_it_does_not_serve_a_network_unguarded(keys: Path, settings: dict[str, Any]) -> None:
    with pytest.raises(Unguarded, match="anybody could read"):
        codec_application(Settings(temporal_keys=str(keys), listen_host="0.0.0.0", **settings))
    codec_application(Settings(temporal_keys=str(keys), listen_host="0.0.0.0", codec_guarded=True))


def test_without_keys_it_does_not_start() -> None:
    with pytest.raises(KeysUnreadable, match="names no directory"):
        codec_application(Settings())


async def test_an_impossible_request_is_answered_with_its_reason(keys: Path, tmp_path: Path) -> None:
    other = add_key(tmp_path / "other", "b")
    (foreign,) = await EncryptionCodec(KeyRing(other)).encode([TOLD])
    async with asking(keys) as client:
        refused = await client.post("/decode", json=body(foreign), headers={"Origin": UI})
        assert (refused.status_code, "'b'" in refused.text) == (422, True)
        assert refused.headers["Access-Control-Allow-Origin"] == UI
        assert (await client.post("/decode", content="{")).status_code == 400
        assert (await client.get("/decode", headers={"Origin": UI})).status_code == 405
        assert (await client.post("/other", json=body(TOLD))).status_code == 404
