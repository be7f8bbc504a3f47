"""What becomes of messages: deleted, left in the queue, or put among the dead letters; on a queue in memory."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from running_consumer import running, until

from activities.aws.session import Services
from domain.instances.event_handover import Outcome, Taken
from domain.instances.events import InstanceEvent, InstanceState
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.message_unwrapping import Message
from domain.instances.served_queues import place_of
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.errors import Absent, ApiError, Unavailable
from starters.events.consumer import Consumer
from starters.events.consumer_benchmark import (
    ACCOUNT,
    REGION,
    MemoryQueue,
    aws_machine,
    instance_name,
    maintenance,
    mixture,
    spot_warning,
    state_change,
)
from starters.events.dispatcher import Dispatcher
from starters.events.library import get_event_from_sqs
from starters.events.machine_index import Index, machine
from starters.events.main import IN_WORK, receive_wait
from starters.events.sqs_batches import Batches
from starters.events.sqs_queues import Receipt, SqsQueue
from starters.events.visibility import VisibilityExtender

MACHINES = 20
NOW = datetime.now(UTC).replace(microsecond=0)
SHORT = timedelta(milliseconds=20)


class Workflows:
    """Workflows that apply each event once."""

    def __init__(self) -> None:
        self.applied: dict[str, list[str]] = {}
        self.outcome: Outcome | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def hand_over(self, key: InstanceKey, events: Sequence[object], receives: int) -> Taken:
        await self.may_answer.wait()
        known = self.applied.setdefault(key.instance_id, [])
        outcomes = {}
        for event in events:
            name = event.key  # type: ignore[attr-defined]
            outcomes[name] = self.outcome or (Outcome.DUPLICATE if name in known else Outcome.APPLIED)
            if outcomes[name] is Outcome.APPLIED:
                known.append(name)
        return Taken(outcomes=outcomes)

    async def wake(self, group: GroupKey, ended: GroupRecord) -> None:
        return None

    def all_applied(self) -> list[str]:
        return sorted(name for names in self.applied.values() for name in names)


def index_of(machines: int, *, expectant: bool = False) -> Index:
    index = Index()
    for number in range(machines):
        holder = machine(aws_machine(number))
        index.machines[holder.name] = holder
    if expectant:
        holder = machine({"metadata": {"name": "new"}})
        index.machines[holder.name] = holder
    return index


@asynccontextmanager
async def consuming(
    queue: MemoryQueue,
    workflows: Workflows,
    *,
    index: Index | None = None,
    most: int = 200,
    visibility: timedelta = timedelta(seconds=60),
    drain: timedelta = timedelta(seconds=60),
    missing: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[Consumer]:
    dispatcher = Dispatcher(index or index_of(MACHINES), {(ACCOUNT, REGION)}, workflows.hand_over, workflows.wake)
    consumer = Consumer(
        queue, dispatcher, most=most, visibility=visibility, drain=drain, patience=0.01, missing=missing
    )
    async with running(consumer):
        yield consumer


def memory(visibility: timedelta = timedelta(seconds=60)) -> MemoryQueue:
    return MemoryQueue(visibility=visibility, wait=SHORT)


async def test_every_event_is_applied_once_and_its_message_deleted() -> None:
    queue, workflows, bodies = memory(), Workflows(), mixture(MACHINES)
    sent = [next(bodies) for _ in range(200)]
    for body in [*sent, *sent[:40]]:
        queue.put(body)
    async with consuming(queue, workflows):
        await until(lambda: queue.deleted == 240)
    assert len(workflows.all_applied()) == len(set(workflows.all_applied())) == 200
    assert (len(queue), queue.dead) == (0, [])


@pytest.mark.parametrize("body", ["", "null", "<html>", '{"source":"aws.ec2"}', "[" * 100_000, '{"a":NaN}'])
async def test_an_unreadable_message_is_a_dead_letter_with_its_reason(body: str) -> None:
    queue, workflows = memory(), Workflows()
    queue.put(body)
    queue.put(spot_warning(instance_name(1), "e", NOW))
    async with consuming(queue, workflows):
        await until(lambda: queue.deleted == 2)
    ((dead, attributes),) = queue.dead
    assert dead == body
    assert attributes["PERDURE_REASON"]["StringValue"]
    assert attributes["PERDURE_MESSAGE_ID"]["StringValue"] == "message-1"
    assert workflows.all_applied() == [f"e/{instance_name(1)}"]


async def test_a_message_that_cannot_be_buried_stays() -> None:
    class NoDeadLetters(MemoryQueue):
        async def bury(self, body: str, attributes: object) -> None:
            self.refused = True
            raise Absent("no such queue")

    queue = NoDeadLetters(wait=SHORT)
    queue.put("<html>")
    async with consuming(queue, Workflows()):
        await until(lambda: getattr(queue, "refused", False))
    assert (len(queue), queue.deleted) == (1, 0)


@pytest.mark.parametrize(
    "body", ['{"source":"aws.s3","detail-type":"x","detail":{}}', '{"Event":"autoscaling:TEST_NOTIFICATION"}']
)
async def test_a_message_for_others_is_deleted(body: str) -> None:
    queue, workflows = memory(), Workflows()
    queue.put(body)
    async with consuming(queue, workflows):
        await until(lambda: queue.deleted == 1)
    assert (queue.dead, workflows.applied) == ([], {})


async def test_a_strangers_event_is_deleted_unless_its_machine_may_appear() -> None:
    body = state_change("i-stranger", InstanceState.RUNNING, "e", NOW)
    queue = memory()
    queue.put(body)
    async with consuming(queue, Workflows()):
        await until(lambda: queue.deleted == 1)
    queue = memory()
    queue.put(body)
    async with consuming(queue, Workflows(), index=index_of(1, expectant=True)):
        await until(lambda: not queue.visible and bool(queue.receives()))
    assert len(queue) == 1


async def test_an_event_is_applied_once_its_machine_has_appeared() -> None:
    queue, workflows, index = memory(), Workflows(), index_of(0)
    queue.put(spot_warning(instance_name(0), "e", NOW))
    async with consuming(queue, workflows, index=index):
        await until(lambda: bool(queue.receives()) and not queue.visible)
        holder = machine(aws_machine(0))
        index.machines[holder.name] = holder
        queue.show_all()
        await until(lambda: queue.deleted == 1)
    assert workflows.all_applied() == [f"e/{instance_name(0)}"]


async def test_an_event_that_cannot_be_delivered_stays_queued_and_is_applied_later() -> None:
    queue, workflows = memory(), Workflows()
    workflows.outcome = Outcome.UNAVAILABLE
    for number in range(30):
        queue.put(spot_warning(instance_name(number % MACHINES), f"e{number}", NOW))
    async with consuming(queue, workflows) as consumer:
        await until(lambda: len(queue.receives()) == 30 and consumer.in_work == 0)
        assert queue.deleted == 0
        workflows.outcome = None
        queue.show_all()
        await until(lambda: queue.deleted == 30)
    assert len(workflows.all_applied()) == 30


async def test_a_queue_that_refuses_is_asked_again_until_it_answers() -> None:
    queue, workflows = memory(), Workflows()
    queue.refuse = Unavailable("SQS gives no answer")
    async with consuming(queue, workflows) as consumer:
        await until(lambda: consumer.trouble != "")
        queue.refuse = None
        queue.put(spot_warning(instance_name(0), "e", NOW))
        await until(lambda: queue.deleted == 1)
        assert consumer.trouble == ""


@pytest.mark.parametrize(
    ("error", "longest"), [(Unavailable("SQS gives no answer"), 20.0), (Absent("no such queue"), 30.0)]
)
async def test_pauses_between_failed_receives_double_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, error: ApiError, longest: float
) -> None:
    limits = list[float]()

    def uniform(least: float, most: float) -> float:
        assert least == 0
        limits.append(most)
        return 0.0

    monkeypatch.setattr("starters.events.consumer.random.uniform", uniform)
    queue = memory()
    queue.refuse = error
    dispatcher = Dispatcher(index_of(1), {(ACCOUNT, REGION)}, Workflows().hand_over, Workflows().wake)
    async with running(Consumer(queue, dispatcher, pollers=1)):
        await until(lambda: len(limits) >= 10)
        queue.refuse = None
        queue.put(spot_warning(instance_name(0), "e", NOW))
        await until(lambda: queue.deleted == 1)
        before = len(limits)
        queue.refuse = error
        await until(lambda: len(limits) > before)
    doubled = [0.4 * 2**number for number in range(10)]
    assert limits[:10] == pytest.approx([min(each, longest) for each in doubled])
    assert limits[before] == pytest.approx(0.4)


async def test_a_receive_asks_for_ten_messages_at_most_and_for_what_is_read() -> None:
    requests = list[dict[str, object]]()

    class Sqs:
        def get_queue_url(self, **_: object) -> dict[str, object]:
            return {"QueueUrl": "https://sqs.example.com/q"}

        def receive_message(self, **parameters: object) -> dict[str, object]:
            requests.append(parameters)
            return {}

    class Account:
        def client(self, service: str, region: str) -> Sqs:
            assert (service, region) == ("sqs", REGION)
            return Sqs()

    wait, visibility = timedelta(seconds=20), timedelta(seconds=90)
    place = place_of(f"{ACCOUNT}/{REGION}")
    with ThreadPoolExecutor(1) as threads:
        queue = SqsQueue(place, cast("Services", Account()), threads, wait=wait, visibility=visibility)
        for most in (3, 200):
            assert await queue.receive(most) == []
    assert [each.pop("MaxNumberOfMessages") for each in requests] == [3, 10]
    assert (
        requests[0]
        == requests[1]
        == {
            "QueueUrl": "https://sqs.example.com/q",
            "WaitTimeSeconds": 20,
            "VisibilityTimeout": 90,
            "MessageSystemAttributeNames": ["SentTimestamp", "ApproximateReceiveCount"],
            "MessageAttributeNames": ["All"],
        }
    )


async def test_a_missing_queue_is_reported_once_for_all_pollers() -> None:
    queue, reported = memory(), list[str]()
    queue.refuse = Absent("no such queue")

    async def missing() -> None:
        reported.append(queue.name)
        queue.refuse = None
        raise RuntimeError("and whatever comes of it")

    async with consuming(queue, Workflows(), missing=missing):
        queue.put(spot_warning(instance_name(0), "e", NOW))
        await until(lambda: queue.deleted == 1)
    assert reported == [queue.name]


async def test_a_deletion_that_fails_is_tried_again() -> None:
    class Forgetful(MemoryQueue):
        calls = 0

        async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
            self.calls += 1
            return list(receipts) if self.calls == 1 else await super().delete(receipts)

    queue = Forgetful(wait=SHORT)
    queue.put(spot_warning(instance_name(0), "e", NOW))
    async with consuming(queue, Workflows()):
        await until(lambda: queue.deleted == 1)
    assert queue.calls == 2


async def test_no_more_are_taken_than_may_be_in_work() -> None:
    queue, workflows, bodies = memory(), Workflows(), mixture(MACHINES)
    for _ in range(200):
        queue.put(next(bodies))
    workflows.may_answer.clear()
    async with consuming(queue, workflows, most=20):
        await until(lambda: len(queue.receives()) >= 20)
        for _ in range(50):
            await asyncio.sleep(0)
        # Each of two pollers may be on its way with ten when the limit is reached.
        assert len(queue.receives()) <= 40
        workflows.may_answer.set()
        await until(lambda: queue.deleted == 200)


async def test_an_urgent_event_is_delivered_before_most_of_five_thousand_others() -> None:
    queue, workflows, waiting = memory(), Workflows(), 5000
    for number in range(waiting):
        queue.put(state_change(instance_name(number), InstanceState.RUNNING, f"e-{number}", NOW))
    queue.put(spot_warning(instance_name(waiting), "spot", NOW))

    async def slow(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
        await asyncio.sleep(1)  # 32 at once: the 5,000 take two minutes and a half
        return await workflows.hand_over(key, events, receives)

    dispatcher = Dispatcher(index_of(waiting + 1), {(ACCOUNT, REGION)}, slow, workflows.wake)
    stop, most = asyncio.Event(), IN_WORK
    consumer = Consumer(queue, dispatcher, most=most, drain=timedelta(0))
    running = asyncio.create_task(consumer.run(stop))
    try:
        await until(lambda: instance_name(waiting) in workflows.applied, 120)
        assert len(workflows.applied) < waiting / 5
    finally:
        stop.set()
        await running
        await dispatcher.close()


@pytest.mark.parametrize(("drain", "wait"), [(1, 1), (3, 2), (15, 10), (30, 20), (600, 20)])
def test_a_receive_waits_for_less_than_the_drain_and_at_most_what_sqs_allows(drain: int, wait: int) -> None:
    assert receive_wait(timedelta(seconds=drain)) == timedelta(seconds=wait)


async def test_a_message_in_work_is_put_out_of_others_sight_again_and_again() -> None:
    visibility = timedelta(seconds=0.4)
    queue, workflows = memory(visibility), Workflows()
    queue.put(spot_warning(instance_name(0), "e", NOW))
    workflows.may_answer.clear()
    async with consuming(queue, workflows, visibility=visibility):
        await until(lambda: queue.hidden_anew >= 2)
        workflows.may_answer.set()
        await until(lambda: queue.deleted == 1)


async def test_a_message_hidden_again_is_not_due_at_once() -> None:
    clock, requests = [1000.0], list[timedelta]()
    in_work = VisibilityExtender(timedelta(seconds=0.1), clock=lambda: clock[0])
    queue = memory()
    queue.put("a")
    (message,) = await queue.receive(1)
    in_work.add(message)

    async def hide(entry: tuple[Receipt, timedelta]) -> bool:
        requests.append(entry[1])
        return len(requests) > 1  # refused at first

    clock[0] += 0.06
    beating = asyncio.create_task(in_work.keep_hidden(hide))
    await until(lambda: in_work.due() == [])
    beating.cancel()
    assert requests == [timedelta(seconds=0.1)] * 2


async def test_an_extension_in_flight_does_not_replace_the_delay_of_a_kept_message() -> None:
    clock, begun, ended, may_end = [1000.0], list[timedelta](), list[timedelta](), asyncio.Event()
    in_work = VisibilityExtender(timedelta(seconds=0.1), clock=lambda: clock[0])
    queue = memory()
    queue.put("a")
    (message,) = await queue.receive(1)
    in_work.add(message)

    async def hide(entry: tuple[Receipt, timedelta]) -> bool:
        begun.append(entry[1])
        await may_end.wait()
        ended.append(entry[1])
        return True

    clock[0] += 0.06
    beating = asyncio.create_task(in_work.keep_hidden(hide))
    await until(lambda: len(begun) == 1)
    giving = asyncio.create_task(in_work.give_back(message, timedelta(seconds=15), hide))
    clock[0] += 1
    await asyncio.sleep(0.1)
    assert (begun, in_work.due()) == ([timedelta(seconds=0.1)], [])
    may_end.set()
    await giving
    await asyncio.sleep(0.1)
    beating.cancel()
    assert ended == [timedelta(seconds=0.1), timedelta(seconds=15)]


async def test_a_kept_message_is_not_hidden_again_by_its_own_consumer() -> None:
    visibility, kept, requests = timedelta(seconds=0.2), timedelta(seconds=2), list[timedelta]()

    class Slow(MemoryQueue):
        async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
            requests.extend(duration for _, duration in entries)
            await asyncio.sleep(0.5)
            return await super().hide(entries)

    queue, workflows = Slow(visibility=timedelta(seconds=60), wait=SHORT), Workflows()
    workflows.outcome = Outcome.UNAVAILABLE
    queue.put(spot_warning(instance_name(0), "e", NOW))
    async with consuming(queue, workflows, visibility=visibility):
        await until(lambda: kept in requests)
        await asyncio.sleep(0.6)
    assert requests[requests.index(kept) :] == [kept]


async def test_a_stopping_consumer_lets_work_in_progress_end() -> None:
    queue, workflows = memory(), Workflows()
    queue.put(spot_warning(instance_name(0), "e", NOW))
    workflows.may_answer.clear()
    async with consuming(queue, workflows):
        await until(lambda: len(queue.receives()) == 1)
        asyncio.get_running_loop().call_later(0.01, workflows.may_answer.set)
    assert queue.deleted == 1


async def test_a_message_that_does_not_end_in_time_is_given_back_at_once() -> None:
    queue, workflows = memory(), Workflows()
    queue.put(spot_warning(instance_name(0), "e", NOW))
    workflows.may_answer.clear()
    async with consuming(queue, workflows, drain=timedelta(seconds=0.05)):
        await until(lambda: len(queue.receives()) == 1)
    assert [each.message_id for each in await queue.receive(10)] == ["message-1"]


async def test_a_health_event_of_three_instances_reaches_three_workflows() -> None:
    queue, workflows = memory(), Workflows()
    body = json.loads(maintenance(instance_name(0), "e", NOW))
    body["detail"]["affectedEntities"] = [{"entityValue": instance_name(n), "status": "PENDING"} for n in range(3)]
    queue.put(json.dumps(body))
    async with consuming(queue, workflows):
        await until(lambda: queue.deleted == 1)
    assert sorted(workflows.applied) == [instance_name(n) for n in range(3)]


async def test_a_finished_message_is_logged_without_the_body(caplog: pytest.LogCaptureFixture) -> None:
    queue = memory()
    queue.put(spot_warning(instance_name(0), "e", NOW))
    queue.put('{"source":"aws.ec2","secret":"shown to nobody"}')
    with caplog.at_level(logging.DEBUG, "starters.events"):
        async with consuming(queue, Workflows()):
            await until(lambda: queue.deleted == 2)
    assert f"message message-1: ec2.spot {instance_name(0)}: delete, applied" in caplog.messages
    assert "message-2" in caplog.text
    assert "nobody" not in caplog.text


async def test_an_unconfirmed_topic_is_reported_without_its_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue = memory()
    queue.put('{"Type":"SubscriptionConfirmation","SubscribeURL":"https://evil.example"}')
    with caplog.at_level(logging.WARNING, "starters.events"):
        async with consuming(queue, Workflows()):
            await until(lambda: queue.deleted == 1)
    assert caplog.messages == ["message message-1: ignored: sns-confirmation: delete, sns-confirmation"]


class _Undelivered(MemoryQueue):
    """A queue with copies of what EventBridge could not deliver elsewhere."""

    async def receive(self, most: int) -> list[Message]:
        reported = {"ERROR_CODE": "NO_PERMISSIONS", "RULE_ARN": "arn:aws:events:rule/r"}
        return [each.model_copy(update={"attributes": reported}) for each in await super().receive(most)]


async def test_why_eventbridge_could_not_deliver_it_before_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    queue = _Undelivered(wait=SHORT)
    queue.put(spot_warning(instance_name(0), "e", NOW))
    with caplog.at_level(logging.INFO, "starters.events"):
        async with consuming(queue, Workflows()):
            await until(lambda: queue.deleted == 1)
    failed = "EventBridge failed to deliver message message-1 earlier: NO_PERMISSIONS, arn:aws:events:rule/r"
    assert failed in caplog.messages


async def test_an_event_is_got_from_a_queue_by_itself() -> None:
    queue = memory()
    assert await get_event_from_sqs(queue) is None
    queue.put(spot_warning(instance_name(0), "e", NOW))
    queue.put("another")
    found = await get_event_from_sqs(queue)
    assert found is not None
    assert found.parsed.events[0].key == f"e/{instance_name(0)}"  # type: ignore[union-attr]
    assert queue.received == 1


async def test_calls_are_made_of_ten() -> None:
    calls: list[int] = []

    async def call(entries: Sequence[int]) -> list[bool]:
        calls.append(len(entries))
        return [entry % 2 == 0 for entry in entries]

    batches: Batches[int] = Batches(call, "counting")
    results = await asyncio.gather(*(batches.add(number) for number in range(25)))
    assert calls == [10, 10, 5]
    assert results == [number % 2 == 0 for number in range(25)]


async def test_a_call_that_fails_fails_for_each_of_its_entries() -> None:
    async def call(entries: Sequence[int]) -> list[bool]:
        raise Unavailable("no answer")

    assert await asyncio.gather(*(Batches(call, "counting").add(number) for number in range(3))) == [False] * 3


async def test_the_oldest_age_is_that_of_what_came_within_a_minute() -> None:
    clock = [1000.0]
    in_work = VisibilityExtender(timedelta(seconds=60), clock=lambda: clock[0])
    queue = memory()
    queue.put("a")
    (message,) = await queue.receive(1)
    assert in_work.oldest_age(NOW) == 0.0
    in_work.add(message)
    assert in_work.oldest_age(message.taken_at + timedelta(seconds=90)) == 90.0
    assert in_work.due() == []
    clock[0] += 31
    assert in_work.due() == [message]
    clock[0] += 30
    assert in_work.oldest_age(message.taken_at + timedelta(seconds=90)) == 0.0
