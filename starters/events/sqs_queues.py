"""An SQS queue and its dead letters: boto3's blocking calls on threads.

The caller may be a role in the queue's account (`queue_account_roles.py`). A recreated queue keeps its URL. SQS's
limits: ten entries a batch, twenty seconds a poll, visibility of twelve hours
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from typing import Protocol, cast
from uuid import uuid4

from activities.aws.session import Services
from domain.instances.event_topology import REGION_DEAD
from domain.instances.message_unwrapping import Message, message_of
from domain.instances.served_queues import Place
from engine.errors import Absent
from engine.kube.json import sequence, text

MOST_IN_BATCH = 10
_SYSTEM_ATTRIBUTES = ["SentTimestamp", "ApproximateReceiveCount"]
_LONGEST_HIDING = timedelta(hours=12)

Receipt = str
TextAttributes = dict[str, dict[str, str]]


class Queue(Protocol):
    """Each call raises an ApiError if it fails as a whole."""

    @property
    def name(self) -> str:
        pass

    async def receive(self, most: int) -> list[Message]:
        pass

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Delete up to ten messages. Returns the receipts of messages for which that failed."""

    async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        """Hide up to ten messages, each for its own time. Returns the receipts of messages for which that failed."""

    async def bury(self, body: str, attributes: TextAttributes) -> None:
        pass


class _Api(Protocol):
    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str) -> Mapping[str, object]: ...  # noqa: N803

    def receive_message(self, **parameters: object) -> Mapping[str, object]: ...

    def send_message(self, **parameters: object) -> Mapping[str, object]: ...

    def delete_message_batch(self, **parameters: object) -> Mapping[str, object]: ...

    def change_message_visibility_batch(self, **parameters: object) -> Mapping[str, object]: ...


class SqsQueue:
    """Each receive call occupies one of the `threads` for up to `wait`, a long poll's duration. `name` selects another
    queue of the account and region, such as a dead-letter queue.
    """

    def __init__(
        self,
        place: Place,
        caller: Services,
        threads: Executor,
        *,
        wait: timedelta,
        visibility: timedelta,
        name: str = "",
    ) -> None:
        self._place = place
        self._queue = name or place.queue
        self._caller = caller
        self._threads = threads
        self._wait = int(wait.total_seconds())
        self._visibility = _whole(visibility)
        self._urls: dict[str, str] = {}

    @property
    def name(self) -> str:
        return f"{self._place.account}/{self._place.region}/{self._queue}"

    async def receive(self, most: int) -> list[Message]:
        answer = await self._call(
            lambda api, url: api.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(most, MOST_IN_BATCH),
                WaitTimeSeconds=self._wait,
                VisibilityTimeout=self._visibility,
                MessageSystemAttributeNames=_SYSTEM_ATTRIBUTES,
                MessageAttributeNames=["All"],
            )
        )
        place, now = self._place, datetime.now(UTC)
        found = (each for each in sequence(answer, "Messages") if isinstance(each, Mapping))
        return [message_of(each, place.account, place.region, now, place.senders) for each in found]

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)]
        answer = await self._call(lambda api, url: api.delete_message_batch(QueueUrl=url, Entries=entries))
        return _failed(answer, receipts)

    async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        batch = [
            {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": _whole(duration)}
            for number, (receipt, duration) in enumerate(entries)
        ]
        answer = await self._call(lambda api, url: api.change_message_visibility_batch(QueueUrl=url, Entries=batch))
        return _failed(answer, [receipt for receipt, _ in entries])

    async def bury(self, body: str, attributes: TextAttributes) -> None:
        """Send a dead letter to the queue's own dead-letter queue or, if none exists, to the region's."""
        try:
            await self._send(self._place.dead_letters, body, attributes)
        except Absent:
            if self._place.dead_letters == REGION_DEAD:
                raise
            await self._send(REGION_DEAD, body, attributes)

    async def send(self, body: str, attributes: TextAttributes) -> None:
        await self._send(self._queue, body, attributes)

    async def exists(self) -> bool:
        try:
            await self._call(lambda api, url: {})
        except Absent:
            return False
        return True

    async def _send(self, queue: str, body: str, attributes: TextAttributes) -> None:
        id_ = str(uuid4())  # each message gets its own group, because messages of a group wait for each other
        fifo = {"MessageGroupId": id_, "MessageDeduplicationId": id_} if queue.endswith(".fifo") else {}
        await self._call(
            lambda api, url: api.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes, **fifo),
            queue,
        )

    async def _call(self, call: Callable[[_Api, str], Mapping[str, object]], queue: str = "") -> Mapping[str, object]:
        """Call SQS on a thread, with the URL of `queue`, or of `self._queue` if `queue` is empty."""

        def on_thread() -> Mapping[str, object]:
            api = cast("_Api", self._caller.client("sqs", self._place.region))
            return call(api, self._url(api, queue or self._queue))

        return await asyncio.get_running_loop().run_in_executor(self._threads, on_thread)

    def _url(self, api: _Api, queue: str) -> str:
        if queue not in self._urls:
            found = api.get_queue_url(QueueName=queue, QueueOwnerAWSAccountId=self._place.account)
            self._urls[queue] = text(found, "QueueUrl")
        return self._urls[queue]


def _failed(answer: Mapping[str, object], receipts: Sequence[Receipt]) -> list[Receipt]:
    ids = {text(each, "Id") for each in sequence(answer, "Failed")}
    return [receipt for number, receipt in enumerate(receipts) if str(number) in ids]


def _whole(duration: timedelta) -> int:
    return math.ceil(max(timedelta(0), min(duration, _LONGEST_HIDING)).total_seconds())
