"""Claims that no batch has taken wake the binder: once for all of them, however often each is edited."""

from __future__ import annotations

from typing import Any, cast

import pytest
from claim_domain import BINDER
from unwatched_cache import MOMENT, a_moment, unwatched_queue

from activities.claims import binder_queue as module
from activities.claims.binder_queue import BinderQueue
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE
from domain.identity import Key


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    """The lifecycles that the process has woken."""
    monkeypatch.setattr(module, "UNTAKEN", MOMENT)
    return []


@pytest.fixture
def queue(woken: list[Key]) -> BinderQueue:
    return unwatched_queue(woken)


def edit(queue: BinderQueue, name: str, version: int, *, handle: str = "", detached: bool = False) -> None:
    reference = {**({"name": handle} if handle else {}), **({"detached": True} if detached else {})}
    status: Any = {"resourceHandle": reference} if reference else {}
    metadata = {"namespace": "users", "name": name, "uid": name, "resourceVersion": str(version)}
    queue.cache.learn(RESOURCE_CLAIM, {"metadata": metadata, "spec": {}, "status": status})


async def test_many_edits_of_many_claims_wake_the_binder_once(queue: BinderQueue, woken: list[Key]) -> None:
    for version in range(1, 20):
        for name in ("one", "two", "three"):
            edit(queue, name, version)
    await a_moment()
    assert woken == [BINDER]


async def test_a_change_after_the_wake_wakes_again(queue: BinderQueue, woken: list[Key]) -> None:
    edit(queue, "one", 1)
    await a_moment()
    edit(queue, "two", 1)
    await a_moment()
    assert woken == [BINDER, BINDER]


async def test_a_claim_that_got_its_handle_in_time_wakes_no_other(queue: BinderQueue, woken: list[Key]) -> None:
    edit(queue, "one", 1)
    edit(queue, "one", 2, handle="guid-1")
    await a_moment()
    assert woken == []


async def test_a_detached_claim_is_not_bound_though_it_names_no_handle(queue: BinderQueue, woken: list[Key]) -> None:
    edit(queue, "one", 1, detached=True)
    await a_moment()
    assert woken == []


async def test_one_claim_that_was_taken_does_not_hide_another(queue: BinderQueue, woken: list[Key]) -> None:
    edit(queue, "one", 1)
    edit(queue, "two", 1)
    edit(queue, "one", 2, handle="guid-1")
    await a_moment()
    assert woken == [BINDER]


async def test_a_batch_under_way_takes_what_comes(queue: BinderQueue, woken: list[Key]) -> None:
    queue.serving = True
    edit(queue, "one", 1)
    await a_moment()
    assert woken == []


# What a claim that waits for a free handle is looked at for.

LAB: dict[str, Any] = {"resources": [{"name": "lab", "provider": {"name": "lab"}, "template": {"kind": "Lab"}}]}


def look(queue: BinderQueue, *names: str) -> None:
    """The binder looks at these claims, and finds nothing for them."""
    for name in names:
        edit(queue, name, 1)
        queue.served(cast(Any, queue.cache.get(RESOURCE_CLAIM, "users", name)), queue.news_for_all)


def write(queue: BinderQueue, version: int, *, ready: bool = False, **spec: Any) -> None:
    metadata = {"namespace": queue.cache.namespace, "name": "guid-1", "uid": "1", "resourceVersion": str(version)}
    queue.cache.learn(RESOURCE_HANDLE, {"metadata": metadata, "spec": spec, "status": {"ready": ready}})


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
async def test_a_free_handle_that_may_fit_now_is_offered_to_every_claim(
    queue: BinderQueue, before: Any, after: Any
) -> None:
    queue.serving = True
    write(queue, 1, **before)
    look(queue, "one", "two")
    write(queue, 2, **after)
    assert queue.waiting.keys() == {("users", "one"), ("users", "two")}


@pytest.mark.parametrize(
    "after",
    [
        LAB | {"lifespan": {"end": "2026-01-01T00:00:00Z"}},
        {"resources": [{**LAB["resources"][0], "reference": {"name": "made"}}]},
    ],
    ids=["an end", "a reference"],
)
async def test_a_free_handle_that_fits_as_before_is_offered_to_no_claim(queue: BinderQueue, after: Any) -> None:
    queue.serving = True
    write(queue, 1, **LAB)
    look(queue, "one")
    write(queue, 2, ready=True, **after)
    assert not queue.waiting


async def test_a_claim_that_a_handle_comes_to_name_is_observed(queue: BinderQueue) -> None:
    queue.serving = True
    look(queue, "one", "two")
    write(queue, 1, resourceClaim={"namespace": "users", "name": "one"})
    assert queue.waiting.keys() == {("users", "one")}
    look(queue, "one")
    write(queue, 2, ready=True, resourceClaim={"namespace": "users", "name": "one"})
    assert not queue.waiting
