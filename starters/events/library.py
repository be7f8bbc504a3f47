"""The two functions of the AWS provider's architecture decision record 0005, as the consumer itself uses them.

The record has a controller take an event from the queue (`GetEventFromSQS`) and delete its message once it was acted
upon (`IsEventProcessed`). Here an event is processed once the workflow of its instance has recorded it, and the label
that follows is written or proven needless. Asking that tells the workflow of the event, unless it knows of it: so
asking often, or by several, has no effect beyond the first.
"""

from __future__ import annotations

from domain.instances.acknowledgement import Outcome
from domain.instances.events import InstanceEvent
from domain.instances.parser import Events, Ignored, Parsed, parse
from domain.instances.transport import Message
from domain.model import Model
from starters.events.queues import MOST_IN_BATCH, Queue
from starters.events.teller import Teller

# What of an event makes its message one that need not be seen again.
PROCESSED = frozenset({Outcome.APPLIED, Outcome.DUPLICATE, Outcome.STALE, Outcome.FOREIGN})


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


async def is_event_processed(teller: Teller, event: InstanceEvent) -> bool:
    """Whether the event's message may be deleted: nothing is left to do for which it would have to be seen again."""
    return (await teller.outcome(event)).outcome in PROCESSED


def in_words(parsed: Parsed) -> str:
    """What a message tells, for people: kinds and names, nothing else of its body."""
    if isinstance(parsed, Events):
        names = [f"{each.kind.value} {each.instance_id or each.host or each.group}" for each in parsed.events]
        rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + rest
    return f"{'ignored' if isinstance(parsed, Ignored) else 'unreadable'}: {parsed.reason}"
