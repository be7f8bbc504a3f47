"""SQS with concurrent long polls, and queues that stay fast with a backlog.

In moto one long poll blocks all calls; here an empty poll releases the lock until a message arrives or becomes visible.
Deleting a message with an outdated receipt handle succeeds without effect
(https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html), and setting other
attributes keeps a queue's policy. FIFO queues behave as in moto, except for long polls.
"""

from __future__ import annotations

import copy
import heapq
import time
from threading import Condition
from typing import Any, cast
from uuid import uuid4

import moto.sqs.models as models
import moto.sqs.urls as urls
from moto.sqs.exceptions import ReceiptHandleIsInvalid
from moto.sqs.models import Message, Queue, SQSBackend, sqs_backends

from localcloud.aws import runtime

# Fallback interval, if a poll misses its notification.
_LONGEST_SLEEP_SECONDS = 1.0
_NEVER = float("inf")

# Notified while `runtime.MOTO` is held; waiting releases that lock.
_arrived = Condition(runtime.MOTO)


def install() -> None:
    sqs_backends.backend = PerdureSQS
    setattr(models, "Queue", PerdureQueue)  # noqa: B010 - mypy takes classes for constants


class PerdureQueue(Queue):
    """A queue; standard messages are indexed by id and by when they become visible."""

    message_retention_period: int
    late: frozenset[str] = frozenset()  # ids of messages sent with a delay

    def __init__(self, name: str, region: str, account_id: str, **kwargs: Any) -> None:
        self.held: dict[str, Message] = {}  # by id, in order of arrival
        self.ready: dict[str, None] = {}  # ids of visible messages, in the order in which they became visible
        # A heap of when hidden messages become visible, in milliseconds; outdated entries are skipped.
        self.hidden: list[tuple[float, str]] = []
        super().__init__(name, region=region, account_id=account_id, **kwargs)

    def _set_attributes(self, attributes: dict[str, Any], now: float | None = None) -> None:
        policy = None if "Policy" in attributes else self._policy_json
        super()._set_attributes(attributes, now)
        if policy is not None:
            self._policy_json = policy

    def add_message(self, message: Message) -> None:
        if self.fifo_queue:
            super().add_message(message)
        else:
            self.held[message.id] = message
            self.late |= {message.id} if message.delayed else frozenset()
            self._file(message)
        _arrived.notify_all()

    def take(self, count: int, visibility_seconds: int) -> list[Message]:
        self._surface()
        taken: list[Message] = []
        while self.ready and len(taken) < count:
            message = self.held[next(iter(self.ready))]
            if self._expired(message) or self._buried(message):
                continue
            del self.ready[message.id]
            now = _now_ms()
            message.approximate_first_receive_timestamp = message.approximate_first_receive_timestamp or int(now)
            message.approximate_receive_count += 1
            message.receipt_handle = f"{message.id}.{uuid4().hex}"
            message.visible_at = now + visibility_seconds * 1000
            taken.append(message)
        for message in taken:
            self._file(message)
        return taken

    def next_visible_in(self) -> float:
        return max(0.0, (self.hidden[0][0] - _now_ms()) / 1000) if self.hidden else _NEVER

    def delete_message(self, receipt_handle: str) -> None:
        if self.fifo_queue:
            super().delete_message(receipt_handle)
            return
        message = self.held.get(_named(receipt_handle))
        if message is not None and message.receipt_handle == receipt_handle:
            self._drop(message)

    def change_visibility(self, receipt_handle: str, seconds: int) -> None:
        message = self.held.get(_named(receipt_handle))
        if message is None or message.receipt_handle != receipt_handle:
            raise ReceiptHandleIsInvalid
        message.visible_at = _now_ms() + seconds * 1000
        self._file(message)
        if seconds == 0:
            _arrived.notify_all()

    def purge(self) -> None:
        self.held, self.ready, self.hidden, self.late = {}, {}, [], frozenset()

    @property
    def messages(self) -> list[Message]:
        if self.fifo_queue:
            return super().messages
        self._surface()
        return [self.held[message_id] for message_id in self.ready]

    @property
    def approximate_number_of_messages(self) -> int:
        if self.fifo_queue:
            return len(self.messages)
        self._surface()
        return len(self.ready)

    @property
    def approximate_number_of_messages_delayed(self) -> int:
        if self.fifo_queue:
            return int(super().approximate_number_of_messages_delayed)
        self.late = frozenset(each for each in self.late if each in self.held and self.held[each].delayed)
        return len(self.late)

    @property
    def approximate_number_of_messages_not_visible(self) -> int:
        if self.fifo_queue:
            return int(super().approximate_number_of_messages_not_visible)
        return len(self.held) - self.approximate_number_of_messages - self.approximate_number_of_messages_delayed

    def _file(self, message: Message) -> None:
        at = max(message.visible_at, message.delayed_until)
        if at > _now_ms():
            self.ready.pop(message.id, None)
            heapq.heappush(self.hidden, (at, message.id))
        else:
            self.ready[message.id] = None

    def _surface(self) -> None:
        now = _now_ms()
        while self.hidden and self.hidden[0][0] <= now:
            at, message_id = heapq.heappop(self.hidden)
            message = self.held.get(message_id)
            if message is not None and max(message.visible_at, message.delayed_until) == at:
                self.ready[message_id] = None

    def _drop(self, message: Message) -> None:
        self.held.pop(message.id, None)
        self.ready.pop(message.id, None)

    def _expired(self, message: Message) -> bool:
        sent, kept_s = cast(int, message.sent_timestamp), self.message_retention_period
        if sent / 1000 + kept_s > time.time():
            return False
        self._drop(message)
        return True

    def _buried(self, message: Message) -> bool:
        if self.dead_letter_queue is None or not self.redrive_policy:
            return False
        if message.approximate_receive_count < self.redrive_policy["maxReceiveCount"]:
            return False
        self._drop(message)
        message.visible_at = 0.0
        self.dead_letter_queue.add_message(message)
        return True


