"""What an informer cache stores of thousands of similar objects: each text once."""

from __future__ import annotations

import json
from typing import Any, cast

from domain.identity import Kind
from engine.kube.api import KubeApi
from engine.kube.informer_cache import Mirror, entry_of
from engine.kube.reflector import Followed

LISTS = frozenset({"images"})
KIND = Kind(name="Thing", group="things.example", version="v1", plural="things", area="")


def read(name: str, **data: Any) -> dict[str, Any]:
    """An object as it comes off a stream."""
    metadata = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1", "managedFields": [{}]}
    return cast("dict[str, Any]", json.loads(json.dumps({"metadata": metadata, "spec": {"kept": data}})))


def test_objects_that_were_read_apart_share_their_texts_and_are_otherwise_as_read() -> None:
    mirror = Mirror(cast("KubeApi", None), Followed(KIND))
    first, second = (read(name, provider="at-once", many=["of them", 1, None, True, "x" * 500]) for name in "ab")
    for each in (first, second):
        mirror.learn(each)
    retained = [cast("dict[str, Any]", mirror.get("ns", name)) for name in "ab"]
    assert retained[0]["spec"] == first["spec"]
    assert retained[0]["metadata"] == {
        name: value for name, value in first["metadata"].items() if name != "managedFields"
    }
    for one, other in zip(*(each["spec"]["kept"].items() for each in retained), strict=True):
        assert one[0] is other[0]
    assert retained[0]["spec"]["kept"]["provider"] is retained[1]["spec"]["kept"]["provider"]
    assert retained[0]["spec"]["kept"]["many"][0] is retained[1]["spec"]["kept"]["many"][0]


def test_a_mirror_leaves_out_what_no_reader_needs() -> None:
    lean, whole = (Mirror(cast("KubeApi", None), Followed(KIND, without=each)) for each in (LISTS, frozenset[str]()))
    found = {**read("a"), "status": {"images": ["x"] * 50, "phase": "Ready"}}
    for mirror in (lean, whole):
        mirror.learn(found)
        mirror.learn(read("b"))
    assert [mirror.get("ns", "a")["status"] for mirror in (lean, whole)] == [{"phase": "Ready"}, found["status"]]  # type: ignore[index]
    assert "status" not in cast("dict[str, Any]", lean.get("ns", "b"))


def test_an_object_nested_beyond_reason_is_stored_as_it_came() -> None:
    deep: dict[str, Any] = {}
    for _ in range(800):
        deep = {"deeper": deep}
    assert entry_of({"metadata": {"name": "a", "managedFields": []}, "spec": deep}).object["spec"] is deep
