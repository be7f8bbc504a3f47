"""What a process has written itself is known at once, but nothing that has gone comes back by a late answer."""

from __future__ import annotations

from typing import cast

from domain.claims import RESOURCE_CLAIM
from engine.kube import JsonObject, KubeApi
from engine.kube.store import Followed, Mirror, _entry


def an_object(uid: str = "1", version: str = "7") -> JsonObject:
    return {"metadata": {"namespace": "users", "name": "mine", "uid": uid, "resourceVersion": version}}


def mirror_that_saw_go(obj: JsonObject) -> Mirror:
    """As its reflector tells it of a deletion."""
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    mirror.learn(obj)
    mirror._entries.clear()
    mirror.changed(_entry(obj), None, seen_live=True)
    return mirror


def test_an_own_write_is_known_at_once_and_an_older_answer_changes_nothing() -> None:
    mirror = Mirror(cast(KubeApi, None), Followed(RESOURCE_CLAIM))
    mirror.learn(an_object(version="9"))
    mirror.learn(an_object(version="8"))
    assert mirror.get("users", "mine") == an_object(version="9")


def test_what_has_gone_does_not_come_back_by_an_answer_that_is_late() -> None:
    mirror = mirror_that_saw_go(an_object())
    mirror.learn(an_object(version="8"))
    assert mirror.get("users", "mine") is None


def test_another_object_of_the_name_is_learnt() -> None:
    mirror = mirror_that_saw_go(an_object())
    mirror.learn(an_object(uid="2", version="9"))
    assert mirror.get("users", "mine") == an_object(uid="2", version="9")
