"""Claims that no batch has taken wake the binder: once for all of them, however often each is edited."""

from __future__ import annotations

from typing import Any, cast

import pytest
from claim_domain import BINDER
from told_known import MOMENT, a_moment, told_known

from activities.claims import known as module
from activities.claims.known import Known
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.identity import Key


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """Whom the process has woken."""
    monkeypatch.setattr(module, "UNTAKEN", MOMENT)
    return []


@pytest.fixture
def known(woken: list[Key]) -> Known:
    return told_known(woken)


def edit(known: Known, name: str, version: int, *, handle: str = "") -> None:
    status: Any = {"resourceHandle": {"name": handle}} if handle else {}
    metadata = {"namespace": "users", "name": name, "uid": name, "resourceVersion": str(version)}
    known.learn(RESOURCE_CLAIM, {"metadata": metadata, "spec": {}, "status": status})


async def test_many_edits_of_many_claims_wake_the_binder_once(known: Known, woken: list[Key]) -> None:
    for version in range(1, 20):
        for name in ("one", "two", "three"):
            edit(known, name, version)
    await a_moment()
    assert woken == [BINDER]


async def test_what_comes_after_the_wake_wakes_again(known: Known, woken: list[Key]) -> None:
    edit(known, "one", 1)
    await a_moment()
    edit(known, "two", 1)
    await a_moment()
    assert woken == [BINDER, BINDER]


async def test_a_claim_that_got_its_handle_in_time_wakes_nobody(known: Known, woken: list[Key]) -> None:
    edit(known, "one", 1)
    edit(known, "one", 2, handle="guid-1")
    await a_moment()
    assert woken == []


async def test_one_claim_that_was_taken_does_not_hide_another(known: Known, woken: list[Key]) -> None:
    edit(known, "one", 1)
    edit(known, "two", 1)
    edit(known, "one", 2, handle="guid-1")
    await a_moment()
    assert woken == [BINDER]


async def test_a_batch_under_way_takes_what_comes(known: Known, woken: list[Key]) -> None:
    known.serving = True
    edit(known, "one", 1)
    await a_moment()
    assert woken == []


# What a claim that waits for a free handle is looked at for.

LAB: dict[str, Any] = {"resources": [{"name": "lab", "provider": {"name": "lab"}, "template": {"kind": "Lab"}}]}


def look(known: Known, *names: str) -> None:
    """The binder looks at these claims, and finds nothing for them."""
    for name in names:
        edit(known, name, 1)
        known.looked_at(cast(Any, known.get(RESOURCE_CLAIM, "users", name)), known.news_for_all)


def write(known: Known, version: int, *, ready: bool = False, **spec: Any) -> None:
    metadata = {"namespace": known.namespace, "name": "guid-1", "uid": "1", "resourceVersion": str(version)}
    known.learn(RESOURCE_HANDLE, {"metadata": metadata, "spec": spec, "status": {"ready": ready}})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LAB, {"resources": [{**LAB["resources"][0], "template": {"kind": "Lab", "spec": {}}}]}),
        (LAB, {"resources": [{**LAB["resources"][0], "provider": {"name": "other"}}]}),
        ({"provider": {"name": "lab"}}, {"provider": {"name": "other"}}),
        ({"provider": {"name": "lab"}}, {"provider": {"name": "lab"}, **LAB}),
        (LAB | {"lifespan": {"end": "2026-01-01T00:00:00Z"}}, LAB | {"lifespan": {"end": "2026-01-02T00:00:00Z"}}),
        (LAB | {"lifespan": {"end": "2026-01-01T00:00:00Z"}}, LAB),
    ],
    ids=["another template", "another resource", "another provider", "rendered", "a later end", "no end"],
)
async def test_a_free_handle_that_may_fit_now_is_offered_to_every_claim(known: Known, before: Any, after: Any) -> None:
    known.serving = True
    write(known, 1, **before)
    look(known, "one", "two")
    write(known, 2, **after)
    assert known.waiting.keys() == {("users", "one"), ("users", "two")}


@pytest.mark.parametrize(
    "after",
    [
        LAB | {"lifespan": {"end": "2026-01-01T00:00:00Z"}},
        {"resources": [{**LAB["resources"][0], "reference": {"name": "made"}}]},
    ],
    ids=["an end", "a reference"],
)
async def test_a_free_handle_that_fits_as_before_is_offered_to_nobody(known: Known, after: Any) -> None:
    known.serving = True
    write(known, 1, **LAB)
    look(known, "one")
    write(known, 2, ready=True, **after)
    assert not known.waiting


async def test_a_claim_that_a_handle_comes_to_name_is_looked_at(known: Known) -> None:
    known.serving = True
    look(known, "one", "two")
    write(known, 1, resourceClaim={"namespace": "users", "name": "one"})
    assert known.waiting.keys() == {("users", "one")}
    look(known, "one")
    write(known, 2, ready=True, resourceClaim={"namespace": "users", "name": "one"})
    assert not known.waiting
