"""The event consumer's queues on the emulator's SQS: received, deleted, retained, buried, listed, sent again."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from emulator_process import Cloud
from running_consumer import running
from waiting import eventually

from activities.aws.queue_account_roles import Places
from domain.instances.event_handover import Outcome, Taken
from domain.instances.events import InstanceEvent
from domain.instances.machine_pool_labels import GroupRecord
from domain.instances.served_queues import Place
from domain.instances.workflow_ids import GroupKey, InstanceKey
from engine.errors import Absent, Denied, Unavailable
from localcloud.aws.contract import PAYER_ACCOUNT_ID
from localcloud.aws.control import Emulator
from starters.events.consumer import Consumer
from starters.events.consumer_benchmark import aws_machine, instance_name, spot_warning
from starters.events.dead_letters import dead_letters, redrive
from starters.events.dispatcher import Dispatcher
from starters.events.machine_index import Index, machine
from starters.events.sqs_queues import SqsQueue

pytestmark = pytest.mark.integration

REGION = "us-east-1"
_SERIAL = itertools.count()


class Ground:
    """A queue with its dead letters, as the consumer and as its owner see them."""

    def __init__(self, cloud: Cloud, callers: Places, threads: ThreadPoolExecutor) -> None:
        self.place = Place(account=PAYER_ACCOUNT_ID, region=REGION, queue=f"events-{next(_SERIAL)}")
        self._caller, self._threads = callers.caller(self.place), threads
        self.queue, self.dead = self.opened(), self.opened(self.place.dead_letters, wait=timedelta(0))
        self.theirs: Any = cloud.client("sqs", REGION)
        self.applied: list[str] = []

    def opened(
        self,
        name: str = "",
        *,
        wait: timedelta = timedelta(seconds=1),
        visibility: timedelta = timedelta(seconds=60),
    ) -> SqsQueue:
        return SqsQueue(self.place, self._caller, self._threads, wait=wait, visibility=visibility, name=name)

    def make(self) -> None:
        for name in (self.place.queue, self.place.dead_letters):
            self.theirs.create_queue(QueueName=name)

    def send(self, body: str, **attributes: str) -> None:
        url = self.theirs.get_queue_url(QueueName=self.place.queue)["QueueUrl"]
        written = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        self.theirs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=written)

    def left(self) -> int:
        url = self.theirs.get_queue_url(QueueName=self.place.queue)["QueueUrl"]
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

        def counted() -> int:
            found = self.theirs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            return sum(int(number) for number in found.values())

        # A message that becomes visible between the two numbers is in neither of them, but not twice.
        return max(counted(), counted())

    @asynccontextmanager
    async def consumed(self, machines: int = 5) -> AsyncIterator[Consumer]:
        """A consumer that runs, with workflows that record the events they receive."""
        index = Index()
        for number in range(machines):
            holder = replace(machine(aws_machine(number)), region=REGION)
            index.machines[holder.name] = holder

        async def hand_over(key: InstanceKey, events: Sequence[InstanceEvent], receives: int) -> Taken:
            self.applied += [event.key for event in events]
            return Taken(outcomes={event.key: Outcome.APPLIED for event in events})

        async def wake(group: GroupKey, ended: GroupRecord) -> None:
            return None

        dispatcher = Dispatcher(index, {self.place.where}, hand_over, wake)
        async with running(Consumer(self.queue, dispatcher, patience=0.1)) as consumer:
            yield consumer


@pytest.fixture
def callers(payer: Cloud) -> Iterator[Places]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", payer.endpoint)
        for name, value in payer.credentials.items():
            patch.setenv(name.upper(), value)
        yield Places(connections=8, observing=False)


@pytest.fixture
def ground(payer: Cloud, callers: Places) -> Iterator[Ground]:
    threads = ThreadPoolExecutor(8)
    yield Ground(payer, callers, threads)
    threads.shutdown()


def warning(number: int, id_: str) -> str:
    return spot_warning(instance_name(number), id_, datetime.now(UTC)).replace("eu-central-1", REGION)


async def test_messages_are_applied_and_deleted_or_buried(ground: Ground) -> None:
    ground.make()
    for number in range(12):
        ground.send(warning(number % 5, f"e{number}"))
    ground.send("no event", RULE_ARN="arn:aws:events:us-east-1:123456789012:rule/r")
    ground.send(warning(99, "stranger").replace("123456789012", "999999999999"))
    async with ground.consumed():
        await eventually(lambda: ground.left() == 0, "the queue is empty")
    assert sorted(ground.applied) == sorted(f"e{number}/{instance_name(number % 5)}" for number in range(12))
    (dead,) = await dead_letters(ground.dead, most=10)
    assert (dead.body, dead.reason, dead.attributes["RULE_ARN"][:8]) == ("no event", "not JSON", "arn:aws:")


async def test_a_dead_letter_is_sent_again_as_it_was(ground: Ground) -> None:
    ground.make()
    attributes = {"PERDURE_REASON": {"DataType": "String", "StringValue": "a mistake"}}
    for body in (warning(0, "one"), warning(1, "two")):
        await ground.queue.bury(body, attributes)
    first, second = await dead_letters(ground.dead, most=10)
    assert [first.told, second.told] == [f"ec2.spot {instance_name(number)}" for number in range(2)]
    assert await redrive(ground.dead, lambda _: ground.queue, [second.message_id], most=10) == [second]
    assert [each.message_id for each in await dead_letters(ground.dead, most=10)] == [first.message_id]
    (again,) = await ground.queue.receive(10)
    assert (again.body, again.attributes) == (second.body, {})


async def test_a_queue_that_does_not_exist_is_consumed_once_it_does(ground: Ground) -> None:
    with pytest.raises(Absent):
        await ground.queue.receive(1)
    async with ground.consumed() as consumer:
        await eventually(lambda: consumer.trouble, "it misses its queue")
        ground.make()
        ground.send(warning(0, "e"))
        await eventually(lambda: ground.applied, "it is reported")
        assert consumer.trouble == ""


async def test_a_released_message_is_redelivered_and_each_batch_entry_is_answered(ground: Ground) -> None:
    ground.make()
    ground.send(warning(0, "e"))
    (message,) = await ground.queue.receive(10)
    assert await ground.queue.receive(10) == []
    assert await ground.queue.hide([(message.receipt_handle, timedelta(0)), ("nothing", timedelta(0))]) == ["nothing"]
    (again,) = await ground.queue.receive(10)
    assert (again.message_id, again.receives) == (message.message_id, 2)
    assert await ground.queue.delete([again.receipt_handle, "nothing"]) == ["nothing"]
    assert ground.left() == 0


@pytest.mark.parametrize("kind", ["throttle", "after"])
async def test_calls_that_fail_or_whose_answers_are_lost_lose_nothing(
    ground: Ground, emulator: Emulator, kind: str
) -> None:
    ground.make()
    ground.queue = ground.opened(visibility=timedelta(seconds=2))
    faults = [
        emulator.fault("sqs", action, kind=kind, count=1)
        for action in ("ReceiveMessage", "DeleteMessageBatch", "SendMessage", "ChangeMessageVisibilityBatch")
    ]
    url = ground.theirs.get_queue_url(QueueName=ground.place.queue)["QueueUrl"]
    bodies = [*(warning(number, f"e{number}") for number in range(5)), "no event"]
    entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
    ground.theirs.send_message_batch(QueueUrl=url, Entries=entries)
    async with ground.consumed():
        await eventually(lambda: ground.left() == 0, "the queue is empty")
    assert set(ground.applied) == {f"e{number}/{instance_name(number)}" for number in range(5)}
    assert "no event" in [each.body for each in await dead_letters(ground.dead, most=10)]
    struck = {fault.id: fault.hits for fault in emulator.faults()}
    assert [struck[fault.id] for fault in faults[:3]] == [1, 1, 1]


async def test_a_role_of_another_account_is_assumed_where_it_is_said(
    payer: Cloud, callers: Places, emulator: Emulator
) -> None:
    account = payer.new_account()
    role = f"arn:aws:iam::{account}:role/OrganizationAccountAccessRole"
    place = Place(account=account, region=REGION, role=role)
    identity = await asyncio.to_thread(callers.caller(place).ask_identity)
    assert identity.account_id == account
    elsewhere = Place(account="999999999999", region=REGION, role=role)
    with pytest.raises(Denied, match="nothing is done with this session"):
        await asyncio.to_thread(callers.caller(elsewhere).ask_identity)


async def test_without_an_answer_the_queue_is_unavailable(callers: Places, ground: Ground) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        nowhere = Places(connections=2, observing=False)
        queue = SqsQueue(
            ground.place,
            nowhere.caller(ground.place),
            ThreadPoolExecutor(1),
            wait=timedelta(0),
            visibility=timedelta(seconds=5),
        )
        with pytest.raises(Unavailable):
            await queue.receive(1)


async def test_in_observe_mode_no_message_is_taken(callers: Places, ground: Ground) -> None:
    ground.make()
    ground.send("anything")
    observing = Places(connections=2, observing=True)
    caller = observing.caller(ground.place)
    threads = ThreadPoolExecutor(1)
    queue = SqsQueue(ground.place, caller, threads, wait=timedelta(0), visibility=timedelta(seconds=5))
    with pytest.raises(Denied, match="observe"):
        await queue.receive(1)
    assert len(await ground.queue.receive(1)) == 1
