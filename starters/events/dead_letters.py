"""Sends, lists and re-drives dead letters: messages that could not be parsed, or were received too often.

A message is deleted only once it was sent as a dead letter. SQS's own redrive moves all messages or none, and lists
none. An interrupted redrive leaves a duplicate message, whose events are applied once. Dead letters are re-driven only
to queues in the settings.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from domain.instances.event_parser import parse
from domain.instances.event_topology import DEAD
from domain.instances.message_unwrapping import Message
from domain.instances.served_queues import Place
from domain.model import Model
from engine.errors import ApiError
from starters.events import metrics
from starters.events.library import in_words
from starters.events.sqs_queues import MOST_IN_BATCH, Queue, SqsQueue, TextAttributes

# The visibility timeout of a listing, so that it reads each message once.
LOOKING = timedelta(seconds=60)
# This many empty short polls in a row end a listing, since a single poll may miss the messages of some servers.
_EMPTY_ANSWERS = 3
_SHOWN_REASON = "received too often, or not delivered"
# SQS allows ten message attributes; three are ours.
_MOST_KEPT_ATTRIBUTES = 7

# Returns the queue to which a dead letter is sent back; None if the letter is not selected.
Home = Callable[[Message], SqsQueue | None]

logger = logging.getLogger(__name__)


class DeadLetter(Model):
    queue: str  # the dead-letter queue that holds it
    message_id: str
    reason: str
    of: str = ""  # its message id in the queue that it comes from; empty if SQS or EventBridge made it a dead letter
    sent_at: datetime
    told: str  # its events in words, or why it has none
    body: str
    attributes: dict[str, str] = {}


async def bury(queue: Queue, message: Message, reason: str) -> bool:
    """Send the message as a dead letter of its queue. Returns False, and counts the failure, if sending fails."""
    own = dict(sorted(_own_attributes(message).items())[:_MOST_KEPT_ATTRIBUTES])
    try:
        await queue.bury(message.body, own | dead_letter_attributes(reason, message.message_id, queue.name))
    except ApiError as error:
        metrics.FAILED_CALLS.labels(queue.name, "send").inc()
        logger.warning("message %s could not be moved to the dead-letter queue: %s", message.message_id, error)
        return False
    metrics.DEAD.labels(queue.name, reason).inc()
    logger.warning("message %s of %s is a dead letter: %s", message.message_id, queue.name, reason)
    return True


def dead_letter_attributes(reason: str, message_id: str, queue: str) -> TextAttributes:
    texts = {"PERDURE_REASON": reason[:256], "PERDURE_MESSAGE_ID": message_id[:128], "PERDURE_QUEUE": queue}
    return _as_attributes(texts)


def source_of(message: Message, dead: str, whose: Place, places: Sequence[Place]) -> Place | None:
    """The queue that a dead letter comes from: the queue that the letter names, else the queue that has the dead-letter
    queue `dead`. Only queues in the account and region of the queue `whose` are considered.

    If neither is found: the queue `whose` if the letter names no queue, else None.
    """
    near = [each for each in places if each.where == whose.where]
    queue = message.attributes.get("PERDURE_QUEUE", "")
    named = next((each for each in near if str(each) == queue), None)
    owner = next((each for each in near if f"{each.queue}{DEAD}" == dead), None)
    return named or owner or (None if queue else whose)


async def dead_letters(dead: SqsQueue, *, most: int, home: Home | None = None) -> list[DeadLetter]:
    """Up to `most` dead letters; if `home` is given, only letters for which it returns a queue. All letters become
    visible again.
    """
    found = [message async for message in _received(dead, most)]
    await _given_back(dead, found)
    messages = [message for message in found if home is None or home(message)]
    return [_letter(dead, message) for message in sorted(messages, key=lambda each: each.taken_at)]


async def redrive(dead: SqsQueue, home: Home, chosen: Collection[str], *, most: int) -> list[DeadLetter]:
    """Send dead letters to the queues that `home` returns: the letters with the `chosen` ids, or all if `chosen` is
    empty. Returns the letters that were sent.
    """
    found = [message async for message in _received(dead, most)]
    sent = []
    try:
        for message in list(found):
            queue = home(message) if not chosen or message.message_id in chosen else None
            if queue is None:
                continue
            await queue.send(message.body, _own_attributes(message))
            await dead.delete([message.receipt_handle])
            found.remove(message)
            sent.append(message)
    finally:
        await _given_back(dead, found)
    return [_letter(dead, message) for message in sent]


async def _received(dead: SqsQueue, most: int) -> AsyncIterator[Message]:
    seen: set[str] = set()
    empty = 0
    while empty < _EMPTY_ANSWERS and len(seen) < most:
        received = [each for each in await dead.receive(MOST_IN_BATCH) if each.message_id not in seen]
        empty = 0 if received else empty + 1
        for message in received:
            seen.add(message.message_id)
            yield message


async def _given_back(dead: SqsQueue, messages: list[Message]) -> None:
    for first in range(0, len(messages), MOST_IN_BATCH):
        batch = messages[first : first + MOST_IN_BATCH]
        await dead.hide([(each.receipt_handle, timedelta(0)) for each in batch])


def _own_attributes(message: Message) -> TextAttributes:
    """The message's own attributes. A dead letter of EventBridge has its reason in them."""
    return _as_attributes({name: text for name, text in message.attributes.items() if not name.startswith("PERDURE_")})


def _as_attributes(texts: Mapping[str, str]) -> TextAttributes:
    return {name: {"DataType": "String", "StringValue": text} for name, text in texts.items() if text}


def _letter(dead: SqsQueue, message: Message) -> DeadLetter:
    attributes = message.attributes
    reason = attributes.get("PERDURE_REASON") or attributes.get("ERROR_MESSAGE") or attributes.get("ERROR_CODE")
    return DeadLetter(
        queue=dead.name,
        message_id=message.message_id,
        reason=reason or _SHOWN_REASON,
        of=attributes.get("PERDURE_MESSAGE_ID", ""),
        sent_at=message.taken_at,
        told=in_words(parse(message)),
        body=message.body,
        attributes=attributes,
    )
