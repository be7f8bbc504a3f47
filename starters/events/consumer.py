"""Consumes one queue: receive, parse, hand over, and acknowledge each message by its outcome.

    poller ──► room? ──► receive, up to ten ──► each message by itself ──► parse ──► hand over ──► acknowledge
       ▲         │ full: stop receiving                                                  │
       └─ wait ──┘ Temporal is down, SQS refuses: back off             delete, keep, dead letter

Messages in progress stay invisible (`visibility.py`). A message is kept after an error, and given back (visibility 0)
when the process stops. A missing queue is recreated by the workflow that maintains the queue.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from domain.instances.event_envelope import clean
from domain.instances.event_handover import Outcome
from domain.instances.message_acknowledgement import Acknowledgement, Verdict, back_off
from domain.instances.message_unwrapping import SNS_CONFIRMATION, Message
from engine.errors import Absent, ApiError
from engine.health import Progress
from starters.events import metrics
from starters.events.dead_letters import bury
from starters.events.dispatcher import Dispatcher
from starters.events.library import EventBridgeEvent, acknowledgement_of, get_events_from_sqs, in_words
from starters.events.sqs_batches import Batches
from starters.events.sqs_queues import MOST_IN_BATCH, Queue, Receipt
from starters.events.visibility import VisibilityExtender

FIRST_BACKOFF, LONGEST_BACKOFF = 0.2, 20.0
# AWS does not allow recreating a queue within a minute of its deletion.
LONGEST_WITHOUT_QUEUE = 30.0
TELL_MISSING_EVERY = 60.0
# Logged outcomes; unknown instances, duplicates and outdated events would drown the rest.
_WORTH_A_LINE = frozenset({Outcome.APPLIED, Outcome.UNAVAILABLE})
# Someone subscribed the queue to an SNS topic, which waits for a confirmation that Perdure does not send.
_WORTH_A_WARNING = frozenset({SNS_CONFIRMATION})

logger = logging.getLogger(__name__)


class Consumer:
    """Consumes the events of a queue.

    Args:
        pollers: the number of concurrent receives.
        most: the maximum number of messages in progress.
        drain: how long messages in progress may take to end once the consumer stops.
        patience: the longest backoff, in seconds.
        missing: called, at most once a minute, if the queue does not exist.
    """

    def __init__(
        self,
        queue: Queue,
        dispatcher: Dispatcher,
        *,
        pollers: int = 2,
        most: int = 200,
        visibility: timedelta = timedelta(seconds=60),
        drain: timedelta = timedelta(seconds=25),
        patience: float = LONGEST_BACKOFF,
        missing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._queue = queue
        self._dispatcher = dispatcher
        self._pollers = pollers
        self._most = most
        self._drain = drain
        self._patience = patience
        self._missing = missing
        self._reported_missing = 0.0
        self._in_work = VisibilityExtender(visibility)
        self._stopping = asyncio.Event()
        self._works: set[asyncio.Task[None]] = set()
        self._deletions: Batches[Receipt] = Batches(self._delete, "deleting")
        self._hidings: Batches[tuple[Receipt, timedelta]] = Batches(self._hide, "hiding")
        self._turns = Progress(f"receiving from {queue.name}")
        self.trouble = ""  # why the last receive failed

    @property
    def name(self) -> str:
        return self._queue.name

    @property
    def in_work(self) -> int:
        return len(self._in_work)

    def stalled(self) -> Iterable[str]:
        """Why the process must be restarted; empty if it need not be. A queue that cannot be read is no reason."""
        return self._turns.stalled()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Then messages in progress finish, or are given back."""
        metrics.IN_WORK.labels(self.name).set_function(lambda: len(self._in_work))
        metrics.OLDEST.labels(self.name).set_function(lambda: self._in_work.oldest_age(datetime.now(UTC)))
        beating = asyncio.create_task(self._in_work.keep_hidden(self._hidings.add))
        polling = [asyncio.create_task(self._poll()) for _ in range(self._pollers)]
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([stopped, beating, *polling], return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            await self._end(polling)
        finally:
            for task in (stopped, beating, *polling, *self._works):
                task.cancel()
        for task in (beating, *polling):
            if task.done() and not task.cancelled():
                task.result()  # a bug, raised to the caller

    async def _end(self, polling: Sequence[asyncio.Task[None]]) -> None:
        deadline = time.monotonic() + self._drain.total_seconds()
        await asyncio.wait(polling, timeout=self._drain.total_seconds())
        if self._works:
            await asyncio.wait(tuple(self._works), timeout=max(0.0, deadline - time.monotonic()))
        left = tuple(self._in_work)
        if left:
            logger.info("%d messages are given back to the queue %s", len(left), self.name)
            await asyncio.gather(*(self._give_back(each, timedelta(0)) for each in left))

    # Receiving.

    async def _poll(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._turns.made()
            await self._unless_stopping(self._in_work.room(self._most))
            self._turns.made()
            if self._dispatcher.troubled:
                failures += 1
                await self._pause(failures, self._patience)
            if self._stopping.is_set():
                return
            try:
                received = await get_events_from_sqs(self._queue)
            except ApiError as error:
                failures += 1
                self._refused(error, failures)
                if isinstance(error, Absent):
                    await self._tell_missing()
                await self._pause(failures, LONGEST_WITHOUT_QUEUE if isinstance(error, Absent) else self._patience)
                continue
            if not self._dispatcher.troubled:
                failures = 0
            self.trouble = ""
            self._dispatcher.received(self.name, full=len(received) == MOST_IN_BATCH)
            self._take(received)

    def _take(self, received: Sequence[EventBridgeEvent]) -> None:
        metrics.RECEIVED.labels(self.name).inc(len(received))
        metrics.REDELIVERED.labels(self.name).inc(sum(each.message.receives > 1 for each in received))
        loop = asyncio.get_running_loop()
        for each in received:
            self._in_work.add(each.message)
            if not self._stopping.is_set():
                work = loop.create_task(self._work(each))
                self._works.add(work)
                work.add_done_callback(self._works.discard)

    def _refused(self, error: ApiError, failures: int) -> None:
        self.trouble = error.message
        if isinstance(error, Absent):
            self.trouble += (
                "; a worker creates the queue if PERDURE_INSTANCES_SETUP is true and PERDURE_INSTANCES_QUEUES of "
                "both worker and watcher names the queue"
            )
        metrics.FAILED_CALLS.labels(self.name, "receive").inc()
        if failures in (1, 10) or failures % 100 == 0:
            logger.warning("%s: nothing could be received (%d times): %s", self.name, failures, self.trouble)

    async def _tell_missing(self) -> None:
        """Wake the workflow that maintains the queue. By itself, the workflow checks only once an hour."""
        if self._missing is None or (
            self._reported_missing and time.monotonic() - self._reported_missing < TELL_MISSING_EVERY
        ):
            return
        self._reported_missing = time.monotonic()
        try:
            await self._missing()
        except Exception as error:  # retried, and the queue is checked anyway
            logger.warning("%s: the workflow that creates the missing queue could not be woken: %s", self.name, error)

    async def _pause(self, failures: int, longest: float) -> None:
        seconds = random.uniform(0, min(longest, FIRST_BACKOFF * 2.0 ** min(failures, 10)))  # noqa: S311
        await self._unless_stopping(asyncio.sleep(seconds))

    async def _unless_stopping(self, awaited: Coroutine[object, object, None]) -> None:
        waiting, stopping = asyncio.ensure_future(awaited), asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((waiting, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            stopping.cancel()

    # Messages.

    async def _work(self, received: EventBridgeEvent) -> None:
        message, began = received.message, time.monotonic()
        try:
            acknowledgement = await acknowledgement_of(self._dispatcher, received)
            metrics.HANDLING.observe(time.monotonic() - began)
            self._tell(received, acknowledgement)
            await self._do(message, acknowledgement)
        except Exception:  # never crash on a message
            logger.exception("message %s could not be handled and stays in %s", message.message_id, self.name)
            await self._give_back(message, back_off(message.receives))
        self._in_work.remove(message)

    def _tell(self, received: EventBridgeEvent, acknowledgement: Acknowledgement) -> None:
        verdict, reason = acknowledgement.verdict, acknowledgement.reason
        for word in acknowledgement.counts:
            metrics.EVENTS.labels(word).inc()
        metrics.MESSAGES.labels(self.name, verdict.value).inc()
        level = logging.INFO if reason in _WORTH_A_LINE else logging.DEBUG
        level = logging.WARNING if reason in _WORTH_A_WARNING else level
        message_id = received.message.message_id
        if logger.isEnabledFor(level):
            logger.log(level, "message %s: %s: %s, %s", message_id, in_words(received.parsed), verdict.value, reason)
        if code := received.message.attributes.get("ERROR_CODE"):
            rule = clean(received.message.attributes.get("RULE_ARN"))
            logger.info("EventBridge failed to deliver message %s earlier: %s, %s", message_id, clean(code), rule)

    async def _do(self, message: Message, acknowledgement: Acknowledgement) -> None:
        verdict = acknowledgement.verdict
        if verdict is Verdict.KEEP:
            await self._give_back(message, acknowledgement.delay)
        elif verdict is Verdict.DELETE or await bury(self._queue, message, acknowledgement.reason):
            await self._deleted(message)
        else:
            await self._give_back(message, back_off(message.receives))

    async def _give_back(self, message: Message, delay: timedelta) -> None:
        await self._in_work.give_back(message, delay, self._hidings.add)

    async def _deleted(self, message: Message) -> None:
        """Delete the message, in two attempts. If both fail, the message is delivered again, as a duplicate."""
        for _ in range(2):
            if await self._deletions.add(message.receipt_handle):
                return
        logger.warning("message %s of %s could not be deleted", message.message_id, self.name)

    async def _delete(self, receipts: Sequence[Receipt]) -> Sequence[bool]:
        return self._done("delete", receipts, await self._queue.delete(receipts))

    async def _hide(self, entries: Sequence[tuple[Receipt, timedelta]]) -> Sequence[bool]:
        return self._done("hide", [receipt for receipt, _ in entries], await self._queue.hide(entries))

    def _done(self, call: str, receipts: Sequence[Receipt], failed: Sequence[Receipt]) -> Sequence[bool]:
        if failed:
            metrics.FAILED_CALLS.labels(self.name, call).inc(len(failed))
        return [receipt not in failed for receipt in receipts]
