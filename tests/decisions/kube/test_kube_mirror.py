"""What a process has written itself is known at once, but nothing that has gone comes back by a late answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from domain.claims import RESOURCE_CLAIM
from engine.kube import JsonObject, KubeApi, informer_cache
from engine.kube.api import Listing, WatchEvent
from engine.kube.informer_cache import Mirror, entry_of, reached
from engine.kube.reflector import Followed


def an_object(uid: str = "1", version: str = "7") -> JsonObject:
    return {"metadata": {"namespace": "users", "name": "mine", "uid": uid, "resourceVersion": version}}


class Lists:
    """An API server with these answers to list requests."""

    def __init__(self, lists: list[Listing]) -> None:
        self._lists = lists

    async def pages(self, *_: object, **__: object) -> AsyncIterator[Listing]:
        yield self._lists.pop(0)


def mirror_that_saw_go(obj: JsonObject) -> Mirror:
    """As its reflector reports a deletion."""
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    mirror.learn(obj)
    mirror.entries.clear()
    mirror.changed(entry_of(obj), None, seen_live=True)
    return mirror


def test_an_own_write_is_known_at_once_and_an_older_answer_changes_nothing() -> None:
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    mirror.learn(an_object(version="9"))
    mirror.learn(an_object(version="8"))
    assert mirror.get("users", "mine") == an_object(version="9")


def test_a_deleted_object_does_not_come_back_by_a_late_answer() -> None:
    mirror = mirror_that_saw_go(an_object())
    mirror.learn(an_object(version="8"))
    assert mirror.get("users", "mine") is None


def test_another_object_of_the_name_is_learnt() -> None:
    mirror = mirror_that_saw_go(an_object())
    mirror.learn(an_object(uid="2", version="9"))
    assert mirror.get("users", "mine") == an_object(uid="2", version="9")


async def test_a_version_is_reached_by_an_event_or_a_bookmark_and_waited_for_until_then() -> None:
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    take = mirror.take
    take(WatchEvent("ADDED", an_object(version="9")))
    versions = {RESOURCE_CLAIM.name: "10", "AnotherKind": "700"}
    waiting = asyncio.create_task(reached([mirror], versions))
    await asyncio.sleep(0)
    assert not waiting.done()
    take(WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": "11"}}))
    assert await waiting
    assert mirror.received == "9", "a reader that has seen nothing newer waits for no bookmark"


async def test_caches_must_reach_the_list_that_showed_a_deletion() -> None:
    lists = [Listing([an_object(version="9")], "10"), Listing([], "12"), Listing([an_object(version="13")], "14")]
    mirror = Mirror(cast(KubeApi, Lists(lists)), Followed(RESOURCE_CLAIM))
    for newest in ("9", "12", "13"):
        await mirror.refresh(lists[0].resource_version)
        assert mirror.received == newest


async def test_a_stream_that_hangs_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_cache, "LONGEST_BEHIND", 0.01)
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    assert not await reached([mirror], {RESOURCE_CLAIM.name: "1"})
    assert await reached([mirror], {})
