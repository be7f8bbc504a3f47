"""What `perdure bench claims` counts: words that are true of objects, and when they were first."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import typer
from claim_domain import NAMES

from domain.built_in_kinds import CONFIG_MAP
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.claims.objects import value_at
from domain.custom_resources import custom_resources
from domain.identity import Kind
from localcloud.bench import claims as bench
from localcloud.bench.claims_race import agreed
from localcloud.bench.claims_sightings import (
    BOUND,
    DELETING,
    DETACHED,
    FREE_AND_READY,
    GONE,
    READY,
    Sightings,
)
from localcloud.bench.claims_telling import line_of
from localcloud.bench.claims_things import _PROVIDERS, claim, end, pool
from localcloud.bench.command import _rows
from localcloud.bench.figures import Figure

Json = dict[str, Any]


def obj(name: str = "it", *, spec: Json | None = None, metadata: Json | None = None, **status: Any) -> Json:
    return {"metadata": {"namespace": "ns", "name": name, **(metadata or {})}, "spec": spec or {}, "status": status}


def shown(kind: Kind, each: Json) -> set[str]:
    return set(Sightings(Cluster())._words[kind](each))  # type: ignore[arg-type]


HELD: Json = {"resourceHandle": {"name": "guid-abcde"}}


@pytest.mark.parametrize(
    ("kind", "each", "words"),
    [
        (RESOURCE_CLAIM, obj(), set()),
        (RESOURCE_CLAIM, obj(**HELD, ready=True), {BOUND, READY}),
        (RESOURCE_CLAIM, obj(resourceHandle={"name": "guid-abcde", "detached": True}), {DETACHED}),
        (RESOURCE_HANDLE, obj(ready=True), {"free", READY, FREE_AND_READY}),
        (RESOURCE_HANDLE, obj(spec={"resourceClaim": {}}, ready=True), {READY}),
        (CONFIG_MAP, obj(), set()),
    ],
)
def test_words_say_what_an_object_shows(kind: Kind, each: Json, words: set[str]) -> None:
    assert shown(kind, each) == words


class Cluster:
    """Lists and watches what it is told to."""

    operator_domain = NAMES.domain

    def __init__(self, *events: tuple[str, Json]) -> None:
        self.events = events
        self.watched: set[Kind] = set()
        self.things: list[Json] = []

    async def list(self, kind: Kind) -> Any:
        items = [obj("listed", ready=True)] if kind == RESOURCE_CLAIM else self.things if kind == CONFIG_MAP else []
        return type("Listing", (), {"items": items, "resource_version": "1"})

    async def watch(self, kind: Kind, *, resource_version: str) -> Any:
        for type_, each in self.events if kind == RESOURCE_CLAIM else ():
            yield type("Event", (), {"type": type_, "object": each})
        self.watched.add(kind)
        try:
            await asyncio.Event().wait()
        finally:
            self.watched.remove(kind)


async def test_first_sightings_stay_and_counts_follow() -> None:
    deleting = {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    cluster = Cluster(
        ("ADDED", obj("new", **HELD, ready=True)),
        ("MODIFIED", obj("new", **HELD, ready=False)),
        ("MODIFIED", obj("listed", metadata=deleting)),
        ("DELETED", obj("listed", metadata=deleting)),
    )
    seen = Sightings(cluster)  # type: ignore[arg-type]
    async with asyncio.timeout(5), seen.followed():
        gone = await seen.moment(RESOURCE_CLAIM, "ns/listed", GONE)
        assert seen.count(RESOURCE_CLAIM, READY) == 0
        assert seen.count(RESOURCE_CLAIM, BOUND) == 1
        assert seen.first(RESOURCE_CLAIM, "ns/new", READY) is not None
        assert seen.handle_of == {"ns/new": "guid-abcde"}
        assert seen.ended(RESOURCE_CLAIM, "ns/listed") == seen.first(RESOURCE_CLAIM, "ns/listed", DELETING)
        assert gone >= (seen.ended(RESOURCE_CLAIM, "ns/listed") or gone + 1)


async def test_what_is_not_followed_for_a_while_is_listed_anew() -> None:
    cluster = Cluster()
    seen = Sightings(cluster)  # type: ignore[arg-type]
    async with asyncio.timeout(5), seen.followed():
        async with seen.only(RESOURCE_CLAIM):
            assert cluster.watched <= {RESOURCE_CLAIM}
            cluster.things = [
                obj("made meanwhile", metadata={"annotations": {NAMES.resource_handle_name_annotation: "h"}})
            ]
        assert seen.count(CONFIG_MAP, BOUND) == 1


@pytest.mark.parametrize(
    ("kind", "each"),
    [
        *(("ResourceProvider", each) for each in _PROVIDERS),
        ("ResourceClaim", claim("one", lifespan=end(1_800_000_000.7))),
        ("ResourcePool", pool("pool", 3)),
    ],
)
def test_what_it_makes_can_be_read(kind: str, each: Json) -> None:
    model = next(model for model in custom_resources() if model.kind_of.name == kind)
    assert model.model_validate(each).metadata.name == value_at(each, "metadata", "name")


def test_an_end_is_a_whole_second_and_not_before_it_was_asked_for() -> None:
    assert end(1_800_000_000.7) == {"end": "2027-01-15T08:00:00Z"}


def test_every_row_but_the_long_one_is_measured_unless_some_are_named() -> None:
    rows = [covered for covered, _ in bench.MEASUREMENTS]
    assert _rows("", rows, bench.ON_REQUEST) == {*"abcdeghikr", "f1", "f2", "f3"}
    assert _rows("f, g", rows, bench.ON_REQUEST) == {"f1", "f2", "f3", "g"}
    assert _rows("f2", rows, bench.ON_REQUEST) == {"f2"}
    assert _rows("j, a", rows, bench.ON_REQUEST) == {"a", "j"}
    assert _rows("s", rows, bench.ON_REQUEST) == {"s100", "s20", "s5"}
    with pytest.raises(typer.BadParameter, match="not z"):
        _rows("z", rows, bench.ON_REQUEST)


def test_a_figure_is_told_in_one_line_with_its_goal() -> None:
    figure = Figure(row="f", what="late by, most", measured=1.25, unit="s", goal="≤ 1 s", note="p50 0.3 s")
    assert line_of(figure) == "f: late by, most: 1.25 s (≤ 1 s); p50 0.3 s"


def _claim(name: str, handle: str) -> Json:
    return obj(name, **({"resourceHandle": {"name": handle}} if handle else {}))


def _handle(name: str, claim: str) -> Json:
    return obj(name, spec={"resourceClaim": {"name": claim}} if claim else {})


def test_a_race_counts_only_what_both_sides_say_and_nobody_else() -> None:
    claims = [_claim("a", "one"), _claim("b", "two"), _claim("c", ""), _claim("d", "four")]
    handles = [
        _handle("one", "a"),
        _handle("two", "b"),
        _handle("three", "b"),
        _handle("four", ""),
        _handle("five", "c"),
    ]
    assert agreed(claims, handles) == {"a": "one"}
