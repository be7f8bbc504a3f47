"""What the watcher remembers of an object."""

from __future__ import annotations

import json

from engine.kube.json import JsonObject
from starters.watch.projection import View, others_finalizers, project


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