class PerdureSQS(SQSBackend):
    @property
    def _url_module(self) -> Any:
        return urls

    def receive_message(
        self,
        queue_name: str,
        count: int,
        wait_seconds_timeout: int,
        visibility_timeout: int,
        message_attribute_names: list[str] | None = None,
    ) -> list[Message]:
        give_up_at = time.monotonic() + wait_seconds_timeout
        names = message_attribute_names or []
        while True:
            queue = cast(PerdureQueue, self.get_queue(queue_name))
            found = self._received(queue, count, visibility_timeout, names)
            left = give_up_at - time.monotonic()
            if found or left <= 0:
                return found
            _arrived.wait(min(left, queue.next_visible_in(), _LONGEST_SLEEP_SECONDS))

    def change_message_visibility(self, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
        queue = cast(PerdureQueue, self.get_queue(queue_name))
        if queue.fifo_queue:
            super().change_message_visibility(queue_name, receipt_handle, visibility_timeout)
        else:
            queue.change_visibility(receipt_handle, int(visibility_timeout))

    def purge_queue(self, queue_name: str) -> None:
        super().purge_queue(queue_name)
        cast(PerdureQueue, self.get_queue(queue_name)).purge()

    def _received(self, queue: PerdureQueue, count: int, visibility: int, names: list[str]) -> list[Message]:
        if queue.fifo_queue:
            return super().receive_message(queue.name, count, 0, visibility, names)
        copies = [copy.copy(message) for message in queue.take(count, visibility)]
        for message in copies:
            models._filter_message_attributes(message, names)
        return copies


def _named(receipt_handle: str) -> str:
    message_id, dot, _ = receipt_handle.partition(".")
    if not dot:
        raise ReceiptHandleIsInvalid
    return message_id


def _now_ms() -> float:
    return time.time() * 1000
