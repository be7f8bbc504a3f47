"""How long events of an unknown instance are kept: they may arrive before its id is in the AWSMachine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.instances.constants import LONGEST_HOOK_TIMEOUT, UNMATCHED_AFTER
from domain.instances.event_delivery import Handled, Outcome
from domain.instances.events import EventKind

_FIRST_DELAY, _LATER_DELAY = timedelta(seconds=15), timedelta(seconds=30)


def waits_for_machine(handled: Handled, now: datetime) -> bool:
    """Whether to keep the event, which is so if it is urgent or an AWSMachine has no instance yet: for ten minutes; an
    event of a launch's hook for two hours.
    """
    event = handled.event
    longest = LONGEST_HOOK_TIMEOUT if event.kind is EventKind.LAUNCHING else UNMATCHED_AFTER
    young = now - event.received_at < longest
    return handled.outcome is Outcome.UNKNOWN and young and (handled.may_appear or event.urgent)


def unmatched_delay(waiting: Sequence[Handled], receives: int, now: datetime) -> timedelta:
    """How long to hide the message; `receives` includes this time."""
    return _FIRST_DELAY if receives <= 1 else max(_LATER_DELAY, *(_by_age(each, now) for each in waiting))


def _by_age(handled: Handled, now: datetime) -> timedelta:
    """A quarter of the event's age once it is ten minutes old, zero before. SQS counts each receipt, and after the
    fiftieth the message becomes a dead letter.
    """
    age = now - handled.event.received_at
    return age / 4 if age >= UNMATCHED_AFTER else timedelta(0)
