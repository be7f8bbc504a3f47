"""Messages between the event consumer and an instance's workflow: events, and their outcomes.

The consumer hands the events of one instance over together, by update-with-start: the update answers once the events
are recorded in the workflow and the resulting label is written or not needed. Then their messages may be deleted. The
Temporal server stores an answer, even a failure, under the update's id. So a later delivery of the same events uses
another id, and the workflow's record recognises events that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from hashlib import sha256

from domain.instances.events import InstanceEvent
from domain.model import Model

HAND_OVER = "hand_over"
ANSWERED = "answered"  # a signal: AWS's answer about an instance
ENDED = "ended"  # a signal: results of a group's launches and terminations, from events


class Outcome(StrEnum):
    """The outcomes of an event, the worst last. The worst one counts for an event that goes to several workflows, and
    for a message with several events.
    """

    DUPLICATE = "duplicate"
    STALE = "stale"
    FOREIGN = "foreign"  # the event belongs to an account or region that is not served, or to another instance
    APPLIED = "applied"
    UNKNOWN = "unknown"  # no AWSMachine, AWSMachinePool or served Node has this instance
    UNAVAILABLE = "unavailable"  # Kubernetes or Temporal gave no answer in time


class Handled(Model):
    """The outcome of an event. `may_appear`: some AWSMachine, perhaps the event's, has no instance yet."""

    event: InstanceEvent
    outcome: Outcome
    may_appear: bool = False


def worst(handled: Iterable[Handled]) -> Handled:
    return max(handled, key=lambda each: list(Outcome).index(each.outcome))


class HandOver(Model):
    """Events of one instance, in the order in which they happened (`event_urgency.by_instance`)."""

    events: tuple[InstanceEvent, ...]


class Taken(Model):
    """The outcome of each event, by the event's key. `may_appear` is as in `Handled`."""

    outcomes: dict[str, Outcome] = {}
    may_appear: bool = False


def update_id(events: Sequence[InstanceEvent], receives: int = 1) -> str:
    """The id of the Temporal update. It depends only on the events and `receives`, their highest SQS receive count."""
    keys = sorted({event.key for event in events})
    name = keys[0] if len(keys) == 1 else f"{len(keys)} events {sha256('|'.join(keys).encode()).hexdigest()}"
    return name if receives <= 1 else f"{name} again {receives}"
