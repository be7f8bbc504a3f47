"""Kubernetes Events: what all of them have in common, and names by which each is recorded once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from domain.identity import Kind
from domain.resource import EVENTS_KEPT
from engine.errors import ApiError, Conflict, Denied
from engine.kube import JsonObject, KubeApi
from engine.kube.events import EventContent, EventDeduplicator, Subject, event, named, record

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)
KIND = Kind(name="Service", group="", version="v1", plural="services", area="")
SUBJECT = Subject.of(
    KIND, {"metadata": {"namespace": "web", "name": "shop", "uid": "u-1", "resourceVersion": "7", "labels": {}}}
)
CONTENT = EventContent("Warning", "Failed", "no address is left", "yawol-cloud-controller")


def test_an_event_names_its_object_what_happened_when_and_who_says_so() -> None:
    made: dict[str, Any] = event(SUBJECT, CONTENT, NOW)
    assert made["metadata"] == {"namespace": "web", "generateName": "shop."}
    assert made["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "namespace": "web",
        "name": "shop",
        "uid": "u-1",
        "resourceVersion": "7",
    }
    assert (made["type"], made["reason"], made["message"]) == ("Warning", "Failed", "no address is left")
    assert made["source"] == {"component": "yawol-cloud-controller"}
    assert made["firstTimestamp"] == made["lastTimestamp"] == "2026-05-01T12:00:00Z"
    assert "action" not in made


def test_a_text_that_is_too_long_for_the_api_server_is_cut() -> None:
    long = SUBJECT._replace(name="n" * 253)
    made: dict[str, Any] = event(long, CONTENT._replace(message="m" * 5000), NOW)
    assert len(made["message"]) == 1024
    assert len(named(long, "x")) < 253
    assert len(made["metadata"]["generateName"]) < 253


def test_the_same_words_about_the_same_object_have_the_same_name_and_others_another() -> None:
    names = {
        named(SUBJECT, "Failed", "a"),
        named(SUBJECT, "Failed", "a"),
        named(SUBJECT, "Failed", "b"),
        named(SUBJECT._replace(uid="u-2"), "Failed", "a"),
    }
    assert len(names) == 3


class Api:
    def __init__(self, refusal: ApiError | None) -> None:
        self.refusal = refusal
        self.asked = 0

    async def create(self, kind: Kind, made: JsonObject, namespace: str) -> JsonObject:
        self.asked += 1
        if self.refusal:
            raise self.refusal
        return made


@pytest.mark.parametrize(
    ("refusal", "recorded"), [(None, True), (Conflict("AlreadyExists"), True), (Denied("no right"), False)]
)
async def test_an_event_that_cannot_be_written_blocks_no_lifecycle(refusal: ApiError | None, recorded: bool) -> None:
    assert await record(cast("KubeApi", Api(refusal)), event(SUBJECT, CONTENT, NOW)) is recorded


async def test_a_lasting_condition_is_reported_again_when_its_event_has_expired() -> None:
    api = Api(None)
    events = EventDeduplicator(cast("KubeApi", api))
    for minutes in range(0, 180, 10):
        await events.record_once(SUBJECT, CONTENT, NOW + timedelta(minutes=minutes))
    assert api.asked == 3
    assert timedelta(hours=1) < EVENTS_KEPT


async def test_a_refusal_that_comes_under_another_number_is_the_same() -> None:
    api = Api(None)
    events = EventDeduplicator(cast("KubeApi", api))
    for request in ("req-1", "req-2", "unknown"):
        message = f"nova create server a in project p: 403 OverQuota: too many [request {request}] Free some."
        await events.record_once(SUBJECT, CONTENT._replace(message=message), NOW)
    await events.record_once(SUBJECT, CONTENT, NOW)
    assert api.asked == 2
