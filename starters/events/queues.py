"""A queue of SQS and its dead letters: AWS's calls, on threads, since its library blocks.

The settings name a queue; its URL is queried once (GetQueueUrl), and stays the same if the queue is deleted and
recreated, which AWS does not allow within a minute. Batches answer for each of their entries. Errors are Perdure's
(`activities/aws/errors.py`), `Absent` for a queue that does not exist, in either of its two spellings.

Facts: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/ (ten entries a batch, twenty seconds a
poll, visibility of at most twelve hours).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import ParamSpec, Protocol, TypeVar, cast

from activities.aws.session import Services
from domain.instances.places import REGION_DEAD, Place
from domain.instances.transport import Message, message_of
from engine.errors import Absent
from engine.kube.json import sequence, text

P = ParamSpec("P")
R = TypeVar("R")

MOST_IN_BATCH = 10
_SYSTEM_ATTRIBUTES = ["SentTimestamp", "ApproximateReceiveCount"]
_LONGEST_HIDING = timedelta(hours=12)

Receipt = str
TextAttributes = Mapping[str, Mapping[str, str]]


class Queue(Protocol):
    """What the consumer asks of a queue; each call raises an ApiError if it fails as a whole."""

    @property
    def name(self) -> str:
        """For logs and metrics."""

    async def receive(self, most: int) -> list[Message]:
        """Messages, as soon as there are some or none has come for the while that a receive waits."""

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Delete up to ten messages; the receipts of those that could not be."""

    async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        """Put up to ten messages out of sight for so long from now on; those that could not be."""

    async def bury(self, body: str, attributes: TextAttributes) -> None:
        """Put a message among the dead letters."""


class _Api(Protocol):
    """The operations of boto3's SQS client that are used."""

    def get_queue_url(self, *, QueueName: str, QueueOwnerAWSAccountId: str) -> Mapping[str, object]: ...  # noqa: N803

    def receive_message(self, **parameters: object) -> Mapping[str, object]: ...

    def send_message(self, **parameters: object) -> Mapping[str, object]: ...

    def delete_message_batch(self, **parameters: object) -> Mapping[str, object]: ...

    def change_message_visibility_batch(self, **parameters: object) -> Mapping[str, object]: ...


class SqsQueue:
    """One queue.

    Args:
        place: where it is.
        caller: who calls there.
        threads: where calls run; a receive holds one for as long as it waits.
        wait: how long a receive waits.
        visibility: how long received messages are out of sight.
        name: another queue of the place, as its dead letters.
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
        """Account, region and name."""
        return f"{self._place.account}/{self._place.region}/{self._queue}"

    async def receive(self, most: int) -> list[Message]:
        """Messages, none if none came."""
        return await self._run(self._receive, most)

    async def delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        """Delete messages."""
        return await self._run(self._delete, receipts)

    async def hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        """Change how long messages are out of sight."""
        return await self._run(self._hide, entries)

    async def bury(self, body: str, attributes: TextAttributes) -> None:
        """Send to the dead letters: the queue's own, or the region's, as queues of the AWS provider have none."""
        try:
            await self._run(self._send, self._place.dead_letters, body, attributes)
        except Absent:
            if self._place.dead_letters == REGION_DEAD:
                raise
            await self._run(self._send, REGION_DEAD, body, attributes)

    async def send(self, body: str, attributes: TextAttributes) -> None:
        """Send to the queue itself."""
        await self._run(self._send, self._queue, body, attributes)

    async def exists(self) -> bool:
        """Whether there is such a queue."""
        try:
            await self._run(self._url, self._queue)
        except Absent:
            return False
        return True

    async def _run(self, call: Callable[P, R], *arguments: P.args, **named: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *arguments, **named))

    # On a thread.

    def _receive(self, most: int) -> list[Message]:
        answer = self._api.receive_message(
            QueueUrl=self._url(self._queue),
            MaxNumberOfMessages=min(most, MOST_IN_BATCH),
            WaitTimeSeconds=self._wait,
            VisibilityTimeout=self._visibility,
            MessageSystemAttributeNames=_SYSTEM_ATTRIBUTES,
            MessageAttributeNames=["All"],
        )
        account, region, now = self._place.account, self._place.region, datetime.now(UTC)
        found = (each for each in sequence(answer, "Messages") if isinstance(each, Mapping))
        return [message_of(each, account, region, now) for each in found]

    def _delete(self, receipts: Sequence[Receipt]) -> list[Receipt]:
        entries = [{"Id": str(number), "ReceiptHandle": receipt} for number, receipt in enumerate(receipts)]
        answer = self._api.delete_message_batch(QueueUrl=self._url(self._queue), Entries=entries)
        return _failed(answer, receipts)

    def _hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> list[Receipt]:
        asked = [
            {"Id": str(number), "ReceiptHandle": receipt, "VisibilityTimeout": _whole(duration)}
            for number, (receipt, duration) in enumerate(entries)
        ]
        answer = self._api.change_message_visibility_batch(QueueUrl=self._url(self._queue), Entries=asked)
        return _failed(answer, [receipt for receipt, _ in entries])

    def _send(self, queue: str, body: str, attributes: TextAttributes) -> None:
        self._api.send_message(QueueUrl=self._url(queue), MessageBody=body, MessageAttributes=attributes)

    def _url(self, queue: str) -> str:
        if queue not in self._urls:
            found = self._api.get_queue_url(QueueName=queue, QueueOwnerAWSAccountId=self._place.account)
            self._urls[queue] = text(found, "QueueUrl")
        return self._urls[queue]

    @property
    def _api(self) -> _Api:
        return cast("_Api", self._caller.client("sqs", self._place.region))


def _failed(answer: Mapping[str, object], receipts: Sequence[Receipt]) -> list[Receipt]:
    """The receipts that an answer to a batch says it failed for."""
    ids = {text(each, "Id") for each in sequence(answer, "Failed")}
    return [receipt for number, receipt in enumerate(receipts) if str(number) in ids]


def _whole(duration: timedelta) -> int:
    """Whole seconds, as SQS takes them; a part of one counts as one."""
    return math.ceil(max(timedelta(0), min(duration, _LONGEST_HIDING)).total_seconds())
