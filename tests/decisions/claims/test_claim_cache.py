"""The informer cache of the claims area: what it reads from the API server, and which lifecycles it wakes."""

from __future__ import annotations

from typing import Any

import pytest
from memory_kube import MemoryKube
from unwatched_cache import MOMENT, a_moment, unwatched_cache

from activities.claims import cache as module
from activities.claims.cache import ClaimCache
from domain.claims import RESOURCE_CLAIM, RESOURCE_HANDLE, RESOURCE_PROVIDER
from domain.claims.constants import NAMESPACE_REQUESTER_ANNOTATION
from domain.identity import Key, Kind
from engine import kube
from engine.errors import Absent

Json = dict[str, Any]
KEY = Key(kind="ResourceClaim", namespace="users", name="mine", uid="1")
UNBOUND: Json = {"metadata": {"namespace": "users", "name": "mine", "uid": "1", "resourceVersion": "4"}, "spec": {}}


class Server:
    """The API server: at most one object."""

    def __init__(self, there: Json | None = None) -> None:
        self.there = there
        self.requests = 0

    async def get(self, kind: Kind, namespace: str, name: str) -> Json:
        self.requests += 1
        if self.there is None:
            raise Absent(name)
        return self.there


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[Key]:
    monkeypatch.setattr(module, "LONGEST_BEHIND", MOMENT)
    return []


def of_uid(uid: str, version: str) -> Json:
    return {**UNBOUND, "metadata": {**UNBOUND["metadata"], "uid": uid, "resourceVersion": version}}


@pytest.mark.parametrize(
    ("cached", "there", "fresh", "found", "requests"),
    [
        (UNBOUND, None, False, "4", 0),
        (UNBOUND, of_uid("1", "5"), True, "5", 1),
        (None, UNBOUND, False, "4", 1),
        (of_uid("former", "3"), UNBOUND, False, "4", 1),
        (UNBOUND, of_uid("next", "5"), True, "", 1),
        (None, None, False, "", 1),
    ],
    ids=["cached", "fresh", "not cached yet", "a former one cached", "recreated", "absent"],
)
async def test_an_object_that_the_cache_lacks_is_read_before_it_counts_as_missing(
    cached: Json | None, there: Json | None, fresh: bool, found: str, requests: int
) -> None:
    server = Server(there)
    cache = unwatched_cache([], server)
    if cached:
        cache.learn(RESOURCE_CLAIM, cached)
    claim: Any = await cache.own(RESOURCE_CLAIM, KEY, fresh=fresh)
    assert (claim["metadata"]["resourceVersion"] if claim else "", server.requests) == (found, requests)


async def test_providers_are_read_with_all_that_they_link_to_and_each_once() -> None:
    server = Server()
    cache = unwatched_cache([], server)
    for name, linked in (("a", ["b", "absent"]), ("b", ["a", "c"]), ("c", []), ("d", [])):
        links = [{"name": each, "when": "false"} for each in linked]
        metadata = {"namespace": "poolboy", "name": name, "uid": name, "resourceVersion": "1"}
        cache.learn(RESOURCE_PROVIDER, {"metadata": metadata, "spec": {"linkedResourceProviders": links}})
    found = await cache.providers_for({"spec": {"provider": {"name": "a"}}}, None, names=["absent"])
    assert (found.keys(), server.requests) == ({"a", "b", "c"}, 1)


def test_the_newest_versions_include_own_writes() -> None:
    cache = unwatched_cache([])
    assert cache.newest() == {}
    cache.learn(RESOURCE_CLAIM, of_uid("1", "10"))
    cache.learn(RESOURCE_CLAIM, {**UNBOUND, "metadata": {**UNBOUND["metadata"], "name": "other", "uid": "2"}})
    assert cache.newest() == {"ResourceClaim": "10"}
    assert cache.newest(RESOURCE_HANDLE) == {}


def provider(version: int, **more: Any) -> Json:
    metadata = {"namespace": "poolboy", "name": "lab", "uid": "p", "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


def namespace(version: int, requester: str = "") -> Json:
    metadata: Json = {"name": "users", "uid": "n", "resourceVersion": str(version)}
    annotations = {NAMESPACE_REQUESTER_ANNOTATION: requester} if requester else {}
    return {"metadata": {**metadata, "annotations": annotations}}


def edit_provider(cache: ClaimCache) -> None:
    cache.learn(RESOURCE_PROVIDER, provider(2, spec={"vars": {"size": 2}}))


def show_condition(cache: ClaimCache) -> None:
    cache.learn(RESOURCE_PROVIDER, provider(2, status={"conditions": []}))


def name_requester(cache: ClaimCache) -> None:
    cache.learn(kube.NAMESPACE, namespace(2, "ada"))


def add_namespace(cache: ClaimCache) -> None:
    obj = namespace(3, "bob")
    cache.learn(kube.NAMESPACE, {**obj, "metadata": {**obj["metadata"], "name": "others", "uid": "o"}})


def delete_claim(cache: ClaimCache) -> None:
    cache.claims.entries.clear()


def edit_claim(cache: ClaimCache) -> None:
    cache.learn(RESOURCE_CLAIM, of_uid("1", "5"))


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        (edit_provider, True),
        (name_requester, True),
        (delete_claim, True),
        (show_condition, False),
        (add_namespace, False),
        (edit_claim, False),
    ],
)
async def test_a_new_lifecycle_is_woken_if_what_it_was_evaluated_from_has_changed(
    woken: list[Key], change: Any, wakes: bool
) -> None:
    cache = unwatched_cache(woken)
    cache.learn(RESOURCE_CLAIM, UNBOUND)
    cache.learn(RESOURCE_PROVIDER, provider(1))
    cache.learn(kube.NAMESPACE, namespace(1))
    cache.check_later(KEY, cache.edits)
    change(cache)
    assert woken == []
    await a_moment()
    assert woken == [KEY] * wakes


async def test_an_edit_while_an_object_is_evaluated_wakes_it_afterwards(woken: list[Key]) -> None:
    cache = unwatched_cache(woken)
    cache.learn(RESOURCE_CLAIM, UNBOUND)
    cache.learn(RESOURCE_PROVIDER, provider(1))
    edits = cache.edits
    edit_provider(cache)
    cache.check_later(KEY, edits)
    await a_moment()
    assert woken == [KEY]


async def test_hanging_streams_let_a_pass_read_its_own_objects_and_list_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.kube.informer_cache.LONGEST_BEHIND", MOMENT)
    server = MemoryKube()
    cache = unwatched_cache([], server)
    for mirror in cache.mirrors.values():
        mirror.absent()
    assert await cache.reached({})
    refreshed: list[str] = []

    async def refresh(name: str, version: str) -> None:
        refreshed.append(f"{name} {version}".strip())

    for name, mirror in cache.mirrors.items():
        mirror.refresh = lambda version, name=name: refresh(name, version)  # type: ignore[method-assign, misc]
    assert not await cache.reached({"ResourceClaim": "7", "ResourceProvider": "9"})
    assert refreshed == ["ResourcePool", "ResourcePoolScaling", "ResourceProvider 9", "Namespace"]
