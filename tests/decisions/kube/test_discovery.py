"""In which version a group serves a kind, where the version of an object is not served any more."""

from __future__ import annotations

from typing import Any, cast

import pytest

from domain.identity import Kind
from engine.errors import Absent, Unavailable
from engine.kube import KubeApi
from engine.kube.api import path_of
from engine.kube.discovery import Discovery
from engine.kube.errors import NO_SUCH_KIND

GADGETS = {"resources": [{"name": "gadgets", "kind": "Gadget", "namespaced": True}]}
OTHERS: dict[str, Any] = {"resources": []}


class Server:
    """An API server that answers these paths, and none other."""

    def __init__(self, **answers: Any) -> None:
        self.answers = {path.replace("__", "/"): answer for path, answer in answers.items()}
        self.down = ""

    async def get(self, kind: Kind, namespace: str, name: str) -> Any:
        path = path_of(kind, namespace, name)[1:]
        if path == self.down:
            raise Unavailable(path)
        if path not in self.answers:
            raise Absent(path)
        return self.answers[path]


def group(*versions: str, preferred: str = "") -> dict[str, Any]:
    listed = [{"groupVersion": f"things/{each}", "version": each} for each in versions]
    return {"versions": listed, "preferredVersion": {"groupVersion": f"things/{preferred}"}}


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"apis__things": group("v1", "v2"), "apis__things__v1": OTHERS, "apis__things__v2": GADGETS}, "v2"),
        ({"apis__things": group("v2", "v3", preferred="v3"), "apis__things__v3": GADGETS}, "v3"),
        ({"apis__things": group("v2", "v3"), "apis__things__v3": GADGETS}, "v3"),
        ({"apis__things": group("v2"), "apis__things__v2": OTHERS}, None),
        ({}, None),
    ],
    ids=["another", "the preferred", "a listed version that is not there", "others only", "no group"],
)
async def test_a_kind_is_found_in_whichever_version_its_group_serves_it(answers: Any, found: str | None) -> None:
    served = await Discovery(cast(KubeApi, Server(**answers))).in_any_version("things/v1", "Gadget")
    assert (served and served.kind.version) == found


async def test_a_kind_of_the_core_is_found_in_its_version() -> None:
    server = Server(api={"versions": ["v1"]}, api__v1=GADGETS)
    served = await Discovery(cast(KubeApi, server)).in_any_version("v0", "Gadget")
    assert served is not None
    assert served.kind.api_version == "v1"


@pytest.mark.parametrize("down", ["apis/things", "apis/things/v2"])
async def test_no_answer_does_not_say_that_a_kind_is_gone(down: str) -> None:
    server = Server(apis__things=group("v2"), apis__things__v2=OTHERS)
    server.down = down
    with pytest.raises(Unavailable):
        await Discovery(cast(KubeApi, server)).in_any_version("things/v1", "Gadget")


@pytest.mark.parametrize("api_version", ["", "/", "things/", "/v1", "things//v1", "things/v1/more", "../v1"])
async def test_an_api_version_that_cannot_be_is_not_asked_for(api_version: str) -> None:
    discovery = Discovery(cast(KubeApi, None))
    with pytest.raises(Absent) as absent:
        await discovery.served(api_version, "Gadget")
    assert absent.value.code == NO_SUCH_KIND
    assert await discovery.in_any_version(api_version, "Gadget") is None


async def test_a_kind_that_was_forgotten_is_looked_up_at_once() -> None:
    """Until then it would count as missing, and another handle's object of this kind as gone."""
    discovery = Discovery(cast(KubeApi, Server(apis__things__v2=GADGETS)))
    for _ in range(3):
        assert (await discovery.served("things/v2", "Gadget")).kind.plural == "gadgets"
        discovery.forget("things/v2", "Gadget")


async def test_a_missing_kind_is_not_looked_up_for_each_caller() -> None:
    server = Server(apis__things__v2=OTHERS)
    discovery = Discovery(cast(KubeApi, server))
    with pytest.raises(Absent):
        await discovery.served("things/v2", "Gadget")
    server.down = "apis/things/v2"
    for _ in range(3):
        discovery.forget("things/v2", "Gadget")
        with pytest.raises(Absent):
            await discovery.served("things/v2", "Gadget")
