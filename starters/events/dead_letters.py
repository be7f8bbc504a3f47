"""What could not be read, or was received too often: listing it, and sending it to its queue again.

SQS has a task for moving dead letters, which moves all or none and tells of none. Here each is received, which puts it
out of others' sight for a moment, and given back; to re-drive one is to send it to the queue and to delete it then, so
that one interrupted in between is there twice, and applied once.

A region's dead letters are its own queue's, and those of the AWS provider's queues, which have none: an attribute says
whose each is, and nobody but the settings which queues there are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime, timedelta

from domain.instances.parser import parse
from domain.instances.places import Place
from domain.instances.transport import Message
from domain.model import Model
from starters.events.library import in_words
from starters.events.queues import MOST_IN_BATCH, SqsQueue, TextAttributes

# For how long a listing keeps what it has seen out of sight, so that it sees each once.
LOOKING = timedelta(seconds=60)
# An empty answer of a short poll may miss some servers' messages; three in a row seldom do.
_EMPTY_ANSWERS = 3
_SHOWN_REASON = "received too often, or not delivered"

# The queue that a dead letter is to be sent to again; None if it is not asked for.
Home = Callable[[Message], SqsQueue | None]


class DeadLetter(Model):
    """One dead letter.

    Attributes:
        queue: whose it is.
        message_id: its own.
        reason: why it is one.
        of: the id that its message had in the queue, empty if SQS or EventBridge put it here.
        sent_at: when it became one.
        told: what it would tell if it were read now.
        body: as it was sent.
        attributes: its message attributes.
    """

    queue: str
    message_id: str
    reason: str
    of: str = ""
    sent_at: datetime
    told: str
    body: str
    attributes: dict[str, str] = {}


def source_of(message: Message, dead: str, whose: Place, places: Sequence[Place]) -> Place | None:
    """Whose a dead letter is: the queue's that it names, else the one's which these are the dead letters of.

    Args:
        message: the dead letter.
        dead: the name of the queue that holds it.
        whose: for whom that queue was looked at; one that names nobody is theirs, where the queue is of no place.
        places: every place that the settings name; no other is believed in.
    """
    near = [each for each in places if each.where == whose.where]
    said = message.attributes.get("PERDURE_QUEUE", "")
    named = next((each for each in near if str(each) == said), None)
    owner = next((each for each in near if each.dead_letters == dead), None)
    return named or owner or (None if said else whose)


async def dead_letters(dead: SqsQueue, *, most: int, home: Home | None = None) -> list[DeadLetter]:
    """The dead letters in a queue, at most so many, or those of them that have a home; all are given back."""
    found = [message async for message in _received(dead, most)]
    await _given_back(dead, found)
    asked = [message for message in found if home is None or home(message)]
    return [_letter(dead, message) for message in sorted(asked, key=lambda each: each.taken_at)]


async def redrive(dead: SqsQueue, home: Home, chosen: Collection[str], *, most: int) -> list[DeadLetter]:
    """Send dead letters to their queues again: those of these ids, or all that have a home if none is named.

    Returns:
        Those that were sent.
    """
    found = [message async for message in _received(dead, most)]
    sent = []
    try:
        for message in list(found):
            queue = home(message) if not chosen or message.message_id in chosen else None
            if queue is None:
                continue
            await queue.send(message.body, _attributes(message))
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


def _attributes(message: Message) -> TextAttributes:
    """What the message had before it was one: of the reason only a trace in logs is left."""
    own = {name: text for name, text in message.attributes.items() if text and not name.startswith("PERDURE_")}
    return {name: {"DataType": "String", "StringValue": text} for name, text in own.items()}


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
