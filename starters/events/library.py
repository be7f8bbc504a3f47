"""The two functions of the AWS provider's architecture decision record 0005, as the consumer itself uses them.

The record has a controller take an event from the queue (`GetEventFromSQS`) and delete its message once it was acted
upon (`IsEventProcessed`). Here an event is processed once the workflow of its instance has recorded it, and the label
that follows is written or proven needless. Asking that tells the workflow of the event, unless it knows of it: so
asking often, or by several, has no effect beyond the first. The consumer, which also has to know why not and until
when, takes `acknowledgement_of` in place of the plain answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from domain.instances.acknowledgement import Acknowledgement, Handled, Outcome, Verdict, acknowledge
from domain.instances.parser import Events, Ignored, Parsed, parse
from domain.instances.transport import Message
from domain.model import Model
from starters.events import metrics
from starters.events.queues import MOST_IN_BATCH, Queue
from starters.events.teller import Teller


class EventBridgeEvent(Model):
    """A message as it was received, and what it tells: canonical events, or the reason why none."""

    message: Message
    parsed: Parsed


async def get_event_from_sqs(queue: Queue) -> EventBridgeEvent | None:
    """The queue's next message; None if none came for as long as a receive waits.

    Raises:
        ApiError: SQS refused, or gave no answer.
    """
    found = await get_events_from_sqs(queue, 1)
    return found[0] if found else None


async def get_events_from_sqs(queue: Queue, most: int = MOST_IN_BATCH) -> list[EventBridgeEvent]:
    """The same for up to `most` messages, which cost one call together."""
    return [EventBridgeEvent.model_construct(message=each, parsed=parse(each)) for each in await queue.receive(most)]


async def is_event_processed(teller: Teller, received: EventBridgeEvent) -> bool:
    """Whether the message may be deleted: nothing is left to do for which it would have to be seen again."""
    return (await acknowledgement_of(teller, received)).verdict is Verdict.DELETE


async def acknowledgement_of(teller: Teller, received: EventBridgeEvent) -> Acknowledgement:
    """What is to be done with the message, once what comes of each of its events is known."""
    message, parsed = received.message, received.parsed
    handled: Sequence[Handled] = ()
    if isinstance(parsed, Events):
        outcomes = [teller.outcome(event, message.receives) for event in parsed.events]
        handled = [await outcomes[0]] if len(outcomes) == 1 else await asyncio.gather(*outcomes)
    now = datetime.now(UTC)
    for each in handled:
        if each.outcome is Outcome.APPLIED:
            metrics.LAG.observe(max(0.0, (now - each.event.time).total_seconds()))
    return acknowledge(parsed, handled, message.receives, now)


def in_words(parsed: Parsed) -> str:
    """What a message tells, for people: kinds and names, nothing else of its body."""
    if isinstance(parsed, Events):
        names = [f"{each.kind.value} {each.instance_id or each.host or each.group}" for each in parsed.events]
        rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + rest
    return f"{'ignored' if isinstance(parsed, Ignored) else 'unreadable'}: {parsed.reason}"
