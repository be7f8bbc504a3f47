"""An answer of 200 without an object, as a proxy before the API server may give it, is no answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubeconfigs import kubeconfig_to

from domain.accounts import ACCOUNT
from engine.errors import Unavailable
from engine.kube import KubeApi
from engine.settings import Settings


@pytest.fixture(params=[{}, [], None, "", {"items": []}, {"status": "ok"}], ids=json.dumps)
async def kube(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KubeApi]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=f"{json.dumps(request.param)}\n", content_type="application/json")

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server:
        file = kubeconfig_to(tmp_path, str(server.make_url("")))
        async with await KubeApi.open(Settings(), "tests", str(file)) as api:
            yield api


async def test_an_answer_without_an_object_counts_neither_as_empty_nor_as_written(kube: KubeApi) -> None:
    obj = {"metadata": {"name": "a"}}
    for asked in (
        kube.get(ACCOUNT, "ns", "a"),
        kube.list(ACCOUNT, "ns"),
        kube.create(ACCOUNT, obj, "ns"),
        kube.patch(ACCOUNT, "ns", "a", obj),
        kube.delete(ACCOUNT, "ns", "a"),
        kube.may(("list",), ACCOUNT),
    ):
        with pytest.raises(Unavailable, match="Account"):
            await asked


async def test_a_line_without_an_object_is_no_event(kube: KubeApi) -> None:
    events = kube.watch(ACCOUNT, "ns", resource_version="1")
    with pytest.raises(Unavailable, match="watch Account ns"):
        await anext(events)
