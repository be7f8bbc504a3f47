"""Messages between the event consumer and an instance's workflow: events, and their outcomes.

The consumer hands the events of one instance over together, by update-with-start: the update answers once the events
are recorded in the workflow and the resulting label is written or proven needless. Then their messages may be deleted.
The server keeps an answer, even a bad one, under the update's id: so a later delivery of the same events has another
id, and the record's own memory of keys recognises what was folded already.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256

from domain.instances.constants import GROUP_WORKFLOW, INSTANCE_WORKFLOW
from domain.instances.events import InstanceEvent
from domain.model import Model

HAND_OVER = "hand_over"
ANSWERED = "answered"  # a signal: AWS's answer about an instance
ENDED = "ended"  # a signal: results of a group's launches and terminations, from events

__all__ = [
    "ANSWERED",
    "ENDED",
    "GROUP_WORKFLOW",
    "HAND_OVER",
    "INSTANCE_WORKFLOW",
    "HandOver",
    "Handled",
    "Outcome",
    "Taken",
    "update_id",
]


class Outcome(StrEnum):
    APPLIED = "applied"
    DUPLICATE = "duplicate"
    STALE = "stale"
    FOREIGN = "foreign"  # of an account or region that is not served
    UNKNOWN = "unknown"  # no AWSMachine has this instance
    UNAVAILABLE = "unavailable"  # Kubernetes or Temporal did not answer, or not in time


class Handled(Model):
    """What became of an event. `may_appear`: an AWSMachine of its account and region has no instance yet."""

    event: InstanceEvent
    outcome: Outcome
    may_appear: bool = False


class HandOver(Model):
    """Events of one instance, in the order that they happened (`event_routing.by_instance`)."""

    events: tuple[InstanceEvent, ...]


class Taken(Model):
    """The outcome of each event, by its key. `may_appear`: an AWSMachine of the place has no instance yet."""

    outcomes: dict[str, Outcome] = {}
    may_appear: bool = False


def update_id(events: Sequence[InstanceEvent], receives: int = 1) -> str:
    """An id that is the same for the same events at the same delivery; `receives` is their highest receive count."""
    keys = sorted({event.key for event in events})
    name = keys[0] if len(keys) == 1 else f"{len(keys)} events {sha256('|'.join(keys).encode()).hexdigest()}"
    return name if receives <= 1 else f"{name} again {receives}"
