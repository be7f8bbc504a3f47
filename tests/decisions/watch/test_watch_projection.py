"""What the watcher remembers of an object, and how it recognises Perdure's own writes."""

from __future__ import annotations

import json

import pytest

from engine.kube.json import JsonObject
from starters.watch.projection import View, others_finalizers, project, written_by_us


def written(*entries: tuple[str, str]) -> JsonObject:
    """An object with these (manager, time) entries in its managedFields."""
    return {"metadata": {"managedFields": [{"manager": manager, "time": time} for manager, time in entries]}}


@pytest.mark.parametrize(
    ("entries", "ours"),
    [
        ([("perdure", "2026-01-01T00:00:02Z")], True),
        ([("kubectl", "2026-01-01T00:00:01Z"), ("perdure", "2026-01-01T00:00:02Z")], True),
        ([("perdure", "2026-01-01T00:00:02Z"), ("kubectl", "2026-01-01T00:00:03Z")], False),
        ([("perdure", "2026-01-01T00:00:02Z"), ("kubectl", "2026-01-01T00:00:02Z")], False),
        ([("perdure-cli", "2026-01-01T00:00:02Z")], False),
        ([("perdure", "")], False),
        ([], False),
    ],
)
def test_a_write_is_ours_only_beyond_doubt(entries: list[tuple[str, str]], ours: bool) -> None:
    assert written_by_us(written(*entries)) is ours


def test_managed_fields_of_any_shape_are_not_ours() -> None:
    for odd in (None, "text", [1, None], {"manager": "perdure"}):
        assert not written_by_us({"metadata": {"managedFields": odd}})


def test_a_recreated_object_has_another_fingerprint() -> None:
    def read(_: JsonObject) -> View:
        return View(("same",))

    first, second = ({"metadata": {"name": "a", "uid": uid, "resourceVersion": "1"}} for uid in ("1", "2"))
    assert project("K", "", first, read).fingerprint != project("K", "", second, read).fingerprint


def test_an_object_that_cannot_be_read_counts_whole() -> None:
    def read(obj: JsonObject) -> View:
        raise TypeError("odd")

    before = project("K", "", {"metadata": {"name": "a"}, "spec": 1}, read)
    after = project("K", "", {"metadata": {"name": "a"}, "spec": 2}, read)
    assert before.fingerprint != after.fingerprint
    assert not before.settled


def test_an_object_being_deleted_is_never_settled() -> None:
    def read(_: JsonObject) -> View:
        return View((), settled=True)

    obj: JsonObject = {"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert not project("K", "", obj, read).settled


def test_the_key_carries_cluster_namespace_name_and_uid() -> None:
    obj = json.loads('{"metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": "7"}}')
    key = project("K", "blue", obj, lambda _: View(())).key
    assert key.workflow_id == "blue/K/n/a/u"


def test_only_finalizers_of_others_count() -> None:
    obj: JsonObject = {"metadata": {"finalizers": ["z", "ours", 3, "a"]}}
    assert others_finalizers(obj, "ours") == ("a", "z")
