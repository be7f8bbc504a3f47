"""What a handle has made goes with it, also what was made while it ended, and nothing else does."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from claim_domain import NAMES

from activities.claims.cache import ClaimCache
from activities.claims.managed_resources import Managed
from engine.errors import Absent, ApiError, Conflict, Invalid, Unavailable
from engine.kube import CONFIG_MAP, KubeApi
from engine.kube.discovery import Discovery
from engine.kube.errors import NO_SUCH_KIND

Json = dict[str, Any]
HANDLE: Json = {"metadata": {"name": "guid-abcde", "uid": "1"}}


def an_object(name: str, owner: str = "") -> Json:
    annotations = {NAMES.resource_handle_name_annotation: owner} if owner else {}
    metadata = {"namespace": "users", "name": name, "uid": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


class Cluster:
    """The objects of one test, and the handle as the API server has it."""

    names = NAMES

    def __init__(self, handle: Json | None, *objects: Json) -> None:
        self.handle = handle
        self.objects = {each["metadata"]["name"]: each for each in objects}
        self.refusals = 0
        self.instead: list[Json] = []
        self.namespace = "poolboy"
        self.unserved: set[str] = set()
        self.elsewhere: bool | ApiError = False
        self.forgotten: list[str] = []
        self.moved = False
        self.unreadable: ApiError | None = None

    async def get(self, kind: object, namespace: str, name: str) -> Json:
        if self.unreadable:
            raise self.unreadable
        if self.moved and not self.forgotten:
            raise Absent(name, code=NO_SUCH_KIND)
        if name not in self.objects:
            raise Absent(name)
        return self.objects[name]

    async def delete(self, kind: object, namespace: str, name: str, uid: str) -> None:
        if self.refusals:
            self.refusals -= 1
            self.objects |= {each["metadata"]["name"]: each for each in self.instead}
            raise Conflict(name)
        assert self.objects.pop(name)["metadata"]["uid"] == uid

    async def served(self, api_version: str, kind: str) -> object:
        if api_version in self.unserved:
            raise Absent(api_version, code=NO_SUCH_KIND)
        return SimpleNamespace(kind=CONFIG_MAP)

    async def in_any_version(self, api_version: str, kind: str) -> object:
        if isinstance(self.elsewhere, ApiError):
            raise self.elsewhere
        return SimpleNamespace(kind=CONFIG_MAP) if self.elsewhere else None

    def forget(self, api_version: str, kind: str) -> None:
        self.forgotten.append(api_version)

    async def fresh(self, kind: object, namespace: str, name: str) -> Json | None:
        return self.handle if name == "guid-abcde" else {"metadata": {"name": name}}


async def taken_back(cluster: Cluster, *names: str) -> bool:
    managed = Managed(cast(KubeApi, cluster), cast(Discovery, cluster), cast(ClaimCache, cluster))
    return await managed.take_back(HANDLE, [an_object(name) for name in names])


ENDED = {
    "gone": None,
    "recreated": {"metadata": {"name": "guid-abcde", "uid": "2"}},
    "on its way out": {"metadata": {"name": "guid-abcde", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
}


@pytest.mark.parametrize("handle", ENDED.values(), ids=list(ENDED))
async def test_an_object_made_for_an_ended_handle_is_deleted(handle: Json | None) -> None:
    cluster = Cluster(
        handle,
        an_object("made", "guid-abcde"),
        an_object("found there"),
        an_object("another's", "guid-zzzzz"),
        an_object("not asked for", "guid-abcde"),
    )
    assert await taken_back(cluster, "made", "found there", "another's", "never came about")
    assert set(cluster.objects) == {"found there", "another's", "not asked for"}


async def test_a_handle_that_lives_keeps_what_was_made() -> None:
    cluster = Cluster(HANDLE, an_object("made", "guid-abcde"))
    assert not await taken_back(cluster, "made")
    assert set(cluster.objects) == {"made"}


# --- refused deletions ---


async def deleted(cluster: Cluster, *names: str) -> list[ApiError]:
    """What could not be asked to go of a handle's resources."""
    references = [{"reference": {"apiVersion": "v1", "kind": "ConfigMap", "name": name}} for name in names]
    managed = Managed(cast(KubeApi, cluster), cast(Discovery, cluster), cast(ClaimCache, cluster))
    return await managed.delete_all({**HANDLE, "spec": {"resources": references}})


async def test_a_conflict_that_means_nothing_leaves_nothing_behind() -> None:
    cluster = Cluster(HANDLE, an_object("first", "guid-abcde"), an_object("second"))
    cluster.refusals = 2
    assert await deleted(cluster, "first", "second") == []
    assert cluster.objects == {}


async def test_repeated_refusals_are_reported_and_the_others_go() -> None:
    cluster = Cluster(HANDLE, an_object("first", "guid-abcde"), an_object("second", "guid-abcde"))
    cluster.refusals = 3
    (refused,) = await deleted(cluster, "first", "second")
    assert refused.message == "second"
    assert set(cluster.objects) == {"second"}


@pytest.mark.parametrize(("owner", "left"), [("guid-abcde", set()), ("", {"it"}), ("guid-zzzzz", {"it"})])
async def test_an_object_that_has_taken_the_name_meanwhile_goes_only_if_it_is_the_handles(
    owner: str, left: set[str]
) -> None:
    another = an_object("it", owner)
    another["metadata"]["uid"] = "another"
    cluster = Cluster(HANDLE, an_object("it", "guid-abcde"))
    cluster.refusals, cluster.instead = 1, [another]
    assert await deleted(cluster, "it") == []
    assert set(cluster.objects) == left


# --- kinds that are not served any more ---


@pytest.mark.parametrize("known_before", [True, False])
async def test_an_object_served_in_another_version_is_deleted_in_that(known_before: bool) -> None:
    cluster = Cluster(HANDLE, an_object("it"))
    cluster.elsewhere = True
    cluster.moved, cluster.unserved = known_before, set() if known_before else {"v1"}
    assert await deleted(cluster, "it", "gone before") == []
    assert cluster.objects == {}


async def test_an_object_that_no_version_serves_is_gone() -> None:
    cluster = Cluster(HANDLE, an_object("it"))
    cluster.unserved = {"v1"}
    assert await deleted(cluster, "it") == []
    assert set(cluster.objects) == {"it"}


async def test_an_object_that_may_still_exist_keeps_its_handle() -> None:
    cluster = Cluster(HANDLE, an_object("it"))
    cluster.unserved, cluster.elsewhere = {"v1"}, Unavailable("read the group: 503")
    (refused,) = await deleted(cluster, "it")
    assert refused.message == "read the group: 503"


@pytest.mark.parametrize(("code", "refusals"), [("MethodNotAllowed", 0), ("BadRequest", 1)])
async def test_a_kind_that_can_only_be_created_keeps_no_handle(code: str, refusals: int) -> None:
    cluster = Cluster(HANDLE)
    cluster.unreadable = Invalid("the server does not allow this method on the requested resource", code=code)
    assert len(await deleted(cluster, "it")) == refusals
