"""How handles see what they manage: without the bookkeeping of writes; what may not be read is not taken for absent."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, cast

import pytest
from claim_domain import NAMES
from claim_scenes import entry, handle

from activities.claims.cache import ClaimCache
from activities.claims.managed_resources import Managed, States
from domain.claims.evaluator_interface import Operations
from engine.errors import Absent, Conflict, Denied, Unavailable
from engine.kube import KubeApi
from engine.kube.discovery import Discovery
from engine.kube.errors import NO_SUCH_KIND

Json = dict[str, Any]
REFERENCE = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "things"}
BARE: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "a", "namespace": "things", "resourceVersion": "1", "annotations": {"kept/index": "0"}},
    "status": {"phase": "up"},
}
LIVE: Json = {
    **BARE,
    "metadata": {**BARE["metadata"], "managedFields": [{"manager": "kubectl", "time": "now"}]},
    "status": {**BARE["status"], "diffBase": "{}"},
}
CHANGE = Operations(index=0, patch=({"op": "add", "path": "/data", "value": {}},))


class Cluster:
    """Has one object; the answers to reads of others are errors of that name."""

    names = NAMES

    def __init__(self, live: Json = LIVE) -> None:
        self.live = live

    async def served(self, *_: object) -> object:
        return SimpleNamespace(kind=None)

    async def get(self, kind: object, namespace: str, name: str) -> Json:
        errors = {"absent": Absent("gone"), "denied": Denied("forbidden"), "away": Unavailable("no answer")}
        if name in errors:
            raise errors[name]
        return self.live

    async def create(self, kind: object, obj: Json, *_: object, **__: object) -> Json:
        if obj["metadata"]["name"] == "taken":
            raise Conflict("it exists", code="AlreadyExists")
        return self.live

    async def json_patch(self, *_: object, **__: object) -> Json:
        return self.live


def managed(live: Json = LIVE) -> Managed:
    cluster = Cluster(live)
    return Managed(cast(KubeApi, cluster), cast(Discovery, cluster), cast(ClaimCache, cluster))


def holding(*names: str) -> Any:
    return handle(*(entry("base", reference={**REFERENCE, "name": name} if name else {}) for name in names))


async def test_a_live_object_is_seen_without_what_only_machines_read() -> None:
    before = copy.deepcopy(LIVE)
    assert await managed().states(holding("a")) == States((BARE,))
    for name in ("new", "taken"):
        assert await managed().create(holding(), {**BARE, "metadata": {"name": name}}) == BARE
    assert await managed().update(cast(Any, LIVE), CHANGE) == BARE
    assert before == LIVE


async def test_an_object_that_goes_while_its_name_is_taken_is_created_at_once() -> None:
    """A conflict makes the pass observe again; a fault would last until the next periodic pass."""

    class Going(Cluster):
        async def get(self, *_: object) -> Json:
            raise Absent("gone")

    cluster = cast(Any, Going())
    with pytest.raises(Conflict):
        await Managed(cluster, cluster, cluster).create(holding(), {**BARE, "metadata": {"name": "taken"}})


@pytest.mark.parametrize("live", [{}, {"metadata": None, "status": "text"}, {"status": {}}])
async def test_a_live_object_of_any_shape_is_seen(live: Json) -> None:
    assert await managed(live).states(holding("a")) == States((live,))


async def test_a_forbidden_read_differs_from_a_missing_object() -> None:
    assert await managed().states(holding("denied", "a", "absent", "", "denied")) == States(
        (None, BARE, None, None, None), (0, 4)
    )
    with pytest.raises(Unavailable):
        await managed().states(holding("a", "away"))


async def test_an_expired_handle_can_end_although_a_resource_cannot_be_read() -> None:
    states = await managed().states(holding("a", "away", "absent"), expired=True)
    assert states == States((BARE, None, None), (1,))


class Versions:
    """Serves a kind in some versions of its group."""

    names = NAMES

    def __init__(self) -> None:
        self.versions = ["v1beta1", "v1"]

    async def get(self, kind: Any, namespace: str, name: str) -> Json:
        if kind.name == "APIGroup":
            return {"versions": [{"groupVersion": f"lab.dev/{each}"} for each in self.versions]}
        if kind.version not in self.versions:
            raise Absent("404 page not found", code=NO_SUCH_KIND)
        if kind.name == "APIResourceList":
            return {"resources": [{"name": "gadgets", "kind": "Gadget", "namespaced": True}]}
        return LIVE


async def test_a_version_that_is_not_served_any_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.kube.discovery.LOOK_AGAIN", 0.0)
    cluster = cast(Any, Versions())
    kept = Managed(cluster, Discovery(cluster), cluster)
    held = handle(entry("base", reference={"apiVersion": "lab.dev/v1beta1", "kind": "Gadget", "name": "a"}))
    assert await kept.states(held) == States((BARE,))
    cluster.versions = ["v1"]
    states = await kept.states(held)
    assert await kept.unknown_kinds(held, states.objects) == ((), (0,))
    cluster.versions = []
    assert await kept.unknown_kinds(held, states.objects) == ((0,), ())
