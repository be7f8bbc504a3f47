"""What `perdure bench outages`, `day` and `idle` ask for, and how they ask while a server is away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from domain.claims import RESOURCE_CLAIM
from domain.operator_domain import DEFAULT
from engine.errors import Conflict
from engine.kube.connection import Connection
from localcloud.bench import all_areas, outages
from localcloud.bench.all_areas import Area, Everything, PatientKubeApi
from localcloud.bench.command import Benchmark, selected_work

Json = dict[str, Any]


class Response:
    """An answer of the API server."""

    def __init__(self, status: int, body: str) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self._body = body

    async def __aenter__(self) -> Response:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held."""

    async def read(self) -> bytes:
        return self._body.encode()

    async def text(self, **_: object) -> str:
        return self._body


class Server:
    """An API server that answers so, one after the other; None is no answer."""

    def __init__(self, *answers: Response | None) -> None:
        self._answers = iter(answers)
        self.asked: list[str] = []

    async def request(self, method: str, *_: object, **__: object) -> Response:
        self.asked.append(method)
        answer = next(self._answers)
        if answer is None:
            raise aiohttp.ServerDisconnectedError
        return answer


Serve = Callable[..., tuple[PatientKubeApi, list[str]]]


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """Makes the answers of a server; gives its client, and the methods of the requests."""
    monkeypatch.setattr(all_areas, "AGAIN_SECONDS", 0)
    async with PatientKubeApi(Connection(), process="tests", operator_domain=DEFAULT) as client:

        def serve(*answers: Response | None) -> tuple[PatientKubeApi, list[str]]:
            server = Server(*answers)
            monkeypatch.setattr(aiohttp.ClientSession, "request", lambda _, *a, **more: server.request(*a, **more))
            return client, server.asked

        yield serve


def refused(status: int, reason: str) -> Response:
    return Response(status, json.dumps({"kind": "Status", "reason": reason, "message": reason}))


CLAIM: Json = {"kind": RESOURCE_CLAIM.name, "metadata": {"name": "one"}}
MADE = Response(200, json.dumps(CLAIM))
AWAY = None
TAKEN = refused(409, "AlreadyExists")
GONE = refused(404, "NotFound")


async def test_a_creation_whose_answer_was_lost_counts_as_done(serve: Serve) -> None:
    client, sent = serve(AWAY, TAKEN, MADE)
    assert await client.create(RESOURCE_CLAIM, CLAIM, "users") == CLAIM
    assert sent == ["POST", "POST", "GET"]


async def test_a_name_that_was_taken_before_is_told(serve: Serve) -> None:
    client, _ = serve(TAKEN)
    with pytest.raises(Conflict):
        await client.create(RESOURCE_CLAIM, CLAIM, "users")


async def test_a_deletion_whose_answer_was_lost_counts_as_done(serve: Serve) -> None:
    client, sent = serve(AWAY, GONE)
    assert await client.delete(RESOURCE_CLAIM, "users", "one") is None
    assert sent == ["DELETE", "DELETE"]


async def test_a_kind_that_a_starting_server_does_not_serve_yet_is_asked_for_again(serve: Serve) -> None:
    client, sent = serve(Response(404, "404 page not found"), MADE)
    assert await client.create(RESOURCE_CLAIM, CLAIM, "users") == CLAIM
    assert sent == ["POST", "POST"]


class Noted(Area):
    audit = "noted"

    def __init__(self) -> None:
        self.changes, self.ended = {}, set()
        self.calls: list[str] = []

    async def _create(self, name: str) -> None:
        self.calls.append(f"create {name}")

    async def _change(self, name: str, number: int) -> None:
        self.calls.append(f"change {name} {number}")

    async def _end(self, name: str) -> None:
        self.calls.append(f"end {name}")

    async def disagreements(self) -> list[str]:
        return []


def test_an_outage_changes_a_third_ends_a_third_and_creates_a_third(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outages, "THIRDS", {"claims": 2})
    area = Noted()
    before, meanwhile = outages.plan(Everything(None, {"claims": area}))  # type: ignore[arg-type]

    async def run() -> None:
        for each in (*before, *meanwhile):
            await each()

    asyncio.run(run())
    assert sorted(area.calls[:4]) == [f"create claims-{part}-{n}" for part in "ab" for n in range(2)]
    assert area.calls[4:7] == ["change claims-a-0 1", "end claims-b-0", "create claims-c-0"]
    assert area.changes == {"claims-a-0": 1, "claims-a-1": 1, "claims-c-0": 0, "claims-c-1": 0}
    assert area.ended == {"claims-b-0", "claims-b-1"}


def test_without_only_no_row_needs_root_a_production_temporal_or_debian() -> None:
    assert len(selected_work(Benchmark.OUTAGES, "", {})) == 2
    assert len(selected_work(Benchmark.OUTAGES, "disk,clock", {})) == 2


def test_a_day_and_idling_are_sized_by_the_options() -> None:
    (day,) = selected_work(Benchmark.DAY, "claims,products", {"minutes": 6, "scale": 0.1})
    assert day.args[1] == {"claims", "products"}  # type: ignore[attr-defined]
    assert (day.args[0].minutes, day.args[0].scale) == (6, 0.1)  # type: ignore[attr-defined]
    (idle,) = selected_work(Benchmark.IDLE, "run", {"idle_seconds": 60})
    assert (idle.args[0].idle_seconds, idle.args[1]) == (60, frozenset({"run"}))  # type: ignore[attr-defined]
