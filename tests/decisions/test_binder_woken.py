"""Claims that no batch has taken wake the binder: once for all of them, however often each is edited."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from activities.claims import known as module
from activities.claims.known import Known
from domain.claims import RESOURCE_CLAIM, THE_BINDER
from domain.identity import Key
from engine.kube import KubeApi
from engine.kube.store import Followed, Mirror, Store
from engine.settings import Settings

MOMENT = 0.05


class Mirrors:
    """Mirrors that learn only what is told."""

    def follow(self, followed: Followed) -> Mirror:
        return Mirror(cast(KubeApi, None), followed)


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """Whom the process has woken."""
    monkeypatch.setattr(module, "UNTAKEN", MOMENT)
    return []


@pytest.fixture
def known(woken: list[Key]) -> Known:
    async def wake(key: Key) -> None:
        woken.append(key)

    return Known(cast(KubeApi, None), cast(Store, Mirrors()), Settings(), wake)


def edit(known: Known, name: str, version: int, *, handle: str = "") -> None:
    status: Any = {"resourceHandle": {"name": handle}} if handle else {}
    metadata = {"namespace": "users", "name": name, "uid": name, "resourceVersion": str(version)}
    known.learn(RESOURCE_CLAIM, {"metadata": metadata, "spec": {}, "status": status})


async def a_moment() -> None:
    await asyncio.sleep(3 * MOMENT)


async def test_many_edits_of_many_claims_wake_the_binder_once(known: Known, woken: list[Key]) -> None:
    for version in range(1, 20):
        for name in ("one", "two", "three"):
            edit(known, name, version)
    await a_moment()
    assert woken == [THE_BINDER]


async def test_what_comes_after_the_wake_wakes_again(known: Known, woken: list[Key]) -> None:
    edit(known, "one", 1)
    await a_moment()
    edit(known, "two", 1)
    await a_moment()
    assert woken == [THE_BINDER, THE_BINDER]


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
    assert woken == [THE_BINDER]


async def test_a_batch_under_way_takes_what_comes(known: Known, woken: list[Key]) -> None:
    known.serving = True
    edit(known, "one", 1)
    await a_moment()
    assert woken == []
