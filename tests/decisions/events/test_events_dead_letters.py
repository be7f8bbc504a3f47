"""What a person sees of dead letters and sends again, where queues have dead letters of their own and where not."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

import pytest
from typer.testing import CliRunner, Result

from activities.aws.queue_account_roles import Places
from activities.aws.session import Services
from domain.instances.served_queues import Place, place_of
from engine.errors import Absent, Invalid
from engine.settings import settings
from starters.cli.main import build
from starters.events.dead_letters import dead_letter_attributes
from starters.events.sqs_queues import SqsQueue

REGION = "123456789012/eu-central-1"
PLACES = (REGION, f"{REGION}/c1-queue", f"{REGION}/c2-queue")
OWN, FIRST, SECOND = map(place_of, PLACES)
DEAD = "perdure-instance-events-dead"


class Sqs:
    """The queues of one account and region, as boto3 has them; what is received stays in sight."""

    def __init__(self) -> None:
        self.queues: dict[str, list[dict[str, Any]]] = {}
        self._ids = itertools.count(1)

    def client(self, service: str, region: str) -> Sqs:
        return self

    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str) -> Mapping[str, object]:  # noqa: N803
        if QueueName not in self.queues:
            raise Absent(f"there is no queue {QueueName}")
        return {"QueueUrl": QueueName}

    def receive_message(self, **request: Any) -> Mapping[str, object]:
        return {"Messages": list(self.queues[request["QueueUrl"]])}

    def send_message(self, **sent: Any) -> Mapping[str, object]:
        if sent["QueueUrl"].endswith(".fifo") != ("MessageGroupId" in sent):
            raise Invalid("a FIFO queue's messages have a group, and no others")
        id_ = f"m-{next(self._ids)}"
        message = {"MessageId": id_, "ReceiptHandle": id_, "Body": sent["MessageBody"]}
        self.queues[sent["QueueUrl"]].append({**message, "MessageAttributes": sent["MessageAttributes"]})
        return {}

    def delete_message_batch(self, **request: Any) -> Mapping[str, object]:
        gone = {each["ReceiptHandle"] for each in request["Entries"]}
        remaining = [each for each in self.queues[request["QueueUrl"]] if each["ReceiptHandle"] not in gone]
        self.queues[request["QueueUrl"]] = remaining
        return {}

    def change_message_visibility_batch(self, **request: Any) -> Mapping[str, object]:
        return {}

    def bodies(self, queue: str) -> list[str]:
        return [each["Body"] for each in self.queues[queue]]

    def bury(self, place: Place, body: str, *, with_queue: bool = True) -> None:
        """As the consumer does; or as an older one, which did not record the queue of a dead letter."""
        queue = SqsQueue(
            place,
            cast(Services, self),
            ThreadPoolExecutor(1),
            wait=timedelta(0),
            visibility=timedelta(seconds=1),
        )
        attributes = dead_letter_attributes("not JSON", body, queue.name)
        remaining = {name: value for name, value in attributes.items() if with_queue or name != "PERDURE_QUEUE"}
        asyncio.run(queue.bury(body, remaining))


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Sqs:
    made = Sqs()
    monkeypatch.setattr(Places, "caller", lambda *_: made)
    return made


Events = Callable[..., Result]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Events:
    """`perdure events`, of these places."""

    def run(*arguments: str, of: tuple[str, ...] = PLACES) -> Result:
        monkeypatch.setenv("PERDURE_INSTANCES_QUEUES", ",".join(of))
        settings.cache_clear()
        return CliRunner().invoke(build(), ["events", *arguments])

    return run


@pytest.fixture(autouse=True)
def _settings_of_before() -> Any:
    yield
    settings.cache_clear()


def listed(events: Events, *arguments: str, of: tuple[str, ...] = PLACES) -> list[str]:
    answer = events("list", "-o", "json", *arguments, of=of)
    assert (answer.exit_code, answer.stderr) == (0, "")
    return [each["body"] for each in json.loads(answer.stdout)]


def test_dead_letters_of_queues_without_their_own_are_found_among_the_regions(sqs: Sqs, events: Events) -> None:
    sqs.queues = {name: [] for name in (OWN.queue, DEAD, FIRST.queue, SECOND.queue, SECOND.dead_letters)}
    for place in (OWN, FIRST, SECOND):
        sqs.bury(place, f"of {place.queue}")
    assert sqs.bodies(DEAD) == ["of perdure-instance-events", "of c1-queue"]
    assert listed(events) == ["of perdure-instance-events", "of c1-queue", "of c2-queue"]
    assert listed(events, "--queue", "c1-queue") == ["of c1-queue"]
    assert listed(events, "--queue", "c2-queue") == ["of c2-queue"]
    assert listed(events, "--queue", "perdure-instance") == ["of perdure-instance-events"]
    assert listed(events, of=(str(FIRST),)) == ["of c1-queue"]


def test_dead_letters_of_a_fifo_queue_are_sent_back_to_it(sqs: Sqs, events: Events) -> None:
    fifo = place_of(f"{REGION}/hooks.fifo")
    sqs.queues = {name: [] for name in (OWN.queue, DEAD, fifo.queue)}
    for place in (fifo, OWN):
        sqs.bury(place, f"of {place.queue}")
    assert events("redrive", "--all", of=(REGION, str(fifo))).exit_code == 0
    assert (sqs.bodies(fifo.queue), sqs.bodies(OWN.queue)) == (["of hooks.fifo"], [f"of {OWN.queue}"])


def test_each_is_sent_to_the_queue_that_it_came_from_once(sqs: Sqs, events: Events) -> None:
    sqs.queues = {name: [] for name in (OWN.queue, DEAD, FIRST.queue, SECOND.queue)}
    for place in (OWN, FIRST, SECOND):
        sqs.bury(place, f"of {place.queue}")
    assert events("redrive", "--all", "--queue", "c1-queue").exit_code == 0
    assert (sqs.bodies(FIRST.queue), len(sqs.bodies(DEAD))) == (["of c1-queue"], 2)
    assert events("redrive", "--all").exit_code == 0
    alive = {place.queue: sqs.bodies(place.queue) for place in (OWN, FIRST, SECOND)}
    assert alive == {queue: [f"of {queue}"] for queue in alive}
    assert (sqs.bodies(DEAD), sqs.queues[SECOND.queue][0]["MessageAttributes"]) == ([], {})


def test_an_event_without_a_served_queue_goes_to_its_dead_letter_queue(sqs: Sqs, events: Events) -> None:
    sqs.queues = {name: [] for name in (OWN.queue, DEAD, FIRST.queue, "stranger")}
    sqs.bury(FIRST, "unsaid", with_queue=False)
    sqs.bury(place_of(f"{REGION}/stranger"), "a stranger's")
    events("redrive", "--all", of=PLACES[:2])
    assert sqs.bodies(OWN.queue) == ["unsaid", "a stranger's"]
    sqs.bury(FIRST, "unsaid", with_queue=False)
    events("redrive", "--all", of=PLACES[1:2])
    assert (sqs.bodies(FIRST.queue), sqs.bodies("stranger")) == (["unsaid"], [])


def test_a_place_without_any_says_so_and_the_others_are_listed(sqs: Sqs, events: Events) -> None:
    sqs.queues = {name: [] for name in (FIRST.queue, FIRST.dead_letters)}
    sqs.bury(FIRST, "one")
    answer = events("list")
    assert "not JSON" in answer.stdout
    assert "c2-queue has no dead-letter queue: neither c2-queue-dead nor" in " ".join(answer.stderr.split())


def test_a_dead_letter_says_why() -> None:
    reported = dead_letter_attributes("not JSON" * 100, "m-1", "1/r/q")
    assert reported["PERDURE_QUEUE"]["StringValue"] == "1/r/q"
    assert reported["PERDURE_MESSAGE_ID"] == {"DataType": "String", "StringValue": "m-1"}
    assert len(reported["PERDURE_REASON"]["StringValue"]) == 256
    assert "PERDURE_MESSAGE_ID" not in dead_letter_attributes("x", "", "1/r/q"), "SQS refuses empty values"
