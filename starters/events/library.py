"""The two functions of the AWS provider's architecture decision record 0005: `GetEventFromSQS`, `IsEventProcessed`.

An event counts as processed when its instance's workflow has recorded it and the label is written or unnecessary.
`is_event_processed` hands the event to the workflow, which recognises duplicates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from domain.instances.event_handover import Handled, Outcome
from domain.instances.event_parser import Events, Parsed, parse
from domain.instances.message_acknowledgement import Acknowledgement, Verdict, acknowledge
from domain.instances.message_unwrapping import Ignored, Message
from domain.model import Model
from starters.events import metrics
from starters.events.dispatcher import Dispatcher
from starters.events.sqs_queues import MOST_IN_BATCH, Queue


class EventBridgeEvent(Model):
    """A message with its events, or the reason why it has none."""

    message: Message
    parsed: Parsed


async def get_event_from_sqs(queue: Queue) -> EventBridgeEvent | None:
    """The next message; None if none arrived during a receive. Raises ApiError."""
    found = await get_events_from_sqs(queue, 1)
    return found[0] if found else None


async def get_events_from_sqs(queue: Queue, most: int = MOST_IN_BATCH) -> list[EventBridgeEvent]:
    return [EventBridgeEvent.model_construct(message=each, parsed=parse(each)) for each in await queue.receive(most)]


async def is_event_processed(dispatcher: Dispatcher, received: EventBridgeEvent) -> bool:
    return (await acknowledgement_of(dispatcher, received)).verdict is Verdict.DELETE


async def acknowledgement_of(dispatcher: Dispatcher, received: EventBridgeEvent) -> Acknowledgement:
    """Hand the events over. Returns the acknowledgement once each event has an outcome."""
    message, parsed = received.message, received.parsed
    handled: Sequence[Handled] = ()
    if isinstance(parsed, Events):
        outcomes = [dispatcher.outcome(event, message.receives) for event in parsed.events]
        handled = [await outcomes[0]] if len(outcomes) == 1 else await asyncio.gather(*outcomes)
    now = datetime.now(UTC)
    for each in handled:
        if each.outcome is Outcome.APPLIED:
            metrics.LAG.observe(max(0.0, (now - each.event.time).total_seconds()))
    return acknowledge(parsed, handled, message.receives, now)


def in_words(parsed: Parsed) -> str:
    """The events' kinds and names, without other content, for logs."""
    if isinstance(parsed, Events):
        names = [f"{each.kind.value} {each.instance_id or each.host or each.group}" for each in parsed.events]
        rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + rest
    return f"{'ignored' if isinstance(parsed, Ignored) else 'unreadable'}: {parsed.reason}"
