"""What `perdure bench outages`, `day` and `idle` ask for, and how they ask while a server is away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from domain.claims import RESOURCE_CLAIM
from engine.errors import Absent, ApiError, Conflict, Unavailable
from engine.kube.api import KubeApi
from localcloud.bench import all_areas, outages
from localcloud.bench.all_areas import Area, Everything, PatientKubeApi
from localcloud.bench.command import Benchmark, selected_work

Answer = ApiError | dict[str, Any]


def api(monkeypatch: pytest.MonkeyPatch, *answers: Answer) -> tuple[PatientKubeApi, list[str]]:
    """A client of a server that answers so, one after the other, and the methods of the requests."""
    script, asked = iter(answers), list[str]()

    async def send(_: KubeApi, method: str, *__: object, **___: object) -> dict[str, Any]:
        asked.append(method)
        answer = next(script)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    monkeypatch.setattr(KubeApi, "_send", send)
    monkeypatch.setattr(all_areas, "AGAIN_SECONDS", 0)
    client = object.__new__(PatientKubeApi)
    client.operator_domain = "poolboy.gpte.redhat.com"
    client._observing = False
    return client, asked


CLAIM: dict[str, Any] = {"metadata": {"name": "one"}}
AWAY = Unavailable("no answer")
TAKEN = Conflict("it exists", code="AlreadyExists")
GONE = Absent("not found", code="NotFound")


def test_a_creation_whose_answer_was_lost_counts_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    client, asked = api(monkeypatch, AWAY, TAKEN, CLAIM)
    assert asyncio.run(client.create(RESOURCE_CLAIM, CLAIM, "users")) == CLAIM
    assert asked == ["POST", "POST", "GET"]


def test_a_name_that_was_taken_before_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = api(monkeypatch, TAKEN)
    with pytest.raises(Conflict):
        asyncio.run(client.create(RESOURCE_CLAIM, CLAIM, "users"))


def test_a_deletion_whose_answer_was_lost_counts_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    client, asked = api(monkeypatch, AWAY, GONE)
    assert asyncio.run(client.delete(RESOURCE_CLAIM, "users", "one")) == {}
    assert asked == ["DELETE", "DELETE"]


def test_a_kind_that_a_starting_server_does_not_serve_yet_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    client, asked = api(monkeypatch, Absent("404 page not found"), CLAIM)
    assert asyncio.run(client.create(RESOURCE_CLAIM, CLAIM, "users")) == CLAIM
    assert asked == ["POST", "POST"]


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
